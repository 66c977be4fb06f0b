//! Messages of the control stream: from bytes to what the kernel understands.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{ControlMessage, InReplyTo};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_protocol::subject::ControlSubject;
use os_upgrade_protocol::{CommandId, Reply, RunId, header};

/// A message of the control stream as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawControl {
    pub sequence: u64,
    /// When the server stored it.
    pub time: DateTime<Utc>,
    pub subject: String,
    /// `Os-Upgrade-Command-Id`.
    pub command_id: Option<String>,
    /// `Os-Upgrade-In-Reply-To`.
    pub in_reply_to: Option<String>,
    /// `Os-Upgrade-Run`.
    pub run: Option<String>,
    pub payload: bytes::Bytes,
}

/// Parses `raw`. It never fails: an invalid message is represented as such.
pub fn read(raw: &RawControl) -> ControlMessage {
    match ControlSubject::parse(&raw.subject) {
        Ok(Some(ControlSubject::Command(host))) => {
            let id = raw.command_id.as_deref().and_then(|id| id.parse::<CommandId>().ok());
            ControlMessage::Command { host, id }
        }
        Ok(Some(ControlSubject::Reply(host))) => {
            let (reply, in_reply_to) = match in_reply_to(raw) {
                Ok(in_reply_to) => (read_reply(raw, &host), in_reply_to),
                Err(problem) => (Err(problem), InReplyTo::default()),
            };
            ControlMessage::Reply { host, reply, in_reply_to }
        }
        Ok(Some(ControlSubject::Leader)) => ControlMessage::Leader,
        Ok(None) | Err(_) => ControlMessage::Unknown { subject: bounded_message(&raw.subject) },
    }
}

fn in_reply_to(raw: &RawControl) -> Result<InReplyTo, String> {
    let odd = |header, text: &str, kind| bounded_message(&format!("{header} {text:?} is not a {kind}"));
    let sequence = |text: &str| text.parse().map_err(|_| odd(header::IN_REPLY_TO, text, "sequence"));
    let run = |text: &str| RunId::new(text).map_err(|_| odd(header::RUN, text, "run"));
    Ok(InReplyTo {
        sequence: raw.in_reply_to.as_deref().map(sequence).transpose()?,
        run: raw.run.as_deref().map(run).transpose()?,
    })
}

fn read_reply(raw: &RawControl, host: &os_upgrade_protocol::HostName) -> Result<Reply, String> {
    let reply =
        Reply::parse_any_result(&raw.payload).map_err(|error| bounded_message(&with_causes(&error)))?;
    // The subject names the host. A reply whose payload names another one is invalid.
    match serde_json::from_slice::<NamedHost>(&raw.payload) {
        Ok(NamedHost { host: Some(named) }) if named != host.as_str() => {
            Err(bounded_message(&format!("the reply of {host} names another host, {named:?}")))
        }
        Ok(_) | Err(_) => Ok(reply),
    }
}

#[derive(serde::Deserialize)]
struct NamedHost {
    host: Option<String>,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use os_upgrade_protocol::{Action, HostName, Outcome};

    use super::*;

    fn raw(subject: &str, payload: impl Into<Bytes>) -> RawControl {
        RawControl {
            sequence: 7,
            time: DateTime::UNIX_EPOCH,
            subject: subject.to_owned(),
            command_id: None,
            in_reply_to: None,
            run: None,
            payload: payload.into(),
        }
    }

    fn reply_of(subject: &str, payload: impl Into<Bytes>) -> Result<Reply, String> {
        let message = read(&raw(subject, payload));
        let ControlMessage::Reply { reply, .. } = message else { panic!("not a reply: {message:?}") };
        reply
    }

    const REPLY: &str = "os-upgrade:control.reply.h1";

    #[test]
    fn replies() {
        let done = Reply { action: Action::Upgrade, result: Outcome::Done };
        assert_eq!(reply_of(REPLY, r#"{"action":"upgrade","result":"done"}"#), Ok(done.clone()));
        assert_eq!(reply_of(REPLY, r#"{"action":"upgrade","result":"done","host":"h1"}"#), Ok(done));
        assert_eq!(
            reply_of(REPLY, r#"{"action":"upgrade","result":"done","host":"h2"}"#),
            Err("the reply of h1 names another host, \"h2\"".to_owned())
        );
        for (payload, message) in [
            (r#"{"action":"upgrade"}"#, "the reply has no result"),
            (r#"{"action":"upgrade","result":1}"#, "the reply's result is not a text: 1"),
        ] {
            let result = Outcome::Error(message.to_owned());
            assert_eq!(reply_of(REPLY, payload), Ok(Reply { action: Action::Upgrade, result }));
        }
        assert!(reply_of(REPLY, "not json").unwrap_err().starts_with("payload is not a valid message: "));
        let large = vec![b'x'; 1 << 20];
        assert_eq!(reply_of(REPLY, large), Err("payload exceeds the limit of 65536 bytes".to_owned()));
    }

    #[test]
    fn replies_name_their_command() {
        let named = |sequence: Option<&str>, run: Option<&str>| {
            let raw = raw(REPLY, r#"{"action":"upgrade","result":"done"}"#);
            let (in_reply_to, run) = (sequence.map(str::to_owned), run.map(str::to_owned));
            let ControlMessage::Reply { reply, in_reply_to, .. } =
                read(&RawControl { in_reply_to, run, ..raw })
            else {
                panic!("not a reply");
            };
            reply.map(|_| in_reply_to)
        };
        let run = Some(RunId::new("r1").unwrap());
        assert_eq!(named(None, None), Ok(InReplyTo::default()));
        assert_eq!(named(Some("4"), Some("r1")), Ok(InReplyTo { sequence: Some(4), run }));
        let odd = "Os-Upgrade-In-Reply-To \"x\" is not a sequence";
        assert_eq!(named(Some("x"), None), Err(odd.to_owned()));
        assert_eq!(named(None, Some("r 1")), Err("Os-Upgrade-Run \"r 1\" is not a run".to_owned()));
    }

    #[test]
    fn other_subjects() {
        let host = HostName::new("h1").unwrap();
        let command = RawControl {
            command_id: Some("r/h1/upgrade/1".to_owned()),
            ..raw("os-upgrade:control.command.h1", "anything")
        };
        let id = Some("r/h1/upgrade/1".parse().unwrap());
        assert_eq!(read(&command), ControlMessage::Command { host: host.clone(), id });
        let foreign = raw("os-upgrade:control.command.h1", "");
        assert_eq!(read(&foreign), ControlMessage::Command { host, id: None });
        assert_eq!(read(&raw("os-upgrade:control.leader", "")), ControlMessage::Leader);
        for subject in ["os-upgrade:control.x", "os-upgrade:control.reply.%"] {
            assert_eq!(read(&raw(subject, "")), ControlMessage::Unknown { subject: subject.to_owned() });
        }
    }
}
