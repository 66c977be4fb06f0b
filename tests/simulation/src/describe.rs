//! Events, actions and requests, each in one short line.

#![allow(clippy::wildcard_enum_match_arm, reason = "all others are shown by their debug output")]

use std::fmt::{Display, Write as _};

use os_upgrade_console::summary;
use os_upgrade_kernel::Record;
use os_upgrade_shell::control_stream::RawControl;
use os_upgrade_shell::dispatch::Dispatch;
use os_upgrade_shell::instance::{Action, Event};
use os_upgrade_shell::journal::codec::{Kind, Message};
use os_upgrade_worker_rules as rules;

use crate::request::{RequestKind, WorkerRequest};

/// An event of an orchestrator; none for uninteresting ones.
pub(crate) fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Tick | Event::Worker(_) => {
            return None;
        }
        Event::Journal { sequence, message: Ok(message), .. } => {
            format!("journal {sequence} {}", content(message))
        }
        Event::Control(raw) => format!("control {}", control(raw)),
        Event::Inspected { streams: Ok(streams), .. } => {
            let last = |stream: Option<os_upgrade_shell::instance::StreamFacts>| {
                stream.map_or(0, |stream| stream.last_sequence)
            };
            format!("streams end at {} and {}", last(streams.journal), last(streams.control))
        }
        other => plain(&format!("{other:?}")),
    })
}

/// An action of an orchestrator; none for uninteresting ones.
pub(crate) fn action(action: &Action) -> Option<String> {
    Some(match action {
        Action::Project { .. } | Action::PublishState | Action::Lease(_) => return None,
        Action::Append { expected, message } => format!("append after {expected} {}", content(message)),
        Action::Dispatch(Dispatch::Command { epoch, fence, order }) => {
            format!("send {} under fence {fence}, epoch {epoch}", order.id)
        }
        Action::Inspect(known) => {
            format!("inspect, knowing {} and {}", known.journal.sequence, known.control)
        }
        other => plain(&format!("{other:?}")),
    })
}

/// A request that reaches the bus or the lock server; none for uninteresting ones.
pub(crate) fn request(what: &RequestKind) -> Option<String> {
    Some(match what {
        RequestKind::Lease(_)
        | RequestKind::Inspect(_)
        | RequestKind::Worker(WorkerRequest::InProgress { .. })
        | RequestKind::ReadJournal { .. } => {
            return None;
        }
        RequestKind::Append { expected, message } => {
            format!("append {} after {expected}", message.append_id)
        }
        RequestKind::Command { fence, order, .. } => format!("{} under fence {fence}", order.id),
        RequestKind::Worker(WorkerRequest::Reply { payload, answers, .. }) => {
            format!("reply {} to {:?}", String::from_utf8_lossy(payload), answers.command)
        }
        other => plain(&format!("{other:?}")),
    })
}

/// An event of a worker; none for uninteresting ones.
pub(crate) fn worker_event(event: &rules::Event) -> Option<String> {
    Some(match event {
        rules::Event::Tick | rules::Event::VersionsRead { .. } => return None,
        rules::Event::CommandReceived(received) => {
            let payload = String::from_utf8_lossy(&received.payload);
            format!("command {}, delivery {}: {payload}", received.sequence, received.delivered)
        }
        rules::Event::Started { loaded: rules::Loaded::File(file), boot_id } => {
            format!("started in {}, {}", boot_id.0, state(file))
        }
        other => plain(&format!("{other:?}")),
    })
}

/// An action of a worker; none for uninteresting ones.
pub(crate) fn worker_action(action: &rules::Action) -> Option<String> {
    Some(match action {
        rules::Action::InProgress { .. } | rules::Action::ReadVersions => return None,
        rules::Action::SaveState(file) => format!("save: {}", state(file)),
        rules::Action::Reply(reply) => {
            format!("reply to {}: {}", reply.sequence, String::from_utf8_lossy(&reply.payload))
        }
        rules::Action::Log(rules::LogMessage::VersionsUnchanged) => return None,
        rules::Action::Log(note) => format!("\"{note}\""),
        other => plain(&format!("{other:?}")),
    })
}

fn state(file: &rules::StateFile) -> String {
    let mut text = "state".to_owned();
    let mut add = |name: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {value}");
        }
    };
    add("settled", file.settled.as_ref().map(|it| &it.sequence as &dyn Display));
    add("prepared at", file.prepared.as_ref().map(|it| &it.sequence as &dyn Display));
    add("reboot due by", file.reboot_due.as_ref().map(|it| &it.sequence as &dyn Display));
    if let Some(current) = &file.current {
        let _ = write!(text, ", at {} {:?}", current.position.sequence, current.phase);
    }
    text
}

fn control(raw: &RawControl) -> String {
    let subject = raw.subject.trim_start_matches("os-upgrade:control.");
    let id = raw.command_id.as_deref().unwrap_or("");
    let payload = String::from_utf8_lossy(&raw.payload);
    if id.is_empty() {
        format!("{} {subject} {payload}", raw.sequence)
    } else {
        format!("{} {id}", raw.sequence)
    }
}

/// The content of a journal message.
fn content(message: &Message) -> String {
    let id = &message.append_id;
    if message.kind != Kind::Record {
        return format!("{id} snapshot");
    }
    match serde_json::from_slice::<Record>(&message.payload) {
        Ok(record) if record.facts.is_empty() => format!("{id} barrier"),
        Ok(record) => {
            let facts: Vec<String> = record.facts.iter().map(|fact| summary(fact).1).collect();
            format!("{id} [{}]", facts.join(", "))
        }
        Err(_) => format!("{id} deflated"),
    }
}

/// Debug output without the names of wrappers.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for wrapper in ["HostName", "GroupName", "RunId", "AppendId", "ClientId", "ApplicationName"] {
        text = text.replace(&format!("{wrapper}(\""), "").replace("\")", "");
    }
    text
}
