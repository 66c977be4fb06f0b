//! Which seeds find the planted bugs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bug::Bug;
use crate::simulation::simulate;

/// Within how many seeds each bug has to be found.
pub const WITHIN: u64 = 1_000;

/// How many seeds are compared with one another where one of them finds a bug.
const COMPARED: u64 = 50;

/// A seed that finds a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// After how many steps it does.
    pub steps: u64,
    /// The seed.
    pub seed: u64,
}

impl Bug {
    /// What `seed` finds of it by one of its rules.
    pub fn find_in(self, seed: u64) -> Option<Finding> {
        let outcome = simulate(seed, Some(self), false);
        let violation = outcome.violation?;
        self.is_found_by().contains(&violation.rule).then_some(Finding { steps: outcome.steps, seed })
    }

    /// Of the first seeds that find it, the one with the fewest steps.
    pub fn find(self) -> Option<Finding> {
        let first = (0..WITHIN).find_map(|seed| self.find_in(seed))?;
        let more = first.seed + 1..(first.seed + COMPARED).min(WITHIN);
        more.filter_map(|seed| self.find_in(seed)).chain([first]).min()
    }

    /// What `search` returns for each bug, on so many threads, in the order of the bugs.
    pub fn search_all<T: Send>(jobs: usize, search: impl Fn(Self) -> T + Sync) -> Vec<(Self, T)> {
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let work = || {
            while let Some(bug) = Self::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = search(*bug);
                found.lock().expect("no thread panics with it").push((*bug, result));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(work);
            }
        });
        let mut found = found.into_inner().expect("no thread panics with it");
        found.sort_by_key(|(bug, _)| Self::ALL.iter().position(|other| other == bug));
        found
    }
}
