//! Instances that are asked to end: who has asked them something is answered before they do.

use std::time::Duration;

use os_upgrade_shell::node::{Event, Node, STOP_WITHIN};

use super::World;

/// Time passes in steps of this at most, and a node sees it when it does.
const STEP_MAX: Duration = Duration::from_millis(400);

impl World {
    /// Asks an instance to end.
    pub(super) fn stop(&mut self, index: usize) {
        let (boot, now) = (self.instances[index].boots, self.monotonic);
        self.stops.entry((index, boot)).or_insert(now);
        self.hand_in(index, Event::Stop);
    }

    /// Asks the instance that leads to end.
    pub(crate) fn stop_leader(&mut self) {
        let leads = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_leading);
        let leader = self.instances.iter().position(|instance| leads(&instance.node)).unwrap();
        self.stop(leader);
    }

    /// Whether the lease is held by a process that has not been asked to end.
    pub(crate) fn is_handed_over(&self) -> bool {
        let ending = |(index, boot): &(usize, u32)| format!("{}-{boot}", self.instances[*index].name);
        self.bus
            .leader()
            .is_some_and(|leader| !self.stops.keys().map(ending).any(|nonce| nonce == leader.nonce))
    }

    /// For how long time has passed since an instance was asked to end first.
    pub(crate) fn since_stop(&self) -> Duration {
        self.monotonic.saturating_sub(*self.stops.values().min().unwrap())
    }

    pub(super) fn stopped(&mut self, index: usize, boot: u32) {
        let took = self.monotonic.saturating_sub(self.stops[&(index, boot)]);
        assert!(took <= STOP_WITHIN + STEP_MAX, "it took {took:?} to end");
        let left: Vec<_> = self.asked.iter().filter(|(_, asked)| **asked == (index, boot)).collect();
        assert_eq!(left, [], "they wait for an answer of one that has ended");
        let instance = &mut self.instances[index];
        (instance.node, instance.journal, instance.control) = (None, None, None);
    }
}
