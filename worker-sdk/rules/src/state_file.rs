//! The state file: what a worker remembers across crashes and reboots. The executor reads and writes it.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName, Outcome, RunId, json};
use serde::{Deserialize, Serialize};

/// The format that this version writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// The largest state file that is read, in bytes.
pub const STATE_FILE_BYTES_MAX: usize = 64 * 1024;

/// An id that differs for each boot of a host, such as the kernel's `/proc/sys/kernel/random/boot_id`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

/// A command's position in the stream. It includes the time, because a stream that was created again or has lost
/// messages assigns the same sequence a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The stream sequence.
    pub sequence: u64,
    /// When the stream stored it.
    pub published: DateTime<Utc>,
}

impl Position {
    /// Whether `other` is not later than `self`, in the same stream.
    pub fn covers(&self, other: Self) -> bool {
        other.sequence <= self.sequence && other.published <= self.published
    }
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
    /// Where its acknowledgement goes; also valid for a later connection.
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

/// What a worker remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateFile {
    format: u32,
    /// The host whose state this is.
    pub host: HostName,
    /// Every command up to this position is settled: answered and acknowledged, or dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Position>,
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
    /// Larger than [`STATE_FILE_BYTES_MAX`].
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
            prepared: None,
            reboot_due: None,
            distrusted: false,
            current: None,
        }
    }

    /// Reads the state of `host`.
    ///
    /// # Errors
    /// The bytes are damaged, have another format, or are the state of another host.
    pub fn parse(bytes: &[u8], host: &HostName) -> Result<Self, StateFileError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        if bytes.len() > STATE_FILE_BYTES_MAX {
            return Err(StateFileError::TooLarge(bytes.len()));
        }
        // The format first: another version's file need not have this version's shape.
        let head: Head = json::object(bytes).map_err(StateFileError::Json)?;
        if head.format != FORMAT {
            return Err(StateFileError::Format(head.format));
        }
        let file: Self = json::object(bytes).map_err(StateFileError::Json)?;
        if file.host != *host {
            return Err(StateFileError::OtherHost(file.host));
        }
        Ok(file)
    }

    /// The contents of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("a state file has string keys and no fallible part");
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostName {
        HostName::new("h1").unwrap()
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
            prepared: Some(Prepared { sequence: 10, run: run.clone(), not_after }),
            reboot_due: Some(RebootDue { sequence: 11, run: run.clone(), not_after, boot_id }),
            distrusted: true,
            current: Some(Current {
                position,
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
