//! Hosts.

use std::borrow::Cow;

use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::hosts::{Deferred, Host, HostSlot, KeyOfHost, LastResult};
use os_upgrade_api_types::routes::providers::HostConfiguration;
use os_upgrade_api_types::word::Word;
use os_upgrade_kernel::{HostStatus, KeyState};
use os_upgrade_protocol::HostKey;
use os_upgrade_protocol::text::sanitized;

use super::nodes;
use crate::commands::{hosts_uncordon, lock_release_with_reason};
use crate::describe::describe;
use crate::progress::progress_text;
use crate::row::{Column, Detail, Row, or_dash};
use crate::why::in_one_sentence;
use crate::zone::Zone;

/// How many versions of a host the table shows.
const VERSIONS_SHOWN: usize = 2;

impl Row for Host<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.to_string()),
        Column::new("ENROLMENT", |host, _| {
            if is_unannounced(host) { "no worker".to_owned() } else { host.enrolment.to_string() }
        }),
        Column::wide("BY", |host, _| or_dash(host.decided_by.as_deref())),
        Column::wide("SINCE", |host, zone| zone.stamp_or_dash(host.decided_at)),
        Column::wide("ANNOUNCED", |host, zone| zone.stamp_or_dash(host.announced_at)),
        Column::wide("UPGRADED", |host, zone| zone.stamp_or_dash(host.last_upgraded_at)),
        Column::new("STATUS", |host, _| or_dash(status_or_last(host).map(Word::as_str))),
        Column::wide("APPLICATIONS", |host, _| host.applications.join(", ")),
        Column::wide("VERSIONS", |host, _| first_versions(host)),
        Column::wide("LABELS", |host, _| labels(host)),
        Column::wide("GROUP", |host, _| host.group.to_string()),
        Column::wide("REBOOT", |host, _| {
            let word = match (&host.reboot_required, &host.reboot_ineffective) {
                (Some(_), _) => "required",
                (None, Some(_)) => "ineffective",
                (None, None) => "-",
            };
            host.reboot_queue.as_ref().map_or(word, |entry| entry.status.as_str()).to_owned()
        }),
        Column::wide("KEY", |host, _| or_dash(host.key.as_ref().map(|key| key.status.as_str()))),
        Column::wide("NODE", |host, _| or_dash(host.node.as_ref().map(nodes::word))),
        Column::new("REACHABILITY", |host, _| host.reachability.to_string()),
        // An instance that has started since knows only that it has heard nothing.
        Column::wide("NOT SEEN SINCE", |host, zone| {
            zone.stamp_or_dash(host.last_heard_at.or(host.unreachable_since))
        }),
        Column::text("WHY", |host, _| why(host)),
    ];
    const NONE: &'static str = "no host to show";

    fn name(&self) -> Option<String> {
        Some(self.hostname.to_string())
    }
}

/// Whether its heartbeats arrive, in words.
fn reachability(host: &Host<'_>, zone: Zone) -> String {
    let word = &host.reachability;
    match (host.last_heard_at, host.unreachable_since) {
        (Some(heard), _) => format!("{word}, not seen since {}", zone.stamp(heard)),
        (None, Some(since)) => {
            format!("{word}, not seen since this instance started; unreachable since {}", zone.stamp(since))
        }
        (None, None) => word.to_string(),
    }
}

/// The status in the active run, or else in the last one.
pub fn status_or_last<'a>(host: &'a Host<'_>) -> Option<&'a Word<HostStatus>> {
    host.status.as_ref().or_else(|| host.last_result.as_ref().map(|last| &last.status))
}

fn slot(slot: &HostSlot<'_>, host: &str) -> String {
    let HostSlot { group, since, run, entry, kept, awaits_worker: _ } = slot;
    let run = run.as_ref().map(|run| format!(", in run {run}"));
    let entry = entry.map(|entry| format!(", for entry {entry} of the reboot queue"));
    let release = kept.then(|| format!("; it keeps it until `{}`", lock_release_with_reason(group, host)));
    let more: String = [run, entry, release].into_iter().flatten().collect();
    format!("group {group} since {since}{more}")
}

fn why(host: &Host<'_>) -> String {
    in_one_sentence(host.status.as_ref(), host.why.as_ref(), &host.also)
}

fn deferred(Deferred { actor, reason, since, until }: &Deferred<'_>, zone: Zone) -> String {
    let until = zone.stamp_or(*until, "it is ended");
    format!("by {actor} since {} until {until}: {reason}", zone.stamp(*since))
}

fn key(
    KeyOfHost { status, approved, approved_by, approved_at, announced, application, refused_applications }: &KeyOfHost<'_>,
    zone: Zone,
) -> String {
    let key = |key: &Option<HostKey>| key.map_or_else(|| "none".to_owned(), |key| key.to_string());
    let by = approved_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let at = approved_at.map(|at| format!(" at {}", zone.stamp(at))).unwrap_or_default();
    let of = application.as_ref().map(|of| format!(" of {of}")).unwrap_or_default();
    let what = match status {
        Word::Known(KeyState::Pinned) => format!("{}{of}, approved{by}{at}", key(approved)),
        Word::Known(KeyState::Waiting) => format!("{}{of}, waits for approval", key(announced)),
        Word::Known(KeyState::Changed) => format!(
            "{}{of}, waits for approval in place of {}, approved{by}{at}",
            key(announced),
            key(approved)
        ),
        Word::Other(status) => format!("{} ({status})", key(announced)),
    };
    if refused_applications.is_empty() {
        return what;
    }
    format!("{what}; {} may not take configuration too", refused_applications.join(", "))
}

/// Each provider that selects it, or did, with how far that is.
fn configurations(host: &Host<'_>) -> String {
    let one = |it: &HostConfiguration<'_>| {
        let detail = it.progress.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let left_over = if it.left_over { " (left over)" } else { "" };
        format!("{} {}{left_over}{detail}", it.provider, it.progress.state)
    };
    host.configurations.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn last_run(LastResult { run, status, why, late_answer, not_reached }: &LastResult<'_>) -> String {
    let why = why.as_ref().map(|why| format!(": {}", why.text)).unwrap_or_default();
    let late = late_answer.as_ref().map(|late| format!("; {}", describe(late))).unwrap_or_default();
    let runs = if *not_reached > 1 {
        format!("; not reached in {not_reached} runs, one after the other")
    } else {
        String::new()
    };
    format!("{status} in run {run}{why}{late}{runs}")
}

/// Each version with what it is of.
fn versions(host: &Host<'_>) -> Vec<String> {
    let versions = host.versions.iter().flat_map(|versions| &versions.0);
    versions.map(|(name, version)| format!("{name} {version}")).collect()
}

/// The first versions, and how many more there are.
fn first_versions(host: &Host<'_>) -> String {
    let mut versions = versions(host);
    let more = versions.len().saturating_sub(VERSIONS_SHOWN);
    versions.truncate(VERSIONS_SHOWN);
    versions.extend((more > 0).then(|| format!("and {more} more")));
    versions.join(", ")
}

/// The applications that do not count, and why; none if all do.
fn refused(host: &Host<'_>) -> Option<String> {
    let names = host.refused_applications.join(", ");
    (!names.is_empty())
        .then(|| format!("{names}: too many applications are announced on it, and these do not count"))
}

/// `rack=r1, site=north`.
fn labels(host: &Host<'_>) -> String {
    host.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// Whether a host has no worker, and nobody has decided about it: it is a node, or holds a slot, or is in the reboot queue.
pub const fn is_unannounced(host: &Host<'_>) -> bool {
    host.without_worker && host.decided_by.is_none()
}

/// What `hosts show` says of a host.
pub fn details(host: &Host<'_>, zone: Zone) -> Vec<Detail> {
    let time = |time: Option<Stamp>| time.map(|time| zone.stamp(time));
    let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
    let full = |text: String| Some(text).filter(|text| !text.is_empty());
    let enrolment = match &host.decided_by {
        Some(by) => Some(format!("{} by {by}", host.enrolment)),
        None => (!is_unannounced(host)).then(|| host.enrolment.to_string()),
    };
    let lines = [
        ("host", Some(host.hostname.to_string())),
        ("why", Some(why(host))),
        ("worker", host.without_worker.then(|| "none has announced itself on it".to_owned())),
        ("enrolment", enrolment),
        ("decided", time(host.decided_at)),
        ("deferred", host.deferred.as_ref().map(|it| deferred(it, zone))),
        ("key", host.key.as_ref().map(|it| key(it, zone))),
        ("configuration", full(configurations(host))),
        ("announced", time(host.announced_at)),
        ("upgraded", time(host.last_upgraded_at)),
        ("last run", host.last_result.as_ref().map(last_run)),
        ("reachability", Some(reachability(host, zone))),
        ("reboot", host.reboot_required.as_ref().map(|why| format!("required: {why}"))),
        ("last reboot", host.reboot_ineffective.as_ref().map(|missed| format!("ineffective: {missed}"))),
        (
            "reboot queue",
            host.reboot_queue.as_ref().map(|entry| format!("entry {}, {}", entry.index, entry.status)),
        ),
        ("on request", host.reboots_on_request.then(|| "its worker reboots it".to_owned())),
        ("boot id", own(&host.boot_id)),
        ("applications", (!host.without_worker).then(|| host.applications.join(", "))),
        ("refused", refused(host)),
        ("labels", full(labels(host))),
        ("group", Some(host.group.to_string())),
        ("slot", host.slot.as_ref().map(|held| slot(held, &host.hostname))),
        ("status", host.status.as_ref().map(Word::to_string)),
        ("since", time(host.since)),
        ("progress", host.progress.as_ref().map(progress_text)),
        ("versions", full(versions(host).join(", "))),
        ("cluster node", own(&host.kubernetes_node)),
    ];
    let lines = lines.into_iter().filter_map(|(name, text)| Some((name, text?)));
    let lines = lines.chain(host.node.iter().flat_map(nodes::details));
    lines.map(|(name, text)| (name, zone.times_in(&text))).collect()
}

/// What a host that was given up keeps, and how an operator ends that; absent if it keeps nothing.
pub fn kept(host: &Host<'_>) -> Option<String> {
    let slot = host.slot.as_ref().filter(|slot| slot.kept);
    let node = host.node.as_ref().filter(|node| node.kept);
    let release = slot.map(|slot| lock_release_with_reason(&slot.group, &host.hostname));
    let uncordon = node.map(|_| hosts_uncordon(&host.hostname));
    let group = slot.map(|slot| sanitized(&slot.group));
    let keeps = match (group, node) {
        (None, None) => return None,
        (Some(group), None) => format!("it keeps its slot of group {group}"),
        (None, Some(_)) => "its node stays cordoned".to_owned(),
        (Some(group), Some(_)) => {
            format!("it keeps its slot of group {group}, and its node stays cordoned")
        }
    };
    let then = if slot.is_some_and(|HostSlot { awaits_worker, .. }| *awaits_worker) {
        " until its worker reports that it is done. If that never happens, look after the host, and then:"
    } else {
        ", and nothing ends that by itself. Look after the host, and then:"
    };
    let commands = release.into_iter().chain(uncordon).map(|command| format!("\n{command}"));
    Some([keeps, then.to_owned()].into_iter().chain(commands).collect())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    /// A host with these fields, and those that every host has.
    fn host(fields: Value) -> Value {
        let mut host = json!({
            "hostname": "h01", "applications": ["a"], "group": "default", "reachability": "unknown",
            "enrolment": "approved", "why": { "kind": "a kind", "text": "no run is active" },
        });
        let Value::Object(fields) = fields else { unreachable!("fields are an object") };
        host.as_object_mut().unwrap().extend(fields);
        host
    }

    #[test]
    fn what_is_kept_is_named_with_the_commands_that_end_it() {
        let note = |fields: Value| {
            let mut host = host(fields);
            host["hostname"] = json!("-h 1");
            kept(&Host::deserialize(host).unwrap())
        };
        let release = "os-upgrade lock release --group=default --id='-h 1' --reason=TEXT";
        let uncordon = "os-upgrade hosts uncordon --reason=TEXT -- '-h 1'";
        let since = "2026-11-21T01:00:00Z";
        let slot = |awaits: bool| json!({ "group": "default", "since": since, "kept": true, "awaits-worker": awaits });
        let of_worker = "it keeps its slot of group default until its worker reports that it is done. If that never happens, look \
                         after the host, and then:";
        assert_eq!(note(json!({ "slot": slot(true) })), Some(format!("{of_worker}\n{release}")));
        let by_command = "it keeps its slot of group default, and its node stays cordoned, and nothing ends that by itself. Look \
                          after the host, and then:";
        let kept =
            json!({ "slot": slot(false), "node": { "stage": "drained", "since": since, "kept": true } });
        assert_eq!(note(kept), Some(format!("{by_command}\n{release}\n{uncordon}")));
        assert_eq!(
            note(
                json!({ "slot": { "group": "default", "since": since }, "node": { "stage": "evicting", "since": since } })
            ),
            None
        );
        assert_eq!(note(json!({})), None);
    }
}
