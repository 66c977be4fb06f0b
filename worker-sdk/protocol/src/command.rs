//! Commands from the orchestrator to a host.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::json::parse_bounded;
use crate::limits::COMMAND_BYTES_MAX;
use crate::{HostName, ParseError, RunId, time};

/// What a command requests; the reply repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Get ready without changing the running system: download, simulate, check.
    Prepare,
    /// Change the system.
    Upgrade,
    /// Reboot the host.
    Reboot,
}

impl From<Action> for &'static str {
    fn from(action: Action) -> Self {
        action.as_str()
    }
}

impl Action {
    /// Every action, in the order in which a host receives them.
    pub const ALL: [Self; 3] = [Self::Prepare, Self::Upgrade, Self::Reboot];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Upgrade => "upgrade",
            Self::Reboot => "reboot",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A command as sent: `{"action":"upgrade","host":"h02","not-after":"2026-11-21T05:00:00Z"}`.
///
/// In `upgrade` and `reboot`, `not-after` is an extension and omitted when there is no deadline. In `prepare` it is
/// always sent, and empty when there is no deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Command {
    /// To every host in `hosts`.
    Prepare {
        /// The hosts that should prepare.
        hosts: Vec<HostName>,
        /// A worker that reads this later ignores it.
        #[serde(default, with = "time::not_after")]
        not_after: Option<DateTime<Utc>>,
    },
    /// To one host that is prepared.
    Upgrade {
        /// The host that should upgrade.
        host: HostName,
        /// A worker that reads this later does not start.
        #[serde(default, with = "time::not_after", skip_serializing_if = "Option::is_none")]
        not_after: Option<DateTime<Utc>>,
    },
    /// To one host that answered `reboot-required`, or that is to leave the boot that is named.
    Reboot {
        /// The host that should reboot.
        host: HostName,
        /// A worker that reads this later does not start.
        #[serde(default, with = "time::not_after", skip_serializing_if = "Option::is_none")]
        not_after: Option<DateTime<Utc>>,
        /// The boot id of the boot to leave, an extension. It makes the reboot independent of an upgrade: the host reboots
        /// if this is its boot id, and has done so if it has another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_id: Option<String>,
    },
}

impl Command {
    /// The command that requests `action` from `host` alone.
    pub fn for_host(action: Action, host: HostName, not_after: Option<DateTime<Utc>>) -> Self {
        match action {
            Action::Prepare => Self::Prepare { hosts: vec![host], not_after },
            Action::Upgrade => Self::Upgrade { host, not_after },
            Action::Reboot => Self::Reboot { host, not_after, boot_id: None },
        }
    }

    /// Reads a command from a message's payload.
    ///
    /// # Errors
    /// The payload is larger than [`COMMAND_BYTES_MAX`] or not a command of this protocol.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        parse_bounded(payload, COMMAND_BYTES_MAX)
    }

    /// The payload of this command.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a command has string keys and no fallible part")
    }

    /// The requested action.
    pub fn action(&self) -> Action {
        match self {
            Self::Prepare { .. } => Action::Prepare,
            Self::Upgrade { .. } => Action::Upgrade,
            Self::Reboot { .. } => Action::Reboot,
        }
    }

    /// The time after which the command must not be started; `None` when there is no deadline.
    pub fn not_after(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Prepare { not_after, .. }
            | Self::Upgrade { not_after, .. }
            | Self::Reboot { not_after, .. } => *not_after,
        }
    }

    /// Whether the command is addressed to `host`.
    pub fn is_for(&self, host: &HostName) -> bool {
        match self {
            Self::Prepare { hosts, .. } => hosts.contains(host),
            Self::Upgrade { host: named, .. } | Self::Reboot { host: named, .. } => named == host,
        }
    }
}

/// The unique id of a command: `<run>/<host>/<action>/<attempt>` in the header
/// [`COMMAND_ID`](crate::header::COMMAND_ID), with the host as a subject token. A resent command keeps its id; only a
/// retry under the retry policy increases `attempt`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandId {
    /// The run it belongs to.
    pub run: RunId,
    /// The host it goes to.
    pub host: HostName,
    /// The requested action.
    pub action: Action,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.run, self.host.token(), self.action, self.attempt)
    }
}

/// The text is not a valid command id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not <run>/<host>/<action>/<attempt>")]
pub struct CommandIdError(String);

impl From<CommandId> for String {
    fn from(id: CommandId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for CommandId {
    type Error = CommandIdError;

    fn try_from(text: String) -> Result<Self, CommandIdError> {
        text.parse()
    }
}

impl FromStr for CommandId {
    type Err = CommandIdError;

    fn from_str(text: &str) -> Result<Self, CommandIdError> {
        let parse = || {
            let mut parts = text.split('/');
            let id = Self {
                run: RunId::new(parts.next()?).ok()?,
                host: HostName::from_token(parts.next()?).ok()?,
                action: {
                    let word = parts.next()?;
                    Action::ALL.into_iter().find(|action| action.as_str() == word)?
                },
                attempt: parts.next()?.parse().ok()?,
            };
            parts.next().is_none().then_some(id)
        };
        parse().ok_or_else(|| CommandIdError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn host(name: &str) -> HostName {
        HostName::new(name).unwrap()
    }

    fn five_o_clock() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 5, 0, 0).unwrap()
    }

    /// The payloads of the specification, key by key, and a reboot that names a boot.
    #[test]
    fn specification_commands_round_trip() {
        let hosts = ["h01", "h02", "h03"].map(host).to_vec();
        for (json, command) in [
            (
                r#"{"action":"prepare","hosts":["h01","h02","h03"],"not-after":""}"#,
                Command::Prepare { hosts, not_after: None },
            ),
            (r#"{"action":"upgrade","host":"h02"}"#, Command::Upgrade { host: host("h02"), not_after: None }),
            (
                r#"{"action":"reboot","host":"h02"}"#,
                Command::Reboot { host: host("h02"), not_after: None, boot_id: None },
            ),
            (
                r#"{"action":"reboot","host":"h02","boot-id":"b7"}"#,
                Command::Reboot { host: host("h02"), not_after: None, boot_id: Some("b7".to_owned()) },
            ),
        ] {
            assert_eq!(Command::parse(json.as_bytes()).unwrap(), command);
            assert_eq!(String::from_utf8(command.to_payload()).unwrap(), json);
        }
    }

    #[test]
    fn commands_with_deadline_round_trip() {
        for (action, json) in [
            (Action::Prepare, r#"{"action":"prepare","hosts":["h1"],"not-after":"2026-11-21T05:00:00Z"}"#),
            (Action::Upgrade, r#"{"action":"upgrade","host":"h1","not-after":"2026-11-21T05:00:00Z"}"#),
            (Action::Reboot, r#"{"action":"reboot","host":"h1","not-after":"2026-11-21T05:00:00Z"}"#),
        ] {
            let command = Command::for_host(action, host("h1"), Some(five_o_clock()));
            assert_eq!(String::from_utf8(command.to_payload()).unwrap(), json);
            assert_eq!(Command::parse(json.as_bytes()).unwrap(), command);
            assert_eq!((command.action(), command.not_after()), (action, Some(five_o_clock())));
            assert!(command.is_for(&host("h1")) && !command.is_for(&host("h2")));
        }
    }

    #[test]
    fn unknown_fields_offsets_and_null_are_tolerated() {
        let json =
            r#"{"x":[1],"action":"upgrade","host":"h1","not-after":"2026-11-21T07:00:00+02:00","y":null}"#;
        assert_eq!(Command::parse(json.as_bytes()).unwrap().not_after(), Some(five_o_clock()));
        let json = r#"{"action":"prepare","hosts":[],"not-after":null}"#;
        assert_eq!(Command::parse(json.as_bytes()).unwrap().not_after(), None);
    }

    #[test]
    fn malformed_commands_are_rejected() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"action":"explode","host":"h1"}"#,
            r#"{"action":"upgrade"}"#,
            r#"{"action":"upgrade","host":""}"#,
            r#"{"action":"upgrade","host":"h1","not-after":"tomorrow"}"#,
            r#"{"action":"upgrade","host":"h1","not-after":"9999-12-31T23:59:59-01:00"}"#,
            r#"{"action":"upgrade","host":"h1","not-after":"0000-01-01T00:00:00+01:00"}"#,
            r#"["upgrade","h1"]"#,
            r#"{"action":"prepare","hosts":"h1"}"#,
        ] {
            assert!(matches!(Command::parse(json.as_bytes()), Err(ParseError::Json(_))), "{json}");
        }
        let large = vec![b' '; COMMAND_BYTES_MAX + 1];
        assert!(matches!(Command::parse(&large), Err(ParseError::TooLarge { .. })));
    }

    #[test]
    fn ids_round_trip() {
        let run = RunId::new("r-1").unwrap();
        for action in Action::ALL {
            let id = CommandId { run: run.clone(), host: host("a/b.c"), action, attempt: 2 };
            assert_eq!(id.to_string(), format!("r-1/a%2Fb%2Ec/{action}/2"));
            assert_eq!(id.to_string().parse::<CommandId>().unwrap(), id);
        }
        for text in ["", "r/h/prepare", "r/h/prepare/x", "r/h/explode/1", "r/h/prepare/1/2", "r!/h/prepare/1"]
        {
            assert!(text.parse::<CommandId>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_payload_panics(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Command::parse(&payload);
        }
    }
}
