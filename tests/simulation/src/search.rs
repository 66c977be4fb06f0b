//! Which seeds find the planted bugs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bug::Bug;
use crate::simulation::simulate;
use crate::trace::Recording;

/// How many seeds are tried for each bug.
pub const SEEDS_MAX: u64 = 1_000;

/// How many seeds, from the first that finds a bug, are compared for the fewest steps.
const SEEDS_COMPARED: u64 = 50;

/// A seed that finds a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The number of steps until the violation.
    pub steps: u64,
    /// The seed.
    pub seed: u64,
}

impl Bug {
    /// Runs `seed` with the bug; none unless one of the bug's rules finds it.
    pub fn find_in(self, seed: u64) -> Option<Finding> {
        let outcome = simulate(seed, Some(self), Recording::Nothing);
        let violation = outcome.violation?;
        self.found_by().contains(&violation.rule).then_some(Finding { steps: outcome.steps, seed })
    }

    /// Of the first seeds that find the bug, the one with the fewest steps.
    pub fn find(self) -> Option<Finding> {
        let first = (0..SEEDS_MAX).find_map(|seed| self.find_in(seed))?;
        let more = first.seed + 1..(first.seed + SEEDS_COMPARED).min(SEEDS_MAX);
        more.filter_map(|seed| self.find_in(seed)).chain([first]).min()
    }

    /// Runs `search` for each bug on `jobs` threads; the results in the order of the bugs.
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
