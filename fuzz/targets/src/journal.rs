//! Sequences of journal messages: their headers, their parts, and the resulting state.

use bytes::Bytes;
use os_upgrade_protocol::subject::JOURNAL_SNAPSHOT;
use os_upgrade_shell::journal::codec::{Kind, Message, encode, snapshot_start};
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::journal::{AppendId, Tip};

use crate::text::split;

/// Messages separated by lines `---`. Each has header lines, `Name: value`, including `Subject` and `Sequence`, then an
/// empty line and the payload.
pub fn journal(data: &[u8]) {
    follow(data);
}

/// Follows the messages, and returns how many records and snapshots were accepted.
pub fn follow(data: &[u8]) -> usize {
    let mut accepted = 0;
    let mut follower = Follower::default();
    let mut last = 0_u64;
    for raw in separated(data, b"\n---\n") {
        let (headers, payload) = headers(raw);
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let sequence =
            header("Sequence").and_then(|text| text.parse().ok()).unwrap_or(last.saturating_add(1));
        last = sequence;
        let subject = header("Subject").unwrap_or_default();
        let payload = Bytes::copy_from_slice(payload);
        let Ok(message) = Message::read(sequence, subject, header, payload) else { continue };
        assert!(1 <= message.part && message.part <= message.parts);
        assert_eq!(subject == JOURNAL_SNAPSHOT, matches!(message.kind, Kind::Snapshot { .. }));
        check_headers(sequence, &message);
        if let Some(start) = snapshot_start(sequence, &message) {
            assert!(start >= 1, "streams begin with 1");
        }
        let before = follower.state.clone();
        match follower.read(sequence, &message) {
            Ok(Some(committed)) => {
                accepted += 1;
                assert_eq!(committed.before.run, before.run);
                check_replay(&committed.before, &committed.record, &follower);
            }
            Ok(None) => accepted += usize::from(matches!(message.kind, Kind::Snapshot { .. })),
            Err(_) => {
                assert_eq!(follower.state, before, "a rejected message changes nothing");
                return accepted;
            }
        }
    }
    accepted
}

fn separated<'a>(data: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator) {
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    parts
}

fn headers(raw: &[u8]) -> (Vec<(&str, &str)>, &[u8]) {
    let end = raw.windows(2).position(|window| window == b"\n\n");
    let (head, payload) = end.map_or((raw, &b""[..]), |end| (&raw[..end], &raw[end + 2..]));
    let lines = head.split(|byte| *byte == b'\n');
    let pairs = lines.filter_map(|line| {
        let [name, value] = split(line, b':');
        Some((str::from_utf8(name).ok()?, str::from_utf8(value).ok()?.trim()))
    });
    (pairs.collect(), payload)
}

/// Checks that a message can be read back from its headers and payload.
fn check_headers(sequence: u64, message: &Message) {
    let headers = message.headers();
    let header =
        |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let again = Message::read(sequence, message.kind.subject(), header, message.payload.clone());
    assert_eq!(again.expect("a written message is read back"), *message);
}

/// Checks that an accepted record can be written and read back, and leads to the same state.
fn check_replay(before: &os_upgrade_kernel::State, record: &os_upgrade_kernel::Record, follower: &Follower) {
    let root = Tip::default();
    let mut id = 0;
    let mut next_id = || {
        id += 1;
        AppendId::new(&format!("x-{id}"))
    };
    let mut again = Follower::default();
    let mut sequence = 0;
    let snapshot = encode(Kind::Snapshot { previous: 0 }, before, &root, &mut next_id);
    for message in snapshot {
        sequence += 1;
        again.read(sequence, &message).expect("a snapshot is read back");
    }
    let tip = again.tip.clone();
    for message in encode(Kind::Record, record, &tip, &mut next_id) {
        sequence += 1;
        again.read(sequence, &message).expect("a record is read back");
    }
    assert_eq!(again.state, follower.state);
}
