//! The journal: messages are read back, in parts and across snapshots; a broken chain is refused; an append whose
//! answer is lost is resolved by reading.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use os_upgrade_kernel::enrolment::{APPROVED_AT_ONCE_MAX, ENROLLED_MAX};
use os_upgrade_kernel::fact::{ConfigFact, EnrolmentFact};
use os_upgrade_kernel::format::NEWEST;
use os_upgrade_kernel::{Config, Fact, Record, State};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::journal::append::{AppendOutcome, Appender, ReadBack, Step};
use os_upgrade_shell::journal::codec::{self, Kind, Message, encode, snapshot_start};
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::journal::{AppendId, DecodeError, JournalError, Tip};

fn now(millis: u64) -> Now {
    Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_millis(millis) }
}

/// A record that configures `count` applications; many of them do not fit into one message.
fn record(seed: &str, count: usize) -> Record {
    let name = |index: usize| {
        // Names that differ deflate little.
        let noise = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!(r#"{{"name":"{seed}-{noise:x}-{:x}"}}"#, noise.rotate_left(17))
    };
    let names: Vec<String> = (0..count).map(name).collect();
    let config: Config =
        serde_json::from_str(&format!(r#"{{"worker-applications":[{}]}}"#, names.join(","))).unwrap();
    let fact = Fact::Config(ConfigFact::Replaced {
        config: Some(config),
        actor: "test".to_owned(),
        difference: Vec::new(),
    });
    Record { at: DateTime::UNIX_EPOCH, control: 7, facts: vec![fact] }
}

/// A stream that stores a message if the expected sequence is its last. Deleted messages are `None`.
#[derive(Default)]
struct Stream(Vec<Option<Message>>);

impl Stream {
    fn publish(&mut self, expected: u64, message: Message) -> AppendOutcome {
        if self.0.len() as u64 != expected {
            return AppendOutcome::Unknown;
        }
        self.0.push(Some(message));
        AppendOutcome::Stored { sequence: self.0.len() as u64 }
    }

    fn read(&self, sequence: u64) -> ReadBack {
        let index = usize::try_from(sequence).unwrap() - 1;
        let mut messages = (sequence..).zip(self.0.iter().skip(index));
        match messages.find_map(|(sequence, message)| Some((sequence, message.as_ref()?))) {
            Some((sequence, message)) => {
                ReadBack::Found { sequence, append_id: Some(message.append_id.clone()) }
            }
            None => ReadBack::Absent { last: self.0.len() as u64 },
        }
    }

    fn last(&self) -> &Message {
        self.0.last().and_then(Option::as_ref).unwrap()
    }

    /// Somebody else's message that has been deleted again.
    fn stray(&mut self) {
        self.0.push(None);
    }

    fn follow(&self, from: usize) -> Result<Follower, JournalError> {
        let mut follower = Follower::default();
        for (index, message) in self.0.iter().enumerate().skip(from - 1) {
            let Some(message) = message else { continue };
            let headers = message.headers();
            let lookup = |name: &str| {
                headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value.as_str())
            };
            let sequence = index as u64 + 1;
            let subject = message.kind.subject();
            let read = Message::read(sequence, subject, lookup, message.payload.clone())?;
            assert_eq!(read, *message, "headers are complete");
            follower.read(sequence, &read)?;
        }
        Ok(follower)
    }

    /// Carries out `step` and the steps that follow, losing no answer.
    fn carry_out(&mut self, appender: &mut Appender, mut step: Step) -> Option<Tip> {
        loop {
            step = match step {
                Step::Publish { expected, message } => {
                    let append_id = message.append_id.clone();
                    let outcome = self.publish(expected, message);
                    appender.published(&append_id, &outcome)?
                }
                Step::ReadBack { sequence } => appender.read_back(sequence, &self.read(sequence), now(0))?,
                Step::Done { tip, .. } => return Some(tip),
                Step::Deposed => return None,
            }
        }
    }

    fn append(&mut self, appender: &mut Appender, record: &Record, tip: &Tip) -> Option<Tip> {
        let step = appender.record(record, tip, now(0));
        self.carry_out(appender, step)
    }
}

#[test]
fn records_small_and_large_are_read_back() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let mut tip = Tip::default();
    let mut expected = State::default();
    for (seed, count) in [("small", 1), ("deflated", 500), ("split", 60_000), ("after", 2)] {
        let record = record(seed, count);
        expected.apply_record(&record).unwrap();
        tip = stream.append(&mut appender, &record, &tip).unwrap();
        let follower = stream.follow(1).unwrap();
        assert_eq!(follower.state, expected, "{seed}");
        assert_eq!(follower.tip, tip, "{seed}");
    }
    assert!(stream.0.iter().flatten().any(|message| message.parts > 1), "the large one was split");
}

#[test]
fn incomplete_parts_are_ignored() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("first", 1), &Tip::default()).unwrap();
    let split = encode(Kind::Record, &record("lost", 60_000), &tip, {
        let mut count = 0;
        move || {
            count += 1;
            AppendId::new(&format!("crashed-{count}"))
        }
    });
    let stored = split.len() - 1;
    assert!(stored > 0, "it is split");
    stream.0.extend(split.into_iter().take(stored).map(Some));
    let follower = stream.follow(1).unwrap();
    let mut successor = Appender::new("b");
    stream.append(&mut successor, &record("second", 1), &follower.tip).unwrap();

    let mut expected = State::default();
    expected.apply_record(&record("first", 1)).unwrap();
    expected.apply_record(&record("second", 1)).unwrap();
    assert_eq!(stream.follow(1).unwrap().state, expected);
}

#[test]
fn snapshot_gives_the_same_state() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("before", 60_000), &Tip::default()).unwrap();
    let state = stream.follow(1).unwrap().state;
    let start = tip.sequence + 1;
    let step = appender.snapshot(&state, 0, &tip, now(0));
    let tip = stream.carry_out(&mut appender, step).unwrap();
    let last = stream.last();
    assert!(last.parts > 1, "the snapshot was split");
    assert_eq!(snapshot_start(tip.sequence, last), Some(start));
    stream.append(&mut appender, &record("after", 3), &tip).unwrap();

    let whole = stream.follow(1).unwrap();
    let short = stream.follow(usize::try_from(start).unwrap()).unwrap();
    assert_eq!(whole.state, short.state);
    assert_eq!((whole.tip, whole.snapshot), (short.tip, start));
    assert_eq!((short.snapshot, short.weight_since_snapshot), (start, 5));
}

/// Another instance trims the journal below a snapshot while this one lags behind.
#[test]
fn lagging_follower_goes_on_from_snapshot() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("first", 1), &Tip::default()).unwrap();
    let mut behind = stream.follow(1).unwrap();
    let tip = stream.append(&mut appender, &record("missed", 60_000), &tip).unwrap();
    let start = tip.sequence + 1;
    let whole = stream.follow(1).unwrap().state;
    let step = appender.snapshot(&whole, 0, &tip, now(0));
    let tip = stream.carry_out(&mut appender, step).unwrap();
    stream.append(&mut appender, &record("after", 3), &tip).unwrap();

    let before = behind.state.clone();
    let mut shown = Vec::new();
    let mut records = Vec::new();
    for (sequence, message) in (1..).zip(stream.0.iter().flatten()).filter(|(sequence, _)| *sequence >= start)
    {
        records.extend(behind.read(sequence, message).unwrap());
        shown.push(behind.state == before);
    }
    assert_eq!(behind.state, stream.follow(1).unwrap().state);
    let parts = usize::try_from(tip.sequence - start).unwrap();
    assert!(parts > 0 && shown[..parts].iter().all(|unchanged| *unchanged), "until the snapshot is complete");
    assert_eq!(records.iter().map(|record| record.follows).collect::<Vec<_>>(), [tip.sequence]);

    // Without a snapshot, what is missing is lost.
    let mut behind = stream.follow(1).unwrap();
    let lost = encode(Kind::Record, &record("lost", 1), &behind.tip, || AppendId::new("x"));
    let later = encode(
        Kind::Record,
        &record("later", 1),
        &Tip { sequence: 0, append_id: Some(lost[0].append_id.clone()) },
        || AppendId::new("y"),
    );
    let sequence = behind.tip.sequence + 2;
    let error = behind.read(sequence, &later[0]).unwrap_err();
    assert!(matches!(error, JournalError::Gap { .. }), "{error:?}");
}

/// Decisions about the most hosts, with the longest names, still fit into a snapshot.
#[test]
fn snapshot_of_the_most_hosts_is_read_back() {
    let name = |number: usize| HostName::new(&format!("{number:0>255}")).unwrap();
    let mut state = State::default();
    for start in (0..ENROLLED_MAX).step_by(APPROVED_AT_ONCE_MAX) {
        let hosts = (start..start + APPROVED_AT_ONCE_MAX).map(name).collect();
        let approved = Fact::Enrolment(EnrolmentFact::HostsApproved { hosts, actor: "x".repeat(1_000) });
        state.apply(DateTime::UNIX_EPOCH, &approved).unwrap();
    }
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let step = appender.snapshot(&state, 0, &Tip::default(), now(0));
    stream.carry_out(&mut appender, step).unwrap();
    assert_eq!(stream.follow(1).unwrap().state.enrolment.approved.len(), ENROLLED_MAX);
}

#[test]
fn unfinished_snapshot_points_to_the_previous() {
    let tip = Tip { sequence: 41, append_id: Some(AppendId::new("x")) };
    let parts =
        |previous| encode(Kind::Snapshot { previous }, &record("s", 60_000), &tip, || AppendId::new("y"));
    let first = &parts(0)[0];
    assert_eq!(snapshot_start(42, first), None);
    let first = &parts(9)[0];
    assert_eq!(snapshot_start(42, first), Some(9));
}

fn read(sequence: u64, part: &str, previous_snapshot: &str) -> Result<Message, JournalError> {
    let header = |name: &str| match name {
        codec::APPEND_ID => Some("a"),
        codec::FORMAT_HEADER => Some("2"),
        codec::PART => Some(part).filter(|part| !part.is_empty()),
        codec::PREVIOUS_SNAPSHOT => Some(previous_snapshot).filter(|previous| !previous.is_empty()),
        _ => None,
    };
    Message::read(sequence, "os-upgrade:journal.snapshot", header, Bytes::new())
}

#[test]
fn impossible_parts_are_refused() {
    for (sequence, part) in [(5, "5/5"), (1, "1/512"), (1, "")] {
        assert!(read(sequence, part, "0").is_ok(), "{part} at {sequence}");
    }
    // A set that begins before the stream, one with too many parts, and invalid ones.
    for (sequence, part) in [(4, "5/5"), (1, "1/513"), (9, "0/1"), (9, "2/1"), (9, "1"), (9, "x/y")] {
        let refused = read(sequence, part, "0");
        assert!(matches!(refused, Err(JournalError::Header { header: codec::PART, .. })), "{part}");
    }
    assert!(read(1, "", "").is_err(), "a snapshot names its predecessor");
    let last = Message { part: 5, parts: 5, ..read(5, "", "0").unwrap() };
    assert_eq!(snapshot_start(5, &last), Some(1));
    assert_eq!(snapshot_start(4, &last), None);
    assert_eq!(snapshot_start(u64::MAX, &last), Some(u64::MAX - 4));
}

/// A small payload can inflate to gigabytes.
#[test]
fn oversized_inflation_is_refused() {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![b' '; 1024 * 1024];
    for _ in 0..257 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 2 * 1024 * 1024, "{}", bomb.len());
    let message = Message { kind: Kind::Record, deflated: true, ..read(1, "", "0").unwrap() };
    assert!(matches!(codec::decode(&message, &bomb), Err(DecodeError::TooLarge)));
}

type Change<'a> = &'a dyn Fn(&mut Vec<Message>);

#[test]
fn broken_chain_is_refused() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let mut tip = Tip::default();
    for seed in ["one", "two", "three"] {
        tip = stream.append(&mut appender, &record(seed, 1), &tip).unwrap();
    }
    let changed = |change: Change| {
        let mut messages: Vec<_> = stream.0.iter().flatten().cloned().collect();
        change(&mut messages);
        Stream(messages.into_iter().map(Some).collect()).follow(1).err().map(|error| error.to_string())
    };
    let cases: [(Change, &str); 3] = [
        (
            &|messages| messages[1].append_id = AppendId::new("other"),
            "journal message 3 follows a-2, but the one before it is other",
        ),
        (
            &|messages| {
                messages.remove(1);
            },
            "journal message 2 follows a-2, but the one before it is a-1",
        ),
        (&|messages| messages[2].payload = "{}".into(), "journal message 3 cannot be read"),
    ];
    for (change, error) in cases {
        assert_eq!(changed(change).as_deref(), Some(error));
    }
    assert_eq!(changed(&|_| {}), None);
}

/// What another version has written is refused as such, and nothing of it is folded.
#[test]
fn messages_of_other_versions_are_refused() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("one", 1), &Tip::default()).unwrap();
    stream.append(&mut appender, &record("two", 1), &tip).unwrap();
    let known = stream.0[0].clone().unwrap();
    let second = stream.0[1].clone().unwrap();
    let refused = |message: Message| {
        let mut follower = Follower::default();
        follower.read(1, &known).unwrap();
        let before = (follower.state.clone(), follower.tip.clone());
        let error = follower.read(2, &message).unwrap_err();
        assert_eq!((&follower.state, &follower.tip), (&before.0, &before.1));
        (with_causes(&error), error.is_of_another_version())
    };
    let of_format = |format| refused(Message { format, ..second.clone() });
    let newer = format!(
        "journal message 2 cannot be read: its format, {}, is newer than those that this version reads, up to {NEWEST}",
        NEWEST + 1
    );
    assert_eq!(of_format(NEWEST + 1), (newer, true));
    let older = "journal message 2 cannot be read: its format, 1, is older than those that this version reads, from 2 on";
    assert_eq!(of_format(1), (older.to_owned(), true));

    let with = |payload: &'static str| refused(Message { payload: payload.into(), ..second.clone() });
    let unknown = "journal message 2 cannot be read: the payload cannot be used: it has moon, which this version does not know";
    let record = r#"{"at":"2026-11-21T01:00:00Z","control":1,"facts":[],"moon":1}"#;
    assert_eq!(with(record), (unknown.to_owned(), true));
    let (text, of_another_version) =
        with(r#"{"at":"2026-11-21T01:00:00Z","control":1,"facts":[{"type":"moon-landed"}]}"#);
    assert!(text.contains("unknown fact `moon-landed`") && of_another_version, "{text}");
    let (_, of_another_version) = with("torn");
    assert!(!of_another_version);
}

/// A snapshot says nothing new to whoever has followed the records, so one of a newer format does not stop it.
#[test]
fn newer_snapshots_stop_only_those_that_need_them() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("one", 1), &Tip::default()).unwrap();
    let state = stream.follow(1).unwrap().state;
    let step = appender.snapshot(&state, 0, &tip, now(0));
    let tip = stream.carry_out(&mut appender, step).unwrap();
    stream.0[1].as_mut().unwrap().format = NEWEST + 1;
    stream.append(&mut appender, &record("two", 1), &tip).unwrap();
    let whole = stream.follow(1).unwrap();
    assert_eq!((whole.tip.sequence, whole.snapshot, whole.format), (3, 2, NEWEST));
    assert!(stream.follow(2).unwrap_err().is_of_another_version());
}

/// A message has the oldest format in which it can be read, so that an older instance reads on for as long as it can. There is
/// one so far. When a newer one is added, these messages keep theirs.
#[test]
fn messages_have_the_format_that_they_need() {
    let mut state = State::default();
    state.apply_record(&record("one", 1)).unwrap();
    let mut formats = BTreeSet::new();
    for record in [record("one", 1), record("split", 60_000)] {
        let messages = encode(Kind::Record, &record, &Tip::default(), || AppendId::new("x"));
        formats.extend(messages.iter().map(|message| message.format));
    }
    let messages = encode(Kind::Snapshot { previous: 0 }, &state, &Tip::default(), || AppendId::new("x"));
    formats.extend(messages.iter().map(|message| message.format));
    assert_eq!(formats, BTreeSet::from([11]));
}

/// Builds that were never released gave records the formats 2 to 10.
#[test]
fn earlier_formats_are_read() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let tip = stream.append(&mut appender, &record("one", 1), &Tip::default()).unwrap();
    stream.append(&mut appender, &record("two", 1), &tip).unwrap();
    let state = stream.follow(1).unwrap().state;
    for format in 2..=10 {
        stream.0[0].as_mut().unwrap().format = format;
        assert_eq!(stream.follow(1).unwrap().state, state, "format {format}");
    }
}

#[test]
fn lost_answer_is_resolved_by_reading() {
    struct Case {
        name: &'static str,
        /// Whether the message was stored although its answer was lost.
        stored: bool,
        /// Whether another instance's message was stored instead.
        foreign: bool,
        /// How many reads the stream leaves unanswered.
        silent: usize,
        deposed: bool,
    }
    let cases = [
        Case { name: "stored", stored: true, foreign: false, silent: 0, deposed: false },
        Case { name: "lost", stored: false, foreign: false, silent: 0, deposed: false },
        Case { name: "foreign", stored: false, foreign: true, silent: 0, deposed: true },
        Case {
            name: "stored, stream away for a while",
            stored: true,
            foreign: false,
            silent: 3,
            deposed: false,
        },
        Case {
            name: "lost, stream away for a while",
            stored: false,
            foreign: false,
            silent: 3,
            deposed: false,
        },
    ];
    for case in cases {
        let mut stream = Stream::default();
        let mut appender = Appender::new("a");
        let tip = stream.append(&mut appender, &record("first", 1), &Tip::default()).unwrap();
        let Step::Publish { expected, message } = appender.record(&record("second", 1), &tip, now(0)) else {
            panic!("an append begins with a publish");
        };
        let append_id = message.append_id.clone();
        if case.stored {
            stream.publish(expected, message);
        } else if case.foreign {
            stream.append(&mut Appender::new("b"), &record("foreign", 1), &tip).unwrap();
        }
        let mut step = appender.published(&append_id, &AppendOutcome::Unknown).unwrap();
        for silence in 1..=case.silent {
            let Step::ReadBack { sequence } = step else { panic!("{}: it reads", case.name) };
            assert_eq!(appender.read_back(sequence, &ReadBack::Failed, now(0)), None);
            assert_eq!(appender.tick(now(1)), None, "not at once");
            step = appender.tick(now(1_000 * silence as u64)).expect("it reads again");
        }
        let done = stream.carry_out(&mut appender, step);
        assert_eq!(done.is_none(), case.deposed, "{}", case.name);
        assert_eq!(stream.0.len(), 2, "{}: never twice", case.name);
        assert!(!appender.is_busy(), "{}", case.name);
    }
}

/// If the stream refuses a message that is then absent, publishing is paced.
#[test]
fn refused_messages_are_published_at_a_pace() {
    let mut appender = Appender::new("a");
    let mut step = Some(appender.record(&record("first", 1), &Tip::default(), now(0)));
    let mut published = Vec::new();
    for millis in 0..1_000 {
        let time = now(millis);
        step = match step {
            Some(Step::Publish { message, .. }) => {
                published.push(millis);
                appender.published(&message.append_id, &AppendOutcome::Unknown)
            }
            Some(Step::ReadBack { sequence }) => {
                appender.read_back(sequence, &ReadBack::Absent { last: 0 }, time)
            }
            Some(Step::Done { .. } | Step::Deposed) => panic!("{step:?}"),
            None => appender.tick(time),
        };
    }
    // The second publish is immediate, because the first answer may only be lost.
    assert_eq!(published[..2], [0, 2]);
    assert_eq!(published.len(), 6, "{published:?}");
    assert!(published[1..].is_sorted_by(|earlier, later| later - earlier >= 200), "{published:?}");
}

/// An operator deletes a message that somebody else has stored. The stream's last sequence stays beyond the journal's end.
#[test]
fn journal_goes_on_after_deleted_stray_messages() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let mut tip = Tip::default();
    let mut expected = State::default();
    for (seed, count) in [("first", 1), ("split", 60_000), ("second", 1)] {
        stream.stray();
        stream.stray();
        let record = record(seed, count);
        expected.apply_record(&record).unwrap();
        tip = stream.append(&mut appender, &record, &tip).unwrap();
        let follower = stream.follow(1).unwrap();
        assert_eq!((&follower.state, &follower.tip), (&expected, &tip), "{seed}");
    }
    // A snapshot starts after them.
    stream.stray();
    let step = appender.snapshot(&expected, 0, &tip, now(0));
    let tip = stream.carry_out(&mut appender, step).unwrap();
    let start = stream.follow(1).unwrap().snapshot;
    assert_eq!(snapshot_start(tip.sequence, stream.last()), Some(start));
    assert_eq!(stream.follow(usize::try_from(start).unwrap()).unwrap().state, expected);
}

/// The parts of a set are at consecutive sequences, so a set that cannot be completed is left incomplete.
#[test]
fn stray_message_between_parts_ends_the_append() {
    let mut stream = Stream::default();
    let mut appender = Appender::new("a");
    let step = appender.record(&record("split", 60_000), &Tip::default(), now(0));
    let Step::Publish { expected, message } = step else { panic!("an append begins with a publish") };
    let append_id = message.append_id.clone();
    let stored = stream.publish(expected, message);
    stream.stray();
    let step = appender.published(&append_id, &stored).unwrap();
    assert_eq!(stream.carry_out(&mut appender, step), None, "it does not lead any more");
    assert!(!appender.is_busy());
    let tip = stream.follow(1).unwrap().tip;
    stream.append(&mut Appender::new("b"), &record("second", 1), &tip).unwrap();
    let mut expected = State::default();
    expected.apply_record(&record("second", 1)).unwrap();
    assert_eq!(stream.follow(1).unwrap().state, expected);
}

#[test]
fn answers_to_abandoned_appends_are_ignored() {
    let mut appender = Appender::new("a");
    let Step::Publish { message, .. } = appender.record(&record("one", 1), &Tip::default(), now(0)) else {
        panic!("an append begins with a publish");
    };
    appender.abandon();
    let late = AppendOutcome::Stored { sequence: 1 };
    assert_eq!(appender.published(&message.append_id, &late), None);
    let Step::Publish { message: second, .. } = appender.record(&record("two", 1), &Tip::default(), now(0))
    else {
        panic!("an append begins with a publish");
    };
    assert_ne!(second.append_id, message.append_id);
    assert_eq!(appender.published(&message.append_id, &late), None);
    assert!(appender.is_busy());
}
