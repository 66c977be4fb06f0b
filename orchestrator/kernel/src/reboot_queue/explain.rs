//! Explains why an entry of the reboot queue is not progressing, and whether it needs an operator.

use chrono::{DateTime, SubsecRound as _, Utc};
use os_upgrade_protocol::Action;

use super::attempt::{Attempt, AttemptStage};
use super::blocker::EntryBlocker;
use super::choose::{NotReady, QueueBlocker};
use super::entry::{Entry, EntryStatus};
use super::next::not_ready;
use super::rebooter::{Rebooter, has_left_boot, shows_old_boot};
use crate::reason::Reason;
use crate::state::State;
use crate::view::View;

/// Why the entry at `index` is not progressing; `next` is what [`next_reboot`](crate::next_reboot) says. `None` if nothing keeps it.
pub fn explain_entry(
    state: &State,
    view: &View,
    next: &Result<u64, QueueBlocker>,
    (index, entry): (u64, &Entry),
    now: DateTime<Utc>,
) -> Option<EntryBlocker> {
    match entry.status {
        EntryStatus::Queued => {
            let until = entry.backoff_expire.filter(|_| entry.is_backed_off(now));
            if let Err(by) = next
                && by.is_of_queue()
                && (until.is_none() || !by.passes_with_others())
            {
                return Some(EntryBlocker::Queue(by.clone()));
            }
            if let Some(until) = until {
                return Some(EntryBlocker::BackedOff { until, reason: entry.reason.clone() });
            }
            if let Some(why) = not_ready(state, view, index, entry, now) {
                return Some(EntryBlocker::NotReady(why));
            }
            match next {
                Ok(first) if *first == index => slot_blocker(state, index, entry),
                Ok(first) => Some(EntryBlocker::Behind { index: *first }),
                Err(by) => Some(EntryBlocker::Queue(by.clone())),
            }
        }
        EntryStatus::Draining => {
            let why = Rebooter::of_entry(state, view, entry).err().map(|why| {
                if why == NotReady::NoNode && state.is_cluster_unseen(view) {
                    EntryBlocker::Queue(QueueBlocker::ClusterUnseen)
                } else {
                    EntryBlocker::NotReady(why)
                }
            });
            why.or_else(|| node_under_way(state, entry))
        }
        EntryStatus::Rebooting if entry.has_booted() => node_under_way(state, entry),
        EntryStatus::Rebooting if entry.is_unsent() && !state.cordon_allows(&entry.host, Action::Reboot) => {
            node_under_way(state, entry)
        }
        EntryStatus::Rebooting => match &entry.attempt {
            Some(_) if !state.owns_slot(index, &entry.host) => {
                let slot = state.slots.get(&entry.host)?;
                let (owner, since) = (slot.owner.clone(), slot.since.trunc_subsecs(0));
                Some(EntryBlocker::NotReady(NotReady::SlotHeld { owner, since }))
            }
            Some(attempt) => attempt_blocker(state, view, entry, attempt),
            None => match (&entry.reason, entry.command?.sent_at) {
                (Some(reason), _) => Some(EntryBlocker::Failed { reason: reason.clone() }),
                (None, Some(sent_at)) => Some(EntryBlocker::ReplyAwaited { since: sent_at }),
                (None, None) => Some(EntryBlocker::CommandUnsent),
            },
        },
        EntryStatus::Cancelled => node_under_way(state, entry),
    }
}

/// Why the entry at `index`, whose turn it is, has no slot; `None` if none is requested.
fn slot_blocker(state: &State, index: u64, entry: &Entry) -> Option<EntryBlocker> {
    let slot = state.slots.get(&entry.host).filter(|slot| slot.owner == entry.owner(index))?;
    Some(EntryBlocker::Slot(slot.not_granted()))
}

/// Whether the entry at `index` goes on only once an operator has looked after its host: it failed, or nobody knows whether it did.
pub fn needs_operator(state: &State, view: &View, (index, entry): (u64, &Entry), now: DateTime<Utc>) -> bool {
    // What keeps other entries from starting says nothing of one whose host reboots.
    let blocker = || explain_entry(state, view, &Ok(index), (index, entry), now);
    let is_rebooting = entry.status == EntryStatus::Rebooting;
    is_rebooting && (entry.has_failed() || matches!(blocker(), Some(EntryBlocker::AttemptUnknown { .. })))
}

/// Why an entry whose host is rebooted by the operator's command is not progressing.
fn attempt_blocker(state: &State, view: &View, entry: &Entry, attempt: &Attempt) -> Option<EntryBlocker> {
    let is_gone = || {
        let nodes = view.nodes.as_ref().filter(|_| state.settings.has_node(&entry.host));
        nodes.is_some_and(|nodes| !nodes.contains_key(&entry.host))
    };
    // When what was begun is undone, if the host is in its old boot.
    let undone_at = || {
        let is_known = entry.cancel_requested
            && shows_old_boot(state, view, entry)
            && !has_left_boot(state, view, entry);
        state.repeats_attempt_after().filter(|_| is_known).map(|after| attempt.since + after)
    };
    Some(match attempt.stage {
        AttemptStage::Succeeded | AttemptStage::Unknown if is_gone() => {
            EntryBlocker::NotReady(NotReady::NoNode)
        }
        AttemptStage::Succeeded | AttemptStage::Unknown | AttemptStage::Failed
            if let Some(at) = undone_at() =>
        {
            EntryBlocker::CancelAwaited { until: at }
        }
        AttemptStage::Due if state.settings.reboot.command.is_none() => EntryBlocker::NoCommand,
        AttemptStage::Due => EntryBlocker::CommandUnsent,
        AttemptStage::Running => EntryBlocker::CommandRuns { since: attempt.since },
        AttemptStage::Succeeded => EntryBlocker::BootAwaited { since: attempt.since },
        AttemptStage::Unknown => {
            let may_repeat = !entry.cancel_requested && shows_old_boot(state, view, entry);
            let restored = || Reason::RebootUnknown {
                detail: "the site was restored".to_owned(),
                output: String::new(),
            };
            let (reason, since) = (entry.reason.clone().unwrap_or_else(restored), attempt.since);
            if has_left_boot(state, view, entry) {
                return Some(EntryBlocker::CheckAwaited { reason });
            }
            match state.repeats_attempt_after().filter(|_| may_repeat) {
                Some(after) => EntryBlocker::RetryAwaited { reason, since, at: since + after },
                None => EntryBlocker::AttemptUnknown { reason, since },
            }
        }
        AttemptStage::Failed => EntryBlocker::Failed { reason: entry.reason.clone()? },
        AttemptStage::Booted => return node_under_way(state, entry),
    })
}

fn node_under_way(state: &State, entry: &Entry) -> Option<EntryBlocker> {
    state.nodes.get(&entry.host).map(|node| EntryBlocker::NodeUnderWay(node.progress()))
}
