//! Who leads, as whoever asks every orchestrator again and again sees it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::task::JoinHandle;

use crate::rest::Rest;

/// How long an orchestrator that is asked has.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A leadership, as it was first seen.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// Whose.
    pub member: usize,
}

#[derive(Debug, Default)]
struct Shared {
    /// Who says now that it leads.
    leading: Vec<bool>,
    /// Every answer "I lead" that came after another, or none.
    seen: Vec<Seen>,
    /// How late this process was woken up, and when.
    stalls: Vec<(Instant, Duration)>,
}

/// What has been seen so far.
#[derive(Debug)]
pub struct Roles {
    shared: Arc<Mutex<Shared>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Roles {
    /// Looks until [`Self::stop`].
    pub fn watch(rests: Vec<Rest>) -> Self {
        let shared = Arc::new(Mutex::new(Shared { leading: vec![false; rests.len()], ..Shared::default() }));
        let look = |(member, rest)| tokio::spawn(look(member, rest, Arc::clone(&shared)));
        let tasks = rests.into_iter().enumerate().map(look).collect();
        Self { shared, tasks }
    }

    /// Looks no more.
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// Who leads, if one and only one says so.
    pub fn leader(&self) -> Option<usize> {
        let shared = self.shared.lock().unwrap();
        let mut leading = (0..shared.leading.len()).filter(|member| shared.leading[*member]);
        leading.next().filter(|_| leading.next().is_none())
    }

    /// The first leadership of anyone but `member` that was seen after `since`.
    pub fn next_leader(&self, member: usize, since: Instant) -> Option<Seen> {
        let shared = self.shared.lock().unwrap();
        shared.seen.iter().find(|seen| seen.at > since && seen.member != member).copied()
    }

    /// By how much this process itself was late, at most, in a while: so much later it saw what happened.
    pub fn stall(&self, from: Instant, to: Instant) -> Duration {
        let shared = self.shared.lock().unwrap();
        let within = shared.stalls.iter().filter(|(at, _)| (from..=to).contains(at));
        within.map(|(_, late)| *late).max().unwrap_or_default()
    }
}

async fn look(member: usize, rest: Rest, shared: Arc<Mutex<Shared>>) {
    loop {
        let asked = rest.try_call(Method::GET, "/readyz", "").await;
        let leads = asked.is_some_and(|(status, body)| status == 200 && body["role"] == "leader");
        let slept = Instant::now();
        {
            let mut shared = shared.lock().unwrap();
            if leads && !shared.leading[member] {
                shared.seen.push(Seen { at: slept, member });
            }
            shared.leading[member] = leads;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let late = slept.elapsed().saturating_sub(LOOK_EVERY);
        shared.lock().unwrap().stalls.push((slept, late));
    }
}
