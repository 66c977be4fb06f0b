//! Messages on the bus.

use bytes::Bytes;
use chrono::DateTime;
use os_upgrade_kernel::ControlMessage;
use os_upgrade_protocol::limits::{
    ANNOUNCEMENT_BYTES_MAX, APPLIED_BYTES_MAX, COMMAND_BYTES_MAX, CONTENT_HEADER_BYTES_MAX, ITEM_BYTES_MAX,
    ITEMS_MAX, MANIFEST_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX,
    PROGRESS_BYTES_MAX, PROGRESS_TEXT_BYTES_MAX, REPLY_BYTES_MAX, UNIT_BYTES_MAX, UNIT_ITEM_BYTES_MAX,
    VERSIONS_BYTES_MAX,
};
use os_upgrade_protocol::subject::ControlSubject;
use os_upgrade_protocol::{
    AckSubject, Announcement, Applied, Command, CommandId, Content, Hint, HostName, Manifest, Outcome,
    Output, Progress, Reply, UnitItem, Versions, subject as subjects,
};
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::control_stream::{RawControl, read};
use os_upgrade_shell::forward;
use os_upgrade_shell::inventory::{Inventory, WorkerMessage};

use crate::text::{is_object, split};

fn check_outcome(outcome: &Outcome) {
    let text = outcome.as_str();
    assert!(text.len() <= MESSAGE_BYTES_MAX);
    if let Outcome::Error(message) = outcome {
        let success =
            ["done", "reboot-required"].iter().any(|word| message.trim().eq_ignore_ascii_case(word));
        assert!(!success && !message.is_empty(), "{message:?} reads as success");
    }
    assert_eq!(Outcome::from(text.to_owned()), *outcome);
}

/// A worker's reply.
pub fn reply(data: &[u8]) {
    let Ok(reply) = Reply::parse(data) else { return };
    assert!(data.len() <= REPLY_BYTES_MAX && is_object(data));
    check_outcome(&reply.result);
    assert_eq!(Reply::parse(&reply.to_payload()).expect("a written value is read back"), reply);
}

/// A command: a line with the id in its header, then the payload.
pub fn command(data: &[u8]) {
    let [id, payload] = split(data, b'\n');
    if let Ok(id) = str::from_utf8(id).unwrap_or_default().parse::<CommandId>() {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    let Ok(command) = Command::parse(payload) else { return };
    assert!(payload.len() <= COMMAND_BYTES_MAX && is_object(payload));
    let again = Command::parse(&command.to_payload()).expect("a written value is read back");
    assert_eq!(again.action(), command.action());
    // Only whole seconds are sent.
    assert_eq!(again.not_after().map(|at| at.timestamp()), command.not_after().map(|at| at.timestamp()));
    assert_eq!(again.to_payload(), command.to_payload());
}

const NOW: Now = Now { wall: DateTime::UNIX_EPOCH, monotonic: std::time::Duration::ZERO };

/// A worker's announcement, parsed and applied to the orchestrator's inventory.
pub fn announcement(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let application = os_upgrade_protocol::ApplicationName::new("os-upgrade-debian").expect("a name");
    let mut inventory = Inventory::default();
    let payload = Bytes::copy_from_slice(data);
    let message = WorkerMessage::Announced {
        application,
        host: host.clone(),
        payload,
        sequence: 1,
        at: DateTime::UNIX_EPOCH,
    };
    let applied = inventory.apply(NOW, message);
    inventory.tick(NOW, true);
    assert!(applied.is_ok() || !inventory.view().hosts.contains_key(&host));
    let Ok(announcement) = Announcement::parse(data) else { return };
    assert!(data.len() <= ANNOUNCEMENT_BYTES_MAX && is_object(data));
    let again = Announcement::parse(&announcement.to_payload()).expect("a written value is read back");
    assert_eq!(again, announcement);
}

/// The versions of a host.
pub fn versions(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let (payload, at) = (Bytes::copy_from_slice(data), DateTime::UNIX_EPOCH);
    let mut inventory = Inventory::default();
    let applied = inventory.apply(NOW, WorkerMessage::Versions { host: host.clone(), payload, at });
    let versions = Versions::parse(data);
    // An empty message removes them.
    assert_eq!(applied.is_ok(), versions.is_ok() || data.is_empty());
    // A single key may be unusable, or the whole message.
    let recorded = inventory.versions().get(&host).map(|recorded| &recorded.versions);
    assert_eq!(recorded, Versions::parse_plain(data).as_ref().ok().map(|(versions, _)| versions));
    let Ok(versions) = versions else { return };
    assert!(data.len() <= VERSIONS_BYTES_MAX && is_object(data));
    assert_eq!(Versions::parse(&versions.to_payload()).expect("a written value is read back"), versions);
}

/// What a host is to have.
pub fn manifest(data: &[u8]) {
    let Ok(manifest) = Manifest::parse(data) else { return };
    assert!(data.len() <= MANIFEST_BYTES_MAX && manifest.items.len() <= ITEMS_MAX && is_object(data));
    let payload = manifest.to_payload();
    // A kind that is not known may be shorter than the word for that.
    if payload.len() <= MANIFEST_BYTES_MAX {
        assert_eq!(Manifest::parse(&payload).expect("a written manifest is read back"), manifest);
    }
}

/// A report of a host on what it has applied.
pub fn applied(data: &[u8]) {
    let Ok(applied) = Applied::parse(data) else { return };
    assert!(data.len() <= APPLIED_BYTES_MAX && applied.items.len() <= 2 * ITEMS_MAX && is_object(data));
    let payload = applied.to_payload();
    // As with manifests.
    if payload.len() <= APPLIED_BYTES_MAX {
        assert_eq!(Applied::parse(&payload).expect("a written report is read back"), applied);
    }
}

/// The content of an item of kind `unit`.
pub fn unit_item(data: &[u8]) {
    let Ok(unit) = UnitItem::parse(data) else { return };
    assert!(data.len() <= UNIT_ITEM_BYTES_MAX && unit.contents.len() <= UNIT_BYTES_MAX && is_object(data));
    assert!((1..=NAME_BYTES_MAX).contains(&unit.name.len()));
    assert_eq!(UnitItem::parse(&unit.to_payload()).expect("a written unit is read back"), unit);
}

/// What was sealed in an item.
pub fn content(data: &[u8]) {
    let Ok(content) = Content::parse(data) else { return };
    assert!(content.bytes.len() <= ITEM_BYTES_MAX);
    let of_files: usize = content.each_file().map(|(file, bytes)| file.bytes.min(bytes.len())).sum();
    assert!(content.files.is_empty() || of_files == content.bytes.len());
    let written = content.to_bytes();
    let header = written.len() - content.bytes.len();
    if header <= CONTENT_HEADER_BYTES_MAX {
        assert_eq!(Content::parse(&written).expect("a written content is read back"), content);
    }
}

/// The progress of a host.
pub fn progress(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let payload = Bytes::copy_from_slice(data);
    let applied = Inventory::default().apply(NOW, WorkerMessage::Progress { host, payload });
    let progress = Progress::parse(data);
    assert_eq!(applied.is_ok(), progress.is_ok());
    let Ok(progress) = progress else { return };
    assert!(data.len() <= PROGRESS_BYTES_MAX && is_object(data));
    assert!(progress.text.len() <= PROGRESS_TEXT_BYTES_MAX);
    assert!(progress.percent.is_none_or(|percent| percent <= 100));
    assert_eq!(Progress::parse(&progress.to_payload()).expect("a written value is read back"), progress);
}

/// What a command has printed. The first line is the header with the command's id.
pub fn output(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (id, payload) = (std::str::from_utf8(&data[..end]).ok(), data.get(end + 1..).unwrap_or_default());
    let Ok(output) = Output::parse(&host, id, payload) else { return };
    assert_eq!(output.command.host, host);
    let text = output.tail.to_string();
    assert!(text.len() <= OUTPUT_BYTES_MAX && text.lines().count() <= OUTPUT_LINES_MAX);
    assert!(!text.contains(|shown: char| shown.is_control() && shown != '\n' && shown != '\t'));
    let id = output.command.to_string();
    let again = Output::parse(&host, Some(&id), text.as_bytes()).expect("a written value is read back");
    assert_eq!(again, output);
}

/// A hint that a run is stopping. Any payload is a hint.
pub fn hint(data: &[u8]) {
    let hint = Hint::read(data);
    assert!(is_object(data) || hint == Hint::default());
    assert_eq!(Hint::read(&hint.to_payload()), hint);
}

/// A message of the control stream: a line each for subject, command id, in-reply-to and run, then the payload.
pub fn control(data: &[u8]) {
    let [subject, command_id, in_reply_to, run, payload] = split(data, b'\n');
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = |bytes: &[u8]| (!bytes.is_empty()).then(|| text(bytes));
    let raw = RawControl {
        sequence: 7,
        time: DateTime::UNIX_EPOCH,
        subject: text(subject),
        command_id: header(command_id),
        in_reply_to: header(in_reply_to),
        run: header(run),
        payload: Bytes::copy_from_slice(payload),
    };
    match read(&raw) {
        ControlMessage::Command { host, id } => {
            assert_eq!(
                ControlSubject::parse(&subjects::command(&host)),
                Ok(Some(ControlSubject::Command(host)))
            );
            if let Some(id) = id {
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
        ControlMessage::Reply { host, reply, in_reply_to } => {
            assert_eq!(ControlSubject::parse(&subjects::reply(&host)), Ok(Some(ControlSubject::Reply(host))));
            assert!(in_reply_to.sequence.is_none() || raw.in_reply_to.is_some());
            assert!(in_reply_to.run.is_none_or(|run| raw.run.as_deref() == Some(run.as_str())));
            match reply {
                Ok(reply) => check_outcome(&reply.result),
                Err(problem) => assert!(problem.len() <= MESSAGE_BYTES_MAX && !problem.is_empty()),
            }
        }
        ControlMessage::Leader => assert_eq!(raw.subject, subjects::LEADER),
        ControlMessage::Unknown { subject } => assert!(subject.len() <= MESSAGE_BYTES_MAX),
    }
}

/// A subject on the bus, or a token of one.
pub fn subject(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(host) = HostName::from_token(text) {
        assert!((1..=NAME_BYTES_MAX).contains(&host.as_str().len()));
        assert!(!host.as_str().chars().any(char::is_control));
        assert!(host.token().len() <= text.len(), "only necessary bytes are escaped");
        assert_eq!(HostName::from_token(&host.token()), Ok(host));
    }
    if let Ok((application, host)) = subjects::worker_parts(text) {
        assert_eq!(subjects::worker_parts(&subjects::worker(&application, &host)), Ok((application, host)));
    }
    if let Ok(host) = subjects::versions_host(text) {
        assert_eq!(subjects::versions_host(&subjects::versions(&host)), Ok(host));
    }
    if let Some(ack) = AckSubject::parse(text) {
        let short = ack.short();
        let again = AckSubject::parse(&short).expect("the short form is a form");
        assert!(!again.is_long() && short.len() <= text.len());
        assert_eq!((again.stream(), again.stream_sequence()), (ack.stream(), ack.stream_sequence()));
    }
    if let Ok(host) = subjects::presence_host(text) {
        assert_eq!(subjects::presence_host(&subjects::presence(&host)), Ok(host));
    }
}

/// A request that one instance of the orchestrator forwards to another, or the answer to it.
pub fn forward(data: &[u8]) {
    if let Ok(forwarded) = forward::decode(data) {
        assert!(is_object(data));
        if let Ok(payload) = forward::encode(&forwarded) {
            assert!(payload.len() <= forward::REQUEST_BYTES_MAX);
            assert_eq!(forward::decode(&payload), Ok(forwarded));
        }
    }
    let outcome = forward::decode_outcome(data);
    if outcome.is_ok() {
        assert!(is_object(data));
    }
    let payload = forward::encode_outcome(&outcome).expect("an outcome is written");
    assert_eq!(forward::decode_outcome(&payload), outcome);
}
