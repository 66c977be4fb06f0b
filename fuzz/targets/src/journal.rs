//! Messages of the journal, one after the other: their headers, their parts, and what they make of a state.

use bytes::Bytes;
use os_upgrade_protocol::subject::JOURNAL_SNAPSHOT;
use os_upgrade_shell::journal::codec::{Kind, Message, encode, snapshot_start};
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::journal::{AppendId, Tip};

use crate::text::split;

/// Messages that are separated by lines `---`. Each has its headers, `Name: value` a line, with `Subject` and `Sequence`
/// among them, then an empty line and its payload.
pub fn journal(data: &[u8]) {
    followed(data);
}

/// How many records and snapshots were taken.
pub fn followed(data: &[u8]) -> usize {
    let mut taken = 0;
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
        written_and_read(sequence, &message);
        if let Some(start) = snapshot_start(sequence, &message) {
            assert!(start >= 1, "streams begin with 1");
        }
        let before = follower.state.clone();
        match follower.read(sequence, &message) {
            Ok(Some(committed)) => {
                taken += 1;
                assert_eq!(committed.before.run, before.run);
                replayed(&committed.before, &committed.record, &follower);
            }
            Ok(None) => taken += usize::from(matches!(message.kind, Kind::Snapshot { .. })),
            Err(_) => {
                assert_eq!(follower.state, before, "what is refused changes nothing");
                return taken;
            }
        }
    }
    taken
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

/// A message's headers say all of it.
fn written_and_read(sequence: u64, message: &Message) {
    let headers = message.headers();
    let header =
        |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let again = Message::read(sequence, message.kind.subject(), header, message.payload.clone());
    assert_eq!(again.expect("what is written is read"), *message);
}

/// A record that was taken can be written, read back, and leads to the same state.
fn replayed(before: &os_upgrade_kernel::State, record: &os_upgrade_kernel::Record, follower: &Follower) {
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
