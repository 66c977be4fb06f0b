//! Checks of NATS and its streams, if it can be reached.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use os_upgrade_bus::Bus;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_bus::streams::inspect::ServerAccess;
use os_upgrade_kernel::clock::CLOCK_SKEW_SECS_MAX;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::subject;
use os_upgrade_recovery::collect;
use os_upgrade_recovery::loss;
use os_upgrade_recovery::site::{connect_to, layout};
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_shell::instance::{Acknowledged, losses};
use os_upgrade_shell::journal::Tip;
use os_upgrade_site::instances::{Heartbeat, SettingsDigest, differences, outdated};
use os_upgrade_store::{Folded, History};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::{configuration, hosts, kept, limits, rights};

const NATS: &str = "NATS";

/// How long heartbeats of instances are collected: each instance sends one a second.
const LISTEN_FOR: Duration = Duration::from_secs(2);
/// The most heartbeats that are buffered.
const HEARTBEATS_MAX: usize = 64;
const SAME_SETTINGS: &str = "give all instances the same [site] and [fleet-lock] settings and reload them, and their machines the same tzdata; a change of timezone or url needs a restart";

/// A clock skew that is tolerated but worth a warning, in seconds.
const SKEW_WARNING_SECS: i64 = 5;

pub(super) async fn examine(settings: &Settings, folded: Option<&Folded>) -> Vec<Check> {
    let managed = match settings.nats.mode() {
        NatsMode::External { .. } => None,
        NatsMode::Managed => match managed_nats::running(&settings.store.nats()).await {
            Ok(Some(url)) => Some(url),
            Ok(None) => {
                let advice = "start the orchestrator to have its streams checked";
                return vec![Check::warning(NATS, "the managed nats-server is not running", advice)];
            }
            Err(error) => {
                let advice = "run this as the orchestrator's user";
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
        checks.push(access(bus.server_access()));
    }
    checks.push(limits::messages(&bus).await);
    let examined = streams(&bus, settings, folded, &mut checks).await;
    if let Err(error) = examined {
        let advice = match error {
            StreamsError::NotAnOrchestrator { .. } => "set [nats] credentials to an orchestrator's",
            StreamsError::NoJetStream
            | StreamsError::Unusable { .. }
            | StreamsError::Incompatible { .. }
            | StreamsError::OtherSite { .. }
            | StreamsError::Restoring { .. }
            | StreamsError::Journal(_) => "check the log of NATS: JetStream may be off, or its disk full",
        };
        checks.push(Check::problem(NATS, with_causes(&error), advice));
    }
    checks
}

/// Whether NATS lets other clients do what only the orchestrator should.
fn access(open: ServerAccess) -> Check {
    const NAME: &str = "who may use NATS";
    const ADVICE: &str =
        "configure it with `os-upgrade nats-config`, so that each host can only speak for itself";
    match open {
        ServerAccess { wants_credentials: true, wants_tls: true, .. } => {
            Check::ok(NAME, "clients with credentials, over TLS")
        }
        ServerAccess { is_loopback: true, .. } => Check::ok(NAME, "programs on its machine"),
        ServerAccess { wants_credentials: false, .. } => {
            Check::warning(NAME, "anybody who can reach it can command every host", ADVICE)
        }
        ServerAccess { wants_tls: false, .. } => {
            Check::warning(NAME, "there is no TLS: anybody on the network path can listen", ADVICE)
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
            Some(Ok(())) => Check::ok(check, "configured as needed"),
            None => Check::ok(check, "does not exist yet"),
            Some(Err(error)) => Check::problem(check, error.to_string(), stream_advice(&error)),
        });
    }
    checks.push(loss_check(bus, settings, folded).await?);
    checks.extend(journal(bus).await);
    checks.extend(rights::examine(bus).await);
    checks.extend(configuration::examine_stream(bus, settings.site.name.as_str()).await);
    let lease = match bus.lease_holder().await? {
        Some(holder) if holder.restores => format!("instance {} restores the streams", holder.instance),
        Some(holder) => format!("instance {} leads", holder.instance),
        None => "no instance leads".to_owned(),
    };
    checks.push(Check::ok("lease", lease));
    checks.extend(instances(bus, settings).await);
    checks.extend(clock(bus).await);
    checks.extend(limits::examine(bus, settings.nats.replicas.get()).await);
    Ok(())
}

fn stream_advice(error: &StreamsError) -> &'static str {
    match error {
        StreamsError::Incompatible { .. } => {
            "change that setting with `nats stream edit`, or recreate the stream"
        }
        StreamsError::OtherSite { .. } => "check [site] name and [nats] url",
        StreamsError::Restoring { .. } => "run `os-upgrade restore` again",
        StreamsError::NoJetStream
        | StreamsError::NotAnOrchestrator { .. }
        | StreamsError::Unusable { .. }
        | StreamsError::Journal(_) => "check NATS",
    }
}

async fn loss_check(bus: &Bus, settings: &Settings, folded: Option<&Folded>) -> Result<Check, StreamsError> {
    const NAME: &str = "acknowledged data";
    let Some(folded) = folded else {
        return Ok(Check::ok(NAME, "the store has none to compare with"));
    };
    let known = Acknowledged::of_store(&folded.position.knowledge()).with(&Tip::default(), &folded.state);
    let losses = losses(&known, &bus.inspect(&known).await?);
    if losses.is_empty() {
        return Ok(Check::ok(NAME, "everything that the store has is in the streams"));
    }
    let mut found: Vec<_> = losses.iter().map(ToString::to_string).collect();
    if let Ok(history) = History::open(&settings.store.database()).await {
        found.extend(loss::describe_losses(bus, &history, &losses).await);
    }
    let advice = "recover the lost data, or go on from the store with `os-upgrade restore --from-store`";
    Ok(Check::problem(NAME, found.join("; "), advice))
}

async fn journal(bus: &Bus) -> Vec<Check> {
    const NAME: &str = "journal";
    match collect::fold_journal(bus).await {
        Ok(Ok(follower)) => {
            let (end, format) = (follower.tip.sequence, follower.format);
            let read = match end {
                0 => Check::ok(NAME, "empty"),
                _ => Check::ok(
                    NAME,
                    format!("readable up to its end, message {end}; its newest format is {format}"),
                ),
            };
            // Until the first leader has written to the journal, the state has no settings.
            let hosts = match follower.tip.sequence {
                0 => Vec::new(),
                _ => hosts::examine(bus, &follower.state).await,
            };
            let delivery = configuration::examine(&follower.state);
            [read].into_iter().chain(hosts).chain(kept::examine(&follower.state)).chain(delivery).collect()
        }
        Ok(Err(error)) => vec![Check::problem(NAME, with_causes(&error), error.advice())],
        Err(error) => vec![Check::problem(NAME, with_causes(&error), "check NATS")],
    }
}

/// What running instances say in their heartbeats: why they are not ready, and how their settings differ from this
/// configuration.
async fn instances(bus: &Bus, settings: &Settings) -> Vec<Check> {
    const NAME: &str = "instances";
    let (sender, mut payloads) = mpsc::channel(HEARTBEATS_MAX);
    let stop = CancellationToken::new();
    let mut heard = BTreeMap::new();
    let mut not_ready = BTreeMap::new();
    let mut formats = BTreeMap::new();
    let listening = async {
        tokio::join!(bus.read_instances(stop.clone(), sender), async {
            while let Some(payload) = payloads.recv().await {
                let Some(beat) = Heartbeat::read(&payload) else { continue };
                heard.extend(beat.settings.map(|settings| (beat.instance.clone(), settings)));
                formats.insert(beat.instance.clone(), beat.reads_format);
                // A copy of the instance may be ready, which must not hide that this one is not.
                not_ready.extend(beat.not_ready.map(|reason| (beat.instance, reason)));
            }
        })
    };
    // Heartbeats do not end, so this always times out.
    drop(tokio::time::timeout(LISTEN_FOR, listening).await);
    let found = format!("{} heard", heard.len());
    let own = SettingsDigest::of(
        &settings.for_kernel(),
        settings.lock_server().as_deref(),
        &os_upgrade_zones::read().zones,
    );
    let named = heard.iter().map(|(instance, settings)| (instance.as_str(), settings));
    let differences = differences(named.chain([("this configuration", &own)]));
    let checks = not_ready.into_iter().map(|(instance, reason)| {
        Check::problem(
            format!("instance {instance}"),
            reason,
            "see \"When something is wrong\" and \"When something is lost\" in the operations manual",
        )
    });
    let same = if differences.is_empty() {
        Check::ok(NAME, found)
    } else {
        Check::warning(NAME, format!("{found}; {}", differences.join("; ")), SAME_SETTINGS)
    };
    let older = outdated(formats.iter().map(|(instance, format)| (instance.as_str(), *format)));
    let older =
        older.map(|older| Check::warning("versions", older, "finish the upgrade of the orchestrators"));
    [same].into_iter().chain(older).chain(checks).collect()
}

async fn clock(bus: &Bus) -> Option<Check> {
    const NAME: &str = "clock";
    let before = Utc::now();
    let theirs = bus.server_time(subject::JOURNAL_STREAM).await?;
    // The server replied at some time between `before` and now: half way is assumed.
    let skew = (before + (Utc::now() - before) / 2) - theirs;
    let millis = skew.num_milliseconds();
    let side = if millis < 0 { "behind" } else { "ahead of" };
    let found = format!("{} ms {side} NATS", millis.unsigned_abs());
    let advice = "synchronize both with NTP: no run starts while they differ by more than 30 s";
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
            (false, false, false, "anybody who can reach it can command every host"),
            (false, true, false, "anybody who can reach it can command every host"),
            (true, false, false, "there is no TLS: anybody on the network path can listen"),
            (true, true, false, "clients with credentials, over TLS"),
        ] {
            let check = access(ServerAccess { wants_credentials, wants_tls, is_loopback });
            assert_eq!(check.found, found);
            assert_eq!(check.advice.is_none(), is_loopback || wants_credentials && wants_tls);
        }
    }
}
