//! What NATS holds, where it can be asked.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use os_upgrade_bus::Bus;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_bus::streams::inspect::Openness;
use os_upgrade_kernel::view::CLOCK_SKEW_SECS_MAX;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::subject;
use os_upgrade_recovery::collect;
use os_upgrade_recovery::loss;
use os_upgrade_recovery::site::{connect_to, layout};
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_shell::journal::Tip;
use os_upgrade_shell::node::{Known, losses};
use os_upgrade_site::instances::{Heartbeat, SettingsDigest, differences};
use os_upgrade_store::{Folded, History};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::hosts;

const NATS: &str = "NATS";

/// How long instances are listened to: each speaks once a second.
const LISTEN_FOR: Duration = Duration::from_secs(2);
/// Heartbeats that wait to be looked at.
const HEARD_MAX: usize = 64;
const SAME_SETTINGS: &str = "give all instances the same [site] and [fleet-lock] settings, and reload them, or for timezone and url start them anew";

/// A skew that is not in the way yet, in seconds.
const SKEW_WARNING_SECS: i64 = 5;

pub(super) async fn examine(settings: &Settings, folded: Option<&Folded>) -> Vec<Check> {
    let managed = match settings.nats.mode() {
        NatsMode::External { .. } => None,
        NatsMode::Managed => match managed_nats::running(&settings.store.nats()).await {
            Ok(Some(url)) => Some(url),
            Ok(None) => {
                let advice = "start the orchestrator to have its streams looked at";
                return vec![Check::warning(NATS, "the managed nats-server does not run", advice)];
            }
            Err(error) => {
                let advice = "run this as the user that the orchestrator runs as";
                return vec![Check::problem(NATS, with_causes(&error), advice)];
            }
        },
    };
    let bus = match connect_to(settings, managed).await {
        Ok(bus) => bus,
        Err(error) => {
            return vec![Check::problem(
                NATS,
                with_causes(&error),
                "start it, or check [nats] url, credentials and ca",
            )];
        }
    };
    let mut checks = vec![Check::ok(NATS, bus.server())];
    if let NatsMode::External { .. } = settings.nats.mode() {
        checks.push(access(bus.openness()));
    }
    let examined = streams(&bus, settings, folded, &mut checks).await;
    if let Err(error) = examined {
        let advice = match error {
            StreamsError::NotForThis { .. } => "give an orchestrator's [nats] credentials",
            StreamsError::NoJetStream
            | StreamsError::Unusable { .. }
            | StreamsError::Incompatible { .. }
            | StreamsError::OtherSite { .. }
            | StreamsError::Restoring { .. }
            | StreamsError::Journal(_) => "check its log: JetStream may be off, or its disk full",
        };
        checks.push(Check::problem(NATS, with_causes(&error), advice));
    }
    checks
}

/// Whether others may do on NATS what the orchestrator may.
fn access(open: Openness) -> Check {
    const NAME: &str = "who may use NATS";
    const ADVICE: &str =
        "have it configured by `os-upgrade nats-config`, so that each host speaks for itself only";
    match open {
        Openness { wants_credentials: true, wants_tls: true, .. } => {
            Check::ok(NAME, "those with credentials, over TLS")
        }
        Openness { is_loopback: true, .. } => Check::ok(NAME, "programs on its machine"),
        Openness { wants_credentials: false, .. } => {
            Check::warning(NAME, "whoever reaches it may command every host", ADVICE)
        }
        Openness { wants_tls: false, .. } => {
            Check::warning(NAME, "whoever is on the way can listen: there is no TLS", ADVICE)
        }
    }
}

async fn streams(
    bus: &Bus,
    settings: &Settings,
    folded: Option<&Folded>,
    checks: &mut Vec<Check>,
) -> Result<(), StreamsError> {
    for (name, found) in bus.check_streams(&layout(settings)).await? {
        let check = format!("stream {name}");
        checks.push(match found {
            Some(Ok(())) => Check::ok(check, "as it has to be"),
            None => Check::ok(check, "not there yet"),
            Some(Err(error)) => Check::problem(check, error.to_string(), stream_advice(&error)),
        });
    }
    checks.push(lost(bus, settings, folded).await?);
    checks.extend(journal(bus).await);
    match bus.lease_holder().await? {
        Some(holder) => {
            checks.push(Check::ok("lease", format!("instance {} leads", holder.instance)));
            checks.push(instances(bus, settings).await);
        }
        None => checks.push(Check::ok("lease", "nobody leads")),
    }
    checks.extend(clock(bus).await);
    Ok(())
}

fn stream_advice(error: &StreamsError) -> &'static str {
    match error {
        StreamsError::Incompatible { .. } => {
            "change that setting with `nats stream edit`, or make the stream anew"
        }
        StreamsError::OtherSite { .. } => "check [site] name and [nats] url",
        StreamsError::Restoring { .. } => "run the restoration again",
        StreamsError::NoJetStream
        | StreamsError::NotForThis { .. }
        | StreamsError::Unusable { .. }
        | StreamsError::Journal(_) => "check NATS",
    }
}

async fn lost(bus: &Bus, settings: &Settings, folded: Option<&Folded>) -> Result<Check, StreamsError> {
    const NAME: &str = "acknowledged data";
    let Some(folded) = folded else {
        return Ok(Check::ok(NAME, "the store knows of none to compare with"));
    };
    let known = Known::of_store(&folded.position.knowledge()).with(&Tip::default(), &folded.state);
    let losses = losses(&known, &bus.inspect(&known).await?);
    if losses.is_empty() {
        return Ok(Check::ok(NAME, "everything that the store has is in the streams"));
    }
    let mut found: Vec<_> = losses.iter().map(ToString::to_string).collect();
    if let Ok(history) = History::open(&settings.store.database()).await {
        found.extend(loss::what_is_lost(bus, &history, &losses).await);
    }
    let advice = "bring the lost data back, or go on from the store with `os-upgrade restore --from-store`";
    Ok(Check::problem(NAME, found.join("; "), advice))
}

async fn journal(bus: &Bus) -> Vec<Check> {
    const NAME: &str = "journal";
    match collect::fold_journal(bus).await {
        Ok(Ok(follower)) => {
            let read = Check::ok(NAME, format!("readable up to its end, message {}", follower.tip.sequence));
            // Before the first leader there are no settings in it.
            let hosts = match follower.tip.sequence {
                0 => None,
                _ => Some(hosts::examine(bus, &follower.state).await),
            };
            [read].into_iter().chain(hosts).collect()
        }
        Ok(Err(error)) => {
            let advice = "use the version of the program that wrote it, or go on from the store or a backup with \
                          `os-upgrade restore`";
            vec![Check::problem(NAME, with_causes(&error), advice)]
        }
        Err(error) => vec![Check::problem(NAME, with_causes(&error), "check NATS")],
    }
}

/// What the instances that run say of themselves, while they are listened to.
async fn instances(bus: &Bus, settings: &Settings) -> Check {
    const NAME: &str = "instances";
    let (sender, mut payloads) = mpsc::channel(HEARD_MAX);
    let stop = CancellationToken::new();
    let mut told = BTreeMap::new();
    let listening = async {
        tokio::join!(bus.read_instances(stop.clone(), sender), async {
            while let Some(payload) = payloads.recv().await {
                let heartbeat = Heartbeat::read(&payload);
                told.extend(heartbeat.and_then(|beat| Some((beat.instance, beat.settings?))));
            }
        })
    };
    // They go on speaking.
    drop(tokio::time::timeout(LISTEN_FOR, listening).await);
    let found = format!("{} heard", told.len());
    let own = SettingsDigest::of(&settings.for_kernel(), settings.lock_server().as_deref());
    let named = told.iter().map(|(instance, settings)| (instance.as_str(), settings));
    let differences = differences(named.chain([("this configuration", &own)]));
    if differences.is_empty() {
        return Check::ok(NAME, found);
    }
    Check::warning(NAME, format!("{found}; {}", differences.join("; ")), SAME_SETTINGS)
}

async fn clock(bus: &Bus) -> Option<Check> {
    const NAME: &str = "clock";
    let before = Utc::now();
    let theirs = bus.server_time(subject::JOURNAL_STREAM).await?;
    // The answer was made between question and now.
    let skew = (before + (Utc::now() - before) / 2) - theirs;
    let found = format!("{} ms ahead of NATS", skew.num_milliseconds());
    let advice = "let both keep their time with NTP: nothing is started while they differ by more than 30 s";
    Some(if skew.num_seconds().abs() > CLOCK_SKEW_SECS_MAX {
        Check::problem(NAME, found, advice)
    } else if skew.num_seconds().abs() >= SKEW_WARNING_SECS {
        Check::warning(NAME, found, advice)
    } else {
        Check::ok(NAME, found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_nats_is_a_warning() {
        for (wants_credentials, wants_tls, is_loopback, found) in [
            (false, false, true, "programs on its machine"),
            (false, false, false, "whoever reaches it may command every host"),
            (false, true, false, "whoever reaches it may command every host"),
            (true, false, false, "whoever is on the way can listen: there is no TLS"),
            (true, true, false, "those with credentials, over TLS"),
        ] {
            let check = access(Openness { wants_credentials, wants_tls, is_loopback });
            assert_eq!(check.found, found);
            assert_eq!(check.advice.is_none(), is_loopback || wants_credentials && wants_tls);
        }
    }
}
