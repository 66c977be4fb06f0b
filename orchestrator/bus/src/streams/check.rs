//! Compares an existing stream's settings with those needed. Every setting that could lose, hide, refuse or repeat a
//! message is checked; the others are up to the operator.

use async_nats::jetstream::stream::{Config, PersistenceMode};

use super::error::StreamsError;
use super::layout::{RESTORING, SITE};

/// Checks that a stream with the settings `found` can be used in place of one with `wanted`.
pub(super) fn check(found: &Config, wanted: &Config) -> Result<(), StreamsError> {
    // First, because nothing else matters about another site's stream.
    same_site(found, wanted)?;
    if found.metadata.contains_key(RESTORING) && !wanted.metadata.contains_key(RESTORING) {
        return Err(StreamsError::Restoring { stream: found.name.clone() });
    }
    let mismatch = equal(found, wanted).into_iter().chain(at_least(found, wanted)).next();
    match mismatch {
        None => Ok(()),
        Some((setting, found_value, wanted)) => {
            let stream = found.name.clone();
            Err(StreamsError::Incompatible { stream, setting, found: found_value, wanted })
        }
    }
}

fn same_site(found: &Config, wanted: &Config) -> Result<(), StreamsError> {
    match (found.metadata.get(SITE), wanted.metadata.get(SITE)) {
        (Some(found_site), Some(expected)) if found_site != expected => Err(StreamsError::OtherSite {
            stream: found.name.clone(),
            found: found_site.clone(),
            expected: expected.clone(),
        }),
        (Some(_) | None, _) => Ok(()),
    }
}

/// A setting, its value, and the required value.
type Mismatch = (&'static str, String, String);
/// A setting and its getter.
type Setting<'a> = (&'static str, &'a dyn Fn(&Config) -> String);

/// Settings that must be equal.
fn equal(found: &Config, wanted: &Config) -> Vec<Mismatch> {
    let limit = |limit: i64| limit.max(0).to_string();
    let subjects = |config: &Config| {
        let mut subjects = config.subjects.clone();
        subjects.sort();
        subjects.join(",")
    };
    // A mirror or source would add another stream's messages.
    let has_sources = |config: &Config| {
        (config.mirror.is_some() || config.sources.as_ref().is_some_and(|sources| !sources.is_empty()))
            .to_string()
    };
    let persistence = |config: &Config| match config.persist_mode.unwrap_or_default() {
        PersistenceMode::Default => "default".to_owned(),
        PersistenceMode::Async => "async".to_owned(),
    };
    let rows: [Setting<'_>; 18] = [
        ("subjects", &subjects),
        ("storage", &|config| format!("{:?}", config.storage)),
        ("retention", &|config| format!("{:?}", config.retention)),
        ("discard", &|config| format!("{:?}", config.discard)),
        ("persist-mode", &persistence),
        ("max-msgs", &|config| limit(config.max_messages)),
        // "No limit" is -1 on the server and 0 in a new configuration.
        ("max-bytes", &|config| limit(config.max_bytes)),
        ("max-age", &|config| format!("{:?}", config.max_age)),
        ("max-msgs-per-subject", &|config| limit(config.max_messages_per_subject)),
        ("max-msg-size", &|config| limit(config.max_message_size.into())),
        ("no-ack", &|config| config.no_ack.to_string()),
        ("sealed", &|config| config.sealed.to_string()),
        ("deny-delete", &|config| config.deny_delete.to_string()),
        ("deny-purge", &|config| config.deny_purge.to_string()),
        ("allow-rollup-hdrs", &|config| config.allow_rollup.to_string()),
        // Direct reads could be answered by a replica that lags behind.
        ("allow-direct", &|config| config.allow_direct.to_string()),
        ("mirror-or-sources", &has_sources),
        ("subject-transform", &|config| config.subject_transform.is_some().to_string()),
    ];
    let mismatch = |(setting, value): Setting<'_>| {
        let (found, wanted) = (value(found), value(wanted));
        (found != wanted).then_some((setting, found, wanted))
    };
    rows.into_iter().filter_map(mismatch).collect()
}

/// Settings that have a minimum.
fn at_least(found: &Config, wanted: &Config) -> Vec<Mismatch> {
    let rows = [
        // -1 means 1 000 on a server from 2.15 on.
        ("max-consumers", i64::from(found.max_consumers), i64::from(wanted.max_consumers)),
        ("replicas", count(found.num_replicas), count(wanted.num_replicas)),
    ];
    let short = rows.into_iter().filter(|(_, found, wanted)| found < wanted);
    short.map(|(setting, found, wanted)| (setting, found.to_string(), format!("at least {wanted}"))).collect()
}

fn count(replicas: usize) -> i64 {
    i64::try_from(replicas).unwrap_or(i64::MAX)
}
