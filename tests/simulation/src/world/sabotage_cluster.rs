//! Planted bugs of the work on Kubernetes nodes, as far as they are in what is decided. See [`crate::bug`].

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{NodeFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::{Entry, EntryEvent, EntryStatus};
use os_upgrade_kernel::{Fact, HostEvent, NodeStage, NodeStep, State};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::journal::codec::Message;

use super::World;
use super::sabotage::with_facts;
use crate::bug::Bug;

impl World {
    /// The message with the record that is appended instead.
    pub(super) fn sabotage_cluster_record(&self, index: usize, message: Message) -> Message {
        let Some(logic) = &self.instances[index].logic else { return message };
        let instead: fn(&State, DateTime<Utc>, Fact) -> Vec<Fact> = match self.bug {
            Some(Bug::ReleasedBeforeUncordon) => release_at_once,
            Some(Bug::TwoServersAtOnce) => start_another,
            Some(Bug::CancelUncordons) => uncordon_when_cancelled,
            Some(Bug::BackoffOverflows) => without_pause,
            Some(Bug::SweptUnderWay) => sweep_all,
            _ => return message,
        };
        let (state, now) = (logic.state(), self.clock_of(index).wall);
        with_facts(message, |facts| facts.into_iter().flat_map(|fact| instead(state, now, fact)).collect())
    }
}

fn of_node(host: &HostName, step: NodeStep) -> Fact {
    Fact::Node(NodeFact::Step { host: host.clone(), step })
}

fn uncordon(host: &HostName) -> Fact {
    of_node(host, NodeStep::UncordonDue { release: None, reason: None })
}

/// The slot goes to others as soon as its host's node is to be uncordoned.
fn release_at_once(_: &State, _: DateTime<Utc>, fact: Fact) -> Vec<Fact> {
    let Fact::Node(NodeFact::Step { host, step: NodeStep::UncordonDue { release: Some(why), .. } }) = &fact
    else {
        return vec![fact];
    };
    let released = Fact::Slot(SlotFact::Released { host: host.clone(), why: *why });
    vec![fact, released]
}

/// With an entry of the reboot queue another one starts, whatever their nodes are.
fn start_another(state: &State, _: DateTime<Utc>, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot {
        host, event: started @ EntryEvent::Started { drain: true, .. }, ..
    }) = &fact
    else {
        return vec![fact];
    };
    let waits = |(_, entry): &(&u64, &Entry)| {
        let is_free = !state.slots.contains_key(&entry.host) && entry.host != *host;
        entry.status == EntryStatus::Queued && is_free && state.settings.has_node(&entry.host)
    };
    let another = state.reboot_queue.entries.iter().find(waits);
    let another = another.map(|(index, entry)| Fact::of_entry(*index, &entry.host, started.clone()));
    [fact].into_iter().chain(another).collect()
}

/// The node of a host that reboots is uncordoned when its entry is cancelled, as CKE did.
fn uncordon_when_cancelled(state: &State, _: DateTime<Utc>, fact: Fact) -> Vec<Fact> {
    let Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Cancelled { .. }, .. }) = &fact else {
        return vec![fact];
    };
    let reboots =
        state.entry_under_way(host).is_some_and(|(_, entry)| entry.status == EntryStatus::Rebooting);
    let uncordon = (reboots && state.nodes.contains_key(host)).then(|| uncordon(host));
    [fact].into_iter().chain(uncordon).collect()
}

/// The pause after the second drain that was given up is none, as after CKE's 56th.
fn without_pause(_: &State, now: DateTime<Utc>, mut fact: Fact) -> Vec<Fact> {
    if let Fact::Run(RunFact::Host { event: HostEvent::BackedOff { until, .. }, .. })
    | Fact::Queue(QueueFact::Reboot { event: EntryEvent::BackedOff { until, .. }, .. }) = &mut fact
    {
        *until = now;
    }
    vec![fact]
}

/// With each host that is told to reboot, every cordoned node is uncordoned.
fn sweep_all(state: &State, _: DateTime<Utc>, fact: Fact) -> Vec<Fact> {
    let is_sent = matches!(
        fact,
        Fact::Run(RunFact::Host { event: HostEvent::CommandSent { .. }, .. })
            | Fact::Queue(QueueFact::Reboot { event: EntryEvent::CommandSent { .. }, .. })
    );
    let cordoned = state.nodes.iter().filter(|(_, node)| is_sent && node.stage == NodeStage::Drained);
    let swept: Vec<Fact> = cordoned.map(|(host, _)| uncordon(host)).collect();
    [fact].into_iter().chain(swept).collect()
}
