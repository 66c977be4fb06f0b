//! What others ask of the active run, and how they cancel a host of it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use super::event::HostEvent;
use super::state::Run;
use crate::fact::Fact;
use crate::reason::Reason;
use crate::state::State;
use crate::view::View;

impl State {
    /// Whether the active run is not through with `host`.
    pub(crate) fn is_in_run(&self, host: &HostName) -> bool {
        let in_run = self.run.as_ref().and_then(|run| run.host(host));
        in_run.is_some_and(|in_run| !in_run.status.is_final())
    }

    /// The runs of which the hosts are known: the active one, the last, and the last of the whole site if that was another.
    pub fn known_runs(&self) -> impl Iterator<Item = &Run> {
        self.run.iter().chain(&self.last_run).chain(self.last_whole_run.as_deref())
    }

    /// Why nothing begins on the site, if it is paused.
    pub(crate) fn paused(&self) -> Option<Reason> {
        self.pause.as_ref().map(|pause| Reason::Paused(pause.cause.clone()))
    }

    /// The host of `run`, the active one, that is to be prepared next, if one may be. A host that holds the slot of an earlier run is,
    /// whoever else is: others may wait for its slot, which it gives back once it is upgraded.
    pub(crate) fn next_to_prepare<'a>(
        &'a self,
        view: &View,
        run: &'a Run,
        now: DateTime<Utc>,
    ) -> Option<&'a HostName> {
        if !run.has_untold() {
            return None;
        }
        let is_withheld = |host: &HostName| {
            run.rollout.provider_wait.is_some() && self.unconfigured(view, host, now).is_some()
        };
        // A host that the reboot queue is at work on could not be told yet, and would take a place.
        let is_busy = |host: &HostName| self.is_at_work(host) || is_withheld(host);
        let holder = |host: &'a HostName| {
            let in_run = run.host(host).filter(|it| it.is_untold() && it.retry_at(now).is_none())?;
            (!is_busy(host)).then(|| (in_run.place(host), host))
        };
        let first = self.slots.keys().filter_map(holder).min().map(|(_, host)| host);
        first.or_else(|| run.next_to_prepare(now, &self.preparing(run, now), is_busy))
    }

    /// How many hosts of each group of `run`, the active one, are being prepared, or are prepared and have not begun. Those that hold the
    /// slot of an earlier run do not count: one that hangs would keep the others of its group from being prepared, in each run.
    fn preparing<'a>(&self, run: &'a Run, now: DateTime<Utc>) -> BTreeMap<&'a GroupName, usize> {
        let mut preparing = run.preparing(now);
        for (host, _) in self.slots.iter().filter(|(_, slot)| !slot.owner.is_run(&run.id)) {
            if let Some(holder) = run.host(host).filter(|holder| holder.is_preparing(now))
                && let Some(count) = preparing.get_mut(&holder.group)
            {
                *count -= 1;
            }
        }
        preparing
    }

    /// How many hosts keep others of `run`, the active one, from being prepared.
    pub(crate) fn all_preparing(&self, run: &Run, now: DateTime<Utc>) -> usize {
        self.preparing(run, now).values().sum()
    }

    /// Whether a further host of `run`, the active one, may begin.
    pub(crate) fn may_begin(&self, run: &Run) -> bool {
        self.pause.is_none() && run.has_room()
    }

    /// The facts that `host` of `run`, whose turn it was, no longer waits for its slot.
    pub(crate) fn turn_lost(&self, run: &Run, host: &HostName) -> Vec<Fact> {
        self.no_longer_waits(run, host, HostEvent::TurnLost)
    }

    /// The facts that `event` happens to `host` of `run`, and that the host waits for no slot from then on.
    pub(crate) fn no_longer_waits(&self, run: &Run, host: &HostName, event: HostEvent) -> Vec<Fact> {
        let happened = Fact::of_host(&run.id, host, event);
        [happened].into_iter().chain(self.cancel_slot_request(run, host)).collect()
    }
}
