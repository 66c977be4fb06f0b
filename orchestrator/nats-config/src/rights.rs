//! What a worker may do on NATS: the table from which the accounts are made.
//!
//! Each host has its own account. In a shared account, permissions would not keep hosts apart: a client that may send
//! JetStream requests chooses the subject of the answer, and that subject is not checked against permissions. An answer to
//! `$JS.API.STREAM.DELETE.os-upgrade:journal` would delete the journal, and an answer to another host's heartbeat subject
//! would be such a heartbeat. In the host's own account, answers only reach subjects that the host may use anyway.
//!
//! For the same reason no host may create a consumer: its delivery subject is in the orchestrators' account, and is not
//! checked. Orchestrators create them, see `consumers` of `os-upgrade-bus`.

use os_upgrade_protocol::{HostName, subject};

/// One thing that workers may do, each for its own host.
#[derive(Debug)]
pub(super) struct Right {
    /// Its name in the claims.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The subject in the orchestrators' account, for all hosts.
    pub(super) exported: &'static str,
    /// The subject in the orchestrators' account for one host, with [`HOST`] in place of the host's token.
    imported: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Publishing with one answer.
    Request,
    /// Publishing with many answers.
    Pull,
    /// Subscribing.
    Listen,
}

/// The placeholder for the host's token.
const HOST: &str = "HOST";
const JETSTREAM: &str = "$JS.API";

pub(super) const RIGHTS: &[Right] = &[
    right("replies", Kind::Request, "os-upgrade:control.reply.*", "os-upgrade:control.reply.HOST"),
    right("versions", Kind::Request, "os-upgrade:versions.*", "os-upgrade:versions.HOST"),
    right("output", Kind::Request, "os-upgrade:output.*", "os-upgrade:output.HOST"),
    right("announcements", Kind::Request, "os-upgrade:workers.*.*", "os-upgrade:workers.*.HOST"),
    right("heartbeats", Kind::Request, "os-upgrade.presence.*", "os-upgrade.presence.HOST"),
    right("progress", Kind::Request, "os-upgrade.progress.*", "os-upgrade.progress.HOST"),
    right("hints", Kind::Listen, "os-upgrade.hint.*", "os-upgrade.hint.HOST"),
    right("consumer", Kind::Request, "os-upgrade.consumer.*", "os-upgrade.consumer.HOST"),
    right(
        "consumer-info",
        Kind::Request,
        "$JS.API.CONSUMER.INFO.os-upgrade:control.*",
        "$JS.API.CONSUMER.INFO.os-upgrade:control.worker-HOST",
    ),
    right(
        "commands",
        Kind::Pull,
        "$JS.API.CONSUMER.MSG.NEXT.os-upgrade:control.*",
        "$JS.API.CONSUMER.MSG.NEXT.os-upgrade:control.worker-HOST",
    ),
    right(
        "acknowledgements",
        Kind::Request,
        "$JS.ACK.os-upgrade:control.*.>",
        "$JS.ACK.os-upgrade:control.worker-HOST.>",
    ),
    // Workers see from these whether a stream exists, and whether it was recreated. They also reveal the names of other
    // hosts to a client that requests them.
    stream("control-info", "$JS.API.STREAM.INFO.os-upgrade:control"),
    stream("versions-info", "$JS.API.STREAM.INFO.os-upgrade:versions"),
    stream("workers-info", "$JS.API.STREAM.INFO.os-upgrade:workers"),
];

const fn right(name: &'static str, kind: Kind, exported: &'static str, imported: &'static str) -> Right {
    Right { name, kind, exported, imported }
}

const fn stream(name: &'static str, subject: &'static str) -> Right {
    right(name, Kind::Request, subject, subject)
}

impl Right {
    /// The subject in the orchestrators' account, for this host alone.
    pub(super) fn of_host(&self, host: &HostName) -> String {
        self.imported.replace(HOST, &host.token())
    }

    /// The subject in the host's account, if it differs: in that account `$JS.API` is the host's own, which has no
    /// JetStream.
    pub(super) fn local_of_host(&self, host: &HostName) -> Option<String> {
        let rest = self.imported.strip_prefix(JETSTREAM)?;
        Some(format!("{}{}", subject::JETSTREAM_PREFIX, rest.replace(HOST, &host.token())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_cover_the_protocol_subjects() {
        let host = HostName::new("h1.example.com").unwrap();
        let rights: Vec<String> = RIGHTS.iter().map(|right| right.of_host(&host)).collect();
        let next =
            format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", subject::CONTROL_STREAM, subject::consumer(&host));
        for subject in [
            subject::reply(&host),
            subject::versions(&host),
            subject::output(&host),
            subject::presence(&host),
            subject::hint(&host),
            subject::consumer_request(&host),
            format!("$JS.API.STREAM.INFO.{}", subject::VERSIONS_STREAM),
            next,
        ] {
            assert!(rights.contains(&subject), "{subject}");
        }
        let local: Vec<String> = RIGHTS.iter().filter_map(|right| right.local_of_host(&host)).collect();
        assert_eq!(local[0], "os-upgrade.js.CONSUMER.INFO.os-upgrade:control.worker-h1%2Eexample%2Ecom");
    }

    #[test]
    fn each_right_is_for_one_host() {
        let host = HostName::new("h01").unwrap();
        for right in RIGHTS {
            let subject = right.of_host(&host);
            let info = subject.starts_with("$JS.API.STREAM.INFO.");
            assert!(subject.contains("h01") || info, "{subject}");
            assert!(
                !subject.contains("journal") && !subject.contains('>') || subject.starts_with("$JS.ACK.")
            );
        }
    }
}
