//! Which orchestrator leads, seen from outside by polling all of them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use tokio::task::JoinHandle;

use crate::rest::Rest;

/// Timeout of a poll.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The start of a leadership, as seen by the poll.
#[derive(Debug, Clone, Copy)]
pub struct Leadership {
    /// When it was first seen.
    pub at: Instant,
    /// The index of the leader.
    pub member: usize,
}

#[derive(Debug, Default)]
struct Shared {
    /// Which orchestrators reported in their last answer that they lead.
    leading: Vec<bool>,
    /// Every change to leading.
    seen: Vec<Leadership>,
    /// When this process woke up late, and by how much.
    stalls: Vec<(Instant, Duration)>,
}

/// The observations so far.
#[derive(Debug)]
pub struct Roles {
    shared: Arc<Mutex<Shared>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Roles {
    /// Polls until [`Self::stop`].
    pub fn watch(rests: Vec<Rest>) -> Self {
        let shared = Arc::new(Mutex::new(Shared { leading: vec![false; rests.len()], ..Shared::default() }));
        let spawn = |(member, rest)| tokio::spawn(poll(member, rest, Arc::clone(&shared)));
        let tasks = rests.into_iter().enumerate().map(spawn).collect();
        Self { shared, tasks }
    }

    /// Stops polling.
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// The leader, if exactly one orchestrator reports that it leads.
    pub fn leader(&self) -> Option<usize> {
        let shared = self.shared.lock().unwrap();
        let mut leading = (0..shared.leading.len()).filter(|member| shared.leading[*member]);
        leading.next().filter(|_| leading.next().is_none())
    }

    /// The first leadership of an orchestrator other than `member` after `since`.
    pub fn next_leader(&self, member: usize, since: Instant) -> Option<Leadership> {
        let shared = self.shared.lock().unwrap();
        shared.seen.iter().find(|seen| seen.at > since && seen.member != member).copied()
    }

    /// The longest delay of this process between `from` and `to`. Observations may be late by as much.
    pub fn stall(&self, from: Instant, to: Instant) -> Duration {
        let shared = self.shared.lock().unwrap();
        let within = shared.stalls.iter().filter(|(at, _)| (from..=to).contains(at));
        within.map(|(_, late)| *late).max().unwrap_or_default()
    }
}

async fn poll(member: usize, rest: Rest, shared: Arc<Mutex<Shared>>) {
    loop {
        let answer = rest.try_call(Method::GET, "/readyz", "").await;
        let leads = answer.is_some_and(|(status, body)| status == 200 && body["role"] == "leader");
        let slept = Instant::now();
        {
            let mut shared = shared.lock().unwrap();
            if leads && !shared.leading[member] {
                shared.seen.push(Leadership { at: slept, member });
            }
            shared.leading[member] = leads;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        let late = slept.elapsed().saturating_sub(POLL_INTERVAL);
        shared.lock().unwrap().stalls.push((slept, late));
    }
}
