//! Log lines about decisions: how runs go, and who changes the configuration. An operator who only reads the log must see
//! failed runs there.

use os_upgrade_console::describe;
use os_upgrade_console::progress::counted;
use os_upgrade_kernel::fact::{ConfigFact, RunFact, SlotFact};
use os_upgrade_kernel::{Fact, HostEvent, Record, RunResult, Settings};
use os_upgrade_protocol::text::sanitized;
use os_upgrade_shell::instance::Warning;

/// The target of these lines, which are not paced, see [`crate::logging`].
pub(crate) const TARGET: &str = module_path!();
/// The target of lines that workers, lock servers or callers of the API can cause, which are paced.
const CAUSED: &str = "os_upgrade::changes";

/// Logs the facts of `record`, on the instance that decided them.
pub(super) fn log(record: &Record) {
    record.facts.iter().for_each(log_fact);
}

fn log_fact(fact: &Fact) {
    match fact {
        Fact::Run(fact) => log_run(fact),
        // A lock server may refuse in other words each time.
        Fact::Slot(SlotFact::ReleaseRefused { host, refusal }) => {
            tracing::warn!(target: CAUSED, %host, refusal = %describe(refusal), "the lock server has not released a slot; it is asked again");
        }
        Fact::Slot(SlotFact::Refused { host, refusal }) => {
            tracing::info!(target: CAUSED, %host, refusal = %describe(refusal), "the lock server has not granted a slot; it is asked again");
        }
        Fact::Config(ConfigFact::Replaced { config, actor, .. }) => {
            tracing::info!(target: CAUSED, actor, deleted = config.is_none(), "configuration changed");
        }
        // Logged as a warning of the instance, once they are in effect.
        Fact::Config(ConfigFact::SettingsAdopted { .. }) => {}
        Fact::Slot(_)
        | Fact::Lock(_)
        | Fact::Queue(_)
        | Fact::Node(_)
        | Fact::Enrolment(_)
        | Fact::Desired(_)
        | Fact::Pause(_)
        | Fact::Secret(_)
        | Fact::Unit(_)
        | Fact::Control(_)
        | Fact::Restoration(_) => {}
    }
}

fn log_run(fact: &RunFact) {
    match fact {
        RunFact::Started { run, trigger, not_after, hosts, .. } => {
            let skipped = hosts.iter().filter(|host| host.skipped.is_some()).count();
            let by = trigger.actor().unwrap_or("a maintenance window");
            let reason = trigger.reason();
            tracing::info!(%run, by, reason, %not_after, hosts = hosts.len() - skipped, skipped, "run started");
        }
        RunFact::Ended { run, result: RunResult::Completed, counts } => {
            tracing::info!(%run, hosts = counted(&counts.into()), "run completed");
        }
        RunFact::Ended { run, result, counts } => {
            let hosts = counted(&counts.into());
            tracing::warn!(%run, result = result.as_str(), hosts, "run ended without completing");
        }
        RunFact::Host { run, host, event: HostEvent::Upgraded } => {
            tracing::info!(%run, %host, "host upgraded");
        }
        RunFact::Host { run, host, event: HostEvent::Failed { reason } | HostEvent::TimedOut { reason } } => {
            tracing::warn!(%run, %host, reason = %describe(reason), "host not upgraded");
        }
        RunFact::Host { .. }
        | RunFact::UpgradesBegan { .. }
        | RunFact::Stopping { .. }
        | RunFact::Missed(_) => {}
    }
}

/// Groups and their slots, as in `default=1,edge=2`.
fn slots(settings: &Settings) -> String {
    let groups = settings.groups.iter().map(|(group, slots)| format!("{group}={slots}"));
    groups.collect::<Vec<_>>().join(",")
}

/// Logs a warning of the instance.
pub(super) fn warn(warning: &Warning) {
    match warning {
        Warning::Halted(halt) => {
            tracing::error!(%halt, "halted: nothing is sent until an operator intervenes");
        }
        Warning::Inventory { host, error } => {
            tracing::warn!(target: CAUSED, %host, %error, "a message from a worker cannot be used");
        }
        Warning::Clock { doubt: Some(why) } => {
            tracing::warn!(target: CAUSED, why = %describe(why), "the time is in doubt: no run starts, goes on or times out");
        }
        Warning::Clock { doubt: None } => tracing::info!(target: CAUSED, "the time is certain"),
        Warning::Streams { concern: Some(why) } => tracing::warn!("{why}"),
        Warning::Streams { concern: None } => tracing::info!("the streams are as they must be again"),
        Warning::CrossedSite { site } => {
            let site = sanitized(site);
            tracing::warn!(%site, "os-upgrade:desired is another site's: no configuration is delivered to hosts here");
        }
        Warning::Leading => tracing::info!("leading"),
        Warning::Adopted(settings) => {
            tracing::info!(slots = slots(settings), timezone = %settings.timezone, "changed settings are in effect");
        }
        Warning::HoldersExceedSlots { group, slots, holders } => {
            tracing::warn!(%group, slots, holders, "more holders than slots: none is granted until there are fewer");
        }
        Warning::Deposed { why } => tracing::warn!(why, "no longer leading"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use os_upgrade_kernel::reason::LockRefusal;
    use os_upgrade_protocol::HostName;
    use tracing::Event;
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;

    /// The targets of what is logged.
    #[derive(Clone, Default)]
    struct Targets(Arc<Mutex<Vec<String>>>);

    impl Layer<Registry> for Targets {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, Registry>) {
            self.0.lock().unwrap().push(event.metadata().target().to_owned());
        }
    }

    #[test]
    fn what_a_lock_server_says_is_paced() {
        let refusal = LockRefusal::Denied { lock_kind: "busy".to_owned(), value: "later".to_owned() };
        let host = HostName::new("h01").unwrap();
        let not_released = SlotFact::ReleaseRefused { host: host.clone(), refusal: refusal.clone() };
        for fact in [not_released, SlotFact::Refused { host, refusal }] {
            let targets = Targets::default();
            let log = || log_fact(&Fact::Slot(fact));
            tracing::subscriber::with_default(Registry::default().with(targets.clone()), log);
            assert_eq!(*targets.0.lock().unwrap(), [CAUSED]);
        }
    }
}
