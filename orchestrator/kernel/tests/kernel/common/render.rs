//! Facts, answers, effects and states as short lines of text. Facts are shown completely: their JSON without punctuation
//! and without default settings.

use chrono::{DateTime, Utc};
use os_upgrade_console::describe;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::reboot_queue::Entry;
use os_upgrade_kernel::{
    Answer, Cause, CommandJob, CommandOrder, Effect, Explanation, Fact, Job, ManifestOrder, NodeJob,
    NodeOrder, Order, Purge, SlotJob, SlotOrder, State, View, Why, explain_entry, next_reboot,
};
use os_upgrade_protocol::{Hint, HostName};
use serde_json::Value;

use super::defaults;

/// `{"type":"slot-released","host":"h1","why":"upgraded"}` as `slot-released host=h1 why=upgraded`.
fn compact(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let tag = ["type", "kind"].into_iter().find_map(|key| Some((key, fields.get(key)?.as_str()?)));
            let rest = fields.iter().filter(|(key, _)| tag.is_none_or(|(tag, _)| tag != key.as_str()));
            let mut words: Vec<String> = tag.iter().map(|(_, word)| (*word).to_owned()).collect();
            words.extend(rest.map(|(key, value)| format!("{key}={}", nested(value))));
            words.join(" ")
        }
        Value::Array(items) => items.iter().map(nested).collect::<Vec<_>>().join(" "),
        Value::String(text) if text.contains(' ') => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn nested(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.len() == 1 && (fields.contains_key("kind")) => compact(value),
        Value::Object(_) => format!("({})", compact(value)),
        Value::Array(_) => format!("[{}]", compact(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => compact(value),
    }
}

/// A fact; for an event of a host the line begins with run and host.
pub(crate) fn fact(fact: &Fact) -> String {
    if let Fact::Run(RunFact::Host { run, host, event }) = fact {
        format!("{run} {host}: {}", compact(&serde_json::to_value(event).unwrap()))
    } else {
        let mut fact = serde_json::to_value(fact).unwrap();
        defaults::leave_out(&mut fact);
        compact(&fact)
    }
}

/// An answer.
pub(crate) fn answer(answer: &Answer) -> String {
    match answer {
        Ok(accepted) => compact(&serde_json::to_value(accepted).unwrap()),
        Err(refusal) => format!("refused: {}", describe(refusal)),
    }
}

/// The recipients of a hint, its run and its cause.
pub(crate) fn hint(hint: &Hint, hosts: &[HostName]) -> String {
    let hosts: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
    let run = hint.run.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("hint {}: {run} {:?}", hosts.join(" "), hint.cause).to_lowercase()
}

/// All effects in one line.
pub(crate) fn effects(effects: &[Effect]) -> String {
    let one = |effect: &Effect| match effect {
        Effect::Send(Order { id, not_after, boot_id }) => {
            let until = not_after.map(|at| format!(" until {}", os_upgrade_protocol::time::format(at)));
            let leave = boot_id.as_ref().map(|boot_id| format!(" to leave {boot_id}"));
            format!("send {id}{}{}", until.unwrap_or_default(), leave.unwrap_or_default())
        }
        Effect::Job(Job::LockServer(SlotJob { order, host, group })) => match order {
            SlotOrder::Lock => format!("lock {host} of {group}"),
            SlotOrder::Unlock => format!("unlock {host} of {group}"),
        },
        Effect::Job(Job::Cluster(NodeJob { order, host, fence })) => {
            let order = match order {
                NodeOrder::Check { is_cordoned: true, .. } => "check cordoned".to_owned(),
                NodeOrder::Check { is_cordoned: false, .. } => "check".to_owned(),
                NodeOrder::Evict { is_cordoned: true, .. } => "evict from cordoned".to_owned(),
                NodeOrder::Evict { is_cordoned: false, is_ours, .. } => {
                    if *is_ours {
                        "evict from ours".to_owned()
                    } else {
                        "evict from".to_owned()
                    }
                }
                NodeOrder::Hold => "hold".to_owned(),
                NodeOrder::Uncordon { ready, left, is_ours, takes_over } => {
                    let ready = if *ready { " ready" } else { "" };
                    let left = left.as_ref().map(|boot| format!(" after {boot}")).unwrap_or_default();
                    let marked = if *is_ours { "" } else { " if marked" };
                    let taken_over = takes_over.map(|fence| format!(" by {} too", fence.sequence));
                    format!("uncordon{ready}{left}{marked}{}", taken_over.unwrap_or_default())
                }
            };
            format!("{order} {host} under {}", fence.sequence)
        }
        Effect::Job(Job::RebootCommand(CommandJob { order, node, .. })) => match order {
            CommandOrder::Reboot { attempt } => format!("reboot {node} by command, attempt {attempt}"),
            CommandOrder::CheckBoot { since } => {
                format!("check boot of {node} since {}", os_upgrade_protocol::time::format(*since))
            }
        },
        Effect::NewFence { above } => format!("new fence above {above}"),
        Effect::Retract { host, sequence } => format!("retract {sequence} of {host}"),
        Effect::Purge(Purge { host, announced, removed_at: _ }) => {
            format!("purge {host} up to {announced}")
        }
        Effect::Manifest(ManifestOrder { host, revision, replaced }) => {
            format!("manifest {host} {}.{} without {replaced:?}", revision.epoch, revision.sequence)
        }
    };
    if effects.is_empty() {
        "nothing".to_owned()
    } else {
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn sentence(whys: &[Why]) -> String {
    whys.iter().map(|why| describe(why).to_string()).collect::<Vec<_>>().join("; ")
}

/// An explanation: its sentences, status and kinds, and what the run says of the host.
pub(crate) fn explanation(explanation: &Explanation, in_run: Option<&Why>) -> String {
    let Explanation { status, since, whys } = explanation;
    let time = |time: DateTime<Utc>| os_upgrade_protocol::time::format(time);
    let until =
        |until: Option<DateTime<Utc>>| until.map(|until| format!("@{}", time(until))).unwrap_or_default();
    let kind = |cause: &Cause| {
        assert_eq!(serde_json::to_value(cause).unwrap()["kind"], cause.kind(), "{cause:?}");
        cause.kind().to_owned()
    };
    let kinds: Vec<String> = whys.iter().map(|why| kind(&why.cause) + &until(why.until)).collect();
    let parts = [
        Some(sentence(whys)).filter(|sentence| !sentence.is_empty()),
        status.map(|status| format!("status={status}")),
        since.map(|since| format!("since={}", time(since))),
        (!kinds.is_empty()).then(|| format!("why={}", kinds.join(","))),
        in_run.map(|why| format!("in-run={}", kind(&why.cause))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" | ")
}

/// The status of every host of the active or last run, and every slot.
pub(crate) fn state(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(run) = state.run.as_ref().or(state.last_run.as_ref()) {
        let result = run.ended.map_or("active", |ended| ended.result.as_str());
        lines.push(format!("{} {result}", run.id));
        for (name, host) in run.hosts() {
            let reason =
                host.reason.as_ref().map(|reason| format!(": {}", describe(reason))).unwrap_or_default();
            lines.push(format!("{name} {}{reason}", host.status));
        }
    }
    for (host, slot) in &state.slots {
        lines.push(format!("slot {host}: {}", compact(&serde_json::to_value(slot).unwrap())));
    }
    lines
}

/// The entries of the reboot queue, each with what keeps it.
pub(crate) fn queue(state: &State, view: &View, now: DateTime<Utc>) -> Vec<String> {
    let next = next_reboot(state, view, now);
    let line = |(index, entry): (&u64, &Entry)| {
        let why = explain_entry(state, view, &next, (*index, entry), now);
        let why = why.map(|why| format!(": {} | {}", describe(&why), why.kind())).unwrap_or_default();
        let cancelled = if entry.cancel_requested { ", to be cancelled" } else { "" };
        format!("{index} {} {}{cancelled}{why}", entry.host, entry.status.as_str())
    };
    let lines: Vec<String> = state.reboot_queue.entries.iter().map(line).collect();
    if lines.is_empty() { vec!["empty".to_owned()] } else { lines }
}
