//! How long the agents of hosts that run units have been silent, in time for which this instance was connected to the bus.
//!
//! The view says it in steps: after 11 seconds an agent has missed a heartbeat, 30 seconds are what it may miss, and after that the kernel compares
//! silences with minutes in between. So the view of a site changes only when an agent falls silent or is heard again, and once a minute while
//! one is silent. Of agents that fall silent together, all have missed a heartbeat before the first one has missed too many.

use std::collections::HashMap;
use std::time::Duration;

use imbl::OrdMap;
use os_upgrade_kernel::AgentSeen;
use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::GRACE;

/// The first silence that is told: more than ten seconds. Agents send a heartbeat every five.
const MISSED: Duration = Duration::from_secs(11);
/// In which steps longer ones are told.
const STEP: Duration = Duration::from_mins(1);

/// How long an agent may stay unheard in all before lost heartbeats no longer excuse its silence.
const EXCUSED_MAX: Duration = Duration::from_mins(5);

/// What was heard of agents. Times are of the inventory's clock, which stands still while the bus is away.
#[derive(Debug, Default)]
pub(super) struct Agents {
    signs: HashMap<HostName, Sign>,
    /// When this leadership began.
    since: Duration,
}

/// What was heard last of an agent.
#[derive(Debug, Clone, Copy)]
struct Sign {
    /// From when on its silence counts.
    silent_since: Duration,
    /// When it was heard last, or became known.
    heard: Duration,
    /// Whether this leadership has heard it.
    is_heard: bool,
}

impl Sign {
    /// It has not been heard so far.
    fn awaited(listened: Duration) -> Self {
        Self { silent_since: listened, heard: listened, is_heard: false }
    }

    fn silent_for(self, listened: Duration) -> Duration {
        listened.saturating_sub(self.silent_since)
    }
}

impl Agents {
    /// A host announces an agent. If that is new, it begins without silence.
    pub(super) fn announced(&mut self, host: &HostName, listened: Duration) {
        self.signs.entry(host.clone()).or_insert_with(|| Sign::awaited(listened));
    }

    /// The agent of `host` has sent a heartbeat.
    pub(super) fn heard(&mut self, host: &HostName, listened: Duration) {
        self.signs.insert(host.clone(), Sign { is_heard: true, ..Sign::awaited(listened) });
    }

    /// A leadership begins: it knows of no silence, and has heard nobody.
    pub(super) fn leadership_begins(&mut self, listened: Duration) {
        self.since = listened;
        self.signs.values_mut().for_each(|sign| *sign = Sign::awaited(listened));
    }

    /// The agent of `host` may be silent for less long from here on: its silence up to now was allowed, and does not count.
    pub(super) fn listen_anew(&mut self, host: &HostName, listened: Duration) {
        if let Some(sign) = self.signs.get_mut(host) {
            sign.silent_since = listened;
        }
    }

    /// Heartbeats may have been lost, so silence proves nothing unless it was told before, or has lasted too long.
    pub(super) fn reports_lost(&mut self, listened: Duration) {
        for sign in self.signs.values_mut() {
            let is_told = sign.silent_for(listened) >= GRACE;
            if !is_told && listened.saturating_sub(sign.heard) < EXCUSED_MAX {
                sign.silent_since = listened;
            }
        }
    }

    /// Forgets hosts that are not `known`.
    pub(super) fn retain(&mut self, known: impl Fn(&HostName) -> bool) {
        self.signs.retain(|host, _| known(host));
    }

    /// How long this leadership has listened, in steps.
    pub(super) fn listened_for(&self, listened: Duration) -> Duration {
        in_steps(listened.saturating_sub(self.since))
    }

    /// Brings `seen` up to date. What has not changed stays as it is, so that an unchanged view is cheap to compare.
    pub(super) fn show(&self, seen: &mut OrdMap<HostName, AgentSeen>, listened: Duration) {
        let is_forgotten = |host: &&HostName| !self.signs.contains_key(*host);
        let forgotten: Vec<HostName> = seen.keys().filter(is_forgotten).cloned().collect();
        for host in forgotten {
            seen.remove(&host);
        }
        for host in self.signs.keys() {
            self.show_one(host, seen, listened);
        }
    }

    /// The same for one host.
    pub(super) fn show_one(
        &self,
        host: &HostName,
        seen: &mut OrdMap<HostName, AgentSeen>,
        listened: Duration,
    ) {
        let Some(sign) = self.signs.get(host) else { return };
        let silent_for = in_steps(sign.silent_for(listened));
        let agent = AgentSeen { silent_for, is_heard: sign.is_heard };
        if seen.get(host) != Some(&agent) {
            seen.insert(host.clone(), agent);
        }
    }
}

/// `silence` rounded down to a step: zero, [`MISSED`], [`GRACE`] or a multiple of [`STEP`].
fn in_steps(silence: Duration) -> Duration {
    let rest = silence.as_secs() % STEP.as_secs();
    let whole = Duration::from_secs(silence.as_secs() - rest);
    [whole, GRACE, MISSED].into_iter().filter(|step| *step <= silence).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_in_steps() {
        for (millis, expected) in [
            (0, 0),
            (10_999, 0),
            (11_000, 11),
            (29_999, 11),
            (30_000, 30),
            (59_999, 30),
            (60_000, 60),
            (119_999, 60),
            (120_500, 120),
            (86_430_000, 86_400),
        ] {
            let told = in_steps(Duration::from_millis(millis));
            assert_eq!(told, Duration::from_secs(expected), "{millis} ms");
        }
    }
}
