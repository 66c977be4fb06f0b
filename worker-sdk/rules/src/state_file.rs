//! The state file: what a worker remembers across crashes and reboots. The executor reads and writes it.
//!
//! # What identifies a command
//!
//! Its id, `<run>/<host>/<action>/<attempt>`, if it carries one. The machine of stream and orchestrator may be rolled back to
//! an earlier moment while workers go on. The orchestrator then sends what it does not know to have sent, under the same
//! id, at another time and often at another sequence: that is the same command, and its host has answered it. And the
//! stream assigns sequences again, so that a sequence alone names two commands, of which only one is in the stream.
//!
//! A command without an id, of another controller, is identified by its sequence and the time at which the stream stored
//! it. Time goes on when a stream is rolled back, so both together occur once.
//!
//! Positions are never compared by order. A command that was stored before the last settled one may be new to the worker:
//! it was deleted before it was delivered, and is back with the stream.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, CommandId, HostName, Outcome, RunId, json};
use serde::{Deserialize, Serialize};

/// The format that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;
/// The largest state file that is read, in bytes.
pub const STATE_FILE_BYTES_MAX: usize = 64 * 1024;
/// How many answers are kept: those of the last two or three runs.
pub const ANSWERS_MAX: usize = 8;
/// How many bytes of JSON the answers may take, so that the file with all else in it stays below its limit. The last one
/// always fits.
const ANSWERS_BYTES_MAX: usize = 32 * 1024;

/// An id that differs for each boot of a host, such as the kernel's `/proc/sys/kernel/random/boot_id`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

/// A command's position in the stream. It includes the time, because a stream that was created again, has lost messages
/// or was rolled back to an earlier moment assigns the same sequence a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The stream sequence.
    pub sequence: u64,
    /// When the stream stored it.
    pub published: DateTime<Utc>,
}

/// A `prepare` that was executed, with no `upgrade` since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prepared {
    /// Its stream sequence.
    pub sequence: u64,
    /// Its run, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// No upgrade is started after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<DateTime<Utc>>,
}

/// An `upgrade` that answered `reboot-required`, with no reboot since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RebootDue {
    /// Its stream sequence.
    pub sequence: u64,
    /// Its run, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// No reboot is started after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<DateTime<Utc>>,
    /// The boot in which it answered; once the boot id differs, the host has rebooted.
    pub boot_id: BootId,
}

/// The phase of a command. It is saved before the named work begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Phase {
    /// The prepare handler may run.
    Preparing,
    /// The upgrade handler may run.
    Upgrading {
        /// The boot in which it was first started.
        boot_id: BootId,
    },
    /// The reboot may have been started.
    Rebooting {
        /// The boot that the reboot ends.
        boot_id: BootId,
    },
    /// The health handler may run.
    Checking,
    /// The outcome is known; the reply may have been stored, and the command acknowledged.
    Answered {
        /// The outcome in the reply.
        outcome: Outcome,
    },
}

/// The command under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Current {
    /// Its position in the stream.
    #[serde(flatten)]
    pub position: Position,
    /// Its id, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CommandId>,
    /// Where its acknowledgement goes; empty until it is delivered over the present connection of this process.
    pub ack_subject: String,
    /// The requested action.
    pub action: Action,
    /// Its run, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The earlier of its own `not-after` and that of the `prepare` it builds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<DateTime<Utc>>,
    /// How far it has got.
    pub phase: Phase,
    /// How often the phase's work has been begun, including the attempt about to begin.
    pub attempts: u32,
}

/// The answer to a settled command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// The command's position in the stream when it was last answered.
    #[serde(flatten)]
    pub position: Position,
    /// The command's id, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CommandId>,
    /// The requested action.
    pub action: Action,
    /// The outcome in the reply.
    pub outcome: Outcome,
}

impl Answer {
    /// Whether it is the answer to the command of this id and position.
    fn is_to(&self, id: Option<&CommandId>, position: Position) -> bool {
        match (&self.id, id) {
            (Some(answered), Some(id)) => answered == id,
            (None, _) | (_, None) => self.position == position,
        }
    }
}

/// What a worker remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateFile {
    format: u32,
    /// The host whose state this is.
    pub host: HostName,
    /// The last command that was settled: answered and acknowledged, or dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Position>,
    /// The answers to the last commands, oldest first: at most [`ANSWERS_MAX`]. Earlier versions ignore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The prepare that an upgrade may build on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// The reboot that a reboot command may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot_due: Option<RebootDue>,
    /// An earlier state file could not be read, and no `prepare` has been executed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub distrusted: bool,
    /// The command under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
}

/// Why bytes are not the state of a host.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// Not JSON of the expected shape.
    #[error("it is not a state file")]
    Json(#[source] serde_json::Error),
    /// Larger than any that a worker writes.
    #[error("it has {0} bytes, more than any state file")]
    TooLarge(usize),
    /// Written by another version.
    #[error("it has format {0}, this version reads format {FORMAT}")]
    Format(u32),
    /// Copied from another host.
    #[error("it is the state of host {0}")]
    OtherHost(HostName),
}

impl StateFile {
    /// The state of a host that has done nothing yet.
    pub fn new(host: HostName) -> Self {
        Self {
            format: FORMAT,
            host,
            settled: None,
            answers: Vec::new(),
            prepared: None,
            reboot_due: None,
            distrusted: false,
            current: None,
        }
    }

    /// The answer to the command of this id and position, if it is one of the last.
    pub fn answer_to(&self, id: Option<&CommandId>, position: Position) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.is_to(id, position))
    }

    /// Remembers the last answer, and forgets the oldest ones that exceed the limits.
    pub fn remember(&mut self, answer: Answer) {
        self.answers.retain(|known| !known.is_to(answer.id.as_ref(), answer.position));
        self.answers.push(answer);
        while self.answers.len() > ANSWERS_MAX || json_bytes(&self.answers) > ANSWERS_BYTES_MAX {
            self.answers.remove(0);
        }
    }

    /// Reads the state of `host`.
    ///
    /// # Errors
    /// The bytes are damaged, have another format, or are the state of another host.
    pub fn parse(bytes: &[u8], host: &HostName) -> Result<Self, StateFileError> {
        let file: Self = read(bytes, STATE_FILE_BYTES_MAX)?;
        if file.host != *host {
            return Err(StateFileError::OtherHost(file.host));
        }
        Ok(file)
    }

    /// The contents of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        written(self)
    }
}

/// Reads a file of the state directory, of this format and at most `bytes_max`.
pub fn read<'de, F: Deserialize<'de>>(bytes: &'de [u8], bytes_max: usize) -> Result<F, StateFileError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    if bytes.len() > bytes_max {
        return Err(StateFileError::TooLarge(bytes.len()));
    }
    // The format first: another version's file need not have this version's shape.
    let head: Head = json::object(bytes).map_err(StateFileError::Json)?;
    if head.format != FORMAT {
        return Err(StateFileError::Format(head.format));
    }
    json::object(bytes).map_err(StateFileError::Json)
}

/// The contents of a file of the state directory.
pub fn written(file: &impl Serialize) -> Vec<u8> {
    let mut bytes =
        serde_json::to_vec_pretty(file).expect("a state file has string keys and no fallible part");
    bytes.push(b'\n');
    bytes
}

fn json_bytes(answers: &[Answer]) -> usize {
    serde_json::to_vec(answers).expect("answers have string keys and no fallible part").len()
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::limits::{MESSAGE_BYTES_MAX, NAME_BYTES_MAX};

    use super::*;

    fn host() -> HostName {
        HostName::new("h1").unwrap()
    }

    fn id(attempt: u32) -> CommandId {
        CommandId { run: RunId::new("r1").unwrap(), host: host(), action: Action::Upgrade, attempt }
    }

    fn full(phase: Phase) -> StateFile {
        let position = Position {
            sequence: 12,
            published: DateTime::from_timestamp(1_800_000_000, 123_456_789).unwrap(),
        };
        let run = Some(RunId::new("r1").unwrap());
        let not_after = DateTime::from_timestamp(1_800_000_900, 0);
        let boot_id = BootId("boot-1".to_owned());
        StateFile {
            settled: Some(Position { sequence: 11, published: position.published }),
            answers: vec![
                Answer { position, id: None, action: Action::Prepare, outcome: Outcome::Done },
                Answer { position, id: Some(id(1)), action: Action::Upgrade, outcome: Outcome::error("no") },
            ],
            prepared: Some(Prepared { sequence: 10, run: run.clone(), not_after }),
            reboot_due: Some(RebootDue { sequence: 11, run: run.clone(), not_after, boot_id }),
            distrusted: true,
            current: Some(Current {
                position,
                id: Some(id(2)),
                ack_subject: "$JS.ACK.x".to_owned(),
                action: Action::Upgrade,
                run,
                not_after,
                phase,
                attempts: 2,
            }),
            ..StateFile::new(host())
        }
    }

    #[test]
    fn every_phase_round_trips() {
        let boot_id = BootId("boot-1".to_owned());
        let answered = |outcome| Phase::Answered { outcome };
        for phase in [
            Phase::Preparing,
            Phase::Upgrading { boot_id: boot_id.clone() },
            Phase::Rebooting { boot_id },
            Phase::Checking,
            answered(Outcome::Done),
            answered(Outcome::RebootRequired),
            answered(Outcome::error("no space left")),
        ] {
            let file = full(phase);
            assert_eq!(StateFile::parse(&file.to_bytes(), &host()).unwrap(), file);
        }
        let empty = StateFile::new(host());
        assert_eq!(StateFile::parse(&empty.to_bytes(), &host()).unwrap(), empty);
    }

    #[test]
    fn answers_are_found_by_id_or_position() {
        let at = |sequence, second: i64| Position {
            sequence,
            published: DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap(),
        };
        let mut file = StateFile::new(host());
        let answer = |position, id, message: &str| {
            let outcome = Outcome::error(message);
            Answer { position, id, action: Action::Upgrade, outcome }
        };
        file.remember(answer(at(1, 1), None, "without id"));
        file.remember(answer(at(2, 2), Some(id(1)), "with id"));
        let found = |id: Option<CommandId>, position| {
            file.answer_to(id.as_ref(), position).map(|answer| answer.outcome.as_str())
        };
        for (id, position, expected) in [
            (None, at(1, 1), Some("without id")),
            (None, at(1, 2), None),
            (None, at(2, 1), None),
            (Some(id(2)), at(1, 1), Some("without id")),
            (Some(id(1)), at(2, 2), Some("with id")),
            // Sent again after the stream was rolled back.
            (Some(id(1)), at(1, 9), Some("with id")),
            (None, at(2, 2), Some("with id")),
            (Some(id(2)), at(2, 2), None),
        ] {
            assert_eq!(found(id.clone(), position), expected, "{id:?} {position:?}");
        }
    }

    /// The file stays readable with the longest answers, each byte of which takes six in JSON.
    #[test]
    fn longest_answers_fit() {
        let name = HostName::new(&"%".repeat(NAME_BYTES_MAX)).unwrap();
        let longest = Outcome::error(&format!("x{}x", "\u{1}".repeat(MESSAGE_BYTES_MAX - 2)));
        for (outcome, kept) in [(longest.clone(), 1), (Outcome::error("short"), ANSWERS_MAX)] {
            let mut file = StateFile::new(name.clone());
            for attempt in 1..=20 {
                let position = Position { sequence: attempt.into(), published: DateTime::UNIX_EPOCH };
                let id = Some(CommandId { host: name.clone(), ..id(attempt) });
                file.remember(Answer { position, id, action: Action::Upgrade, outcome: outcome.clone() });
                let last = file.answers.last().map(|answer| answer.position.sequence);
                assert_eq!(last, Some(u64::from(attempt)));
            }
            assert_eq!(file.answers.len(), kept);
            file.current = full(Phase::Answered { outcome: longest.clone() }).current;
            assert_eq!(StateFile::parse(&file.to_bytes(), &name).unwrap(), file);
        }
    }

    #[test]
    fn invalid_state_files_are_rejected() {
        let good = String::from_utf8(full(Phase::Preparing).to_bytes()).unwrap();
        let parse = |text: &str| StateFile::parse(text.as_bytes(), &host());
        assert!(matches!(parse(""), Err(StateFileError::Json(_))));
        assert!(matches!(parse(&good[..good.len() / 2]), Err(StateFileError::Json(_))));
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        assert!(matches!(parse(&newer), Err(StateFileError::Format(2))));
        let other = good.replace("\"h1\"", "\"h2\"");
        assert!(matches!(parse(&other), Err(StateFileError::OtherHost(_))));
        let large = " ".repeat(STATE_FILE_BYTES_MAX + 1);
        assert!(matches!(parse(&large), Err(StateFileError::TooLarge(_))));
    }
}
