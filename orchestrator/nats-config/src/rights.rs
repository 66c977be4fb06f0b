//! What a worker may do on NATS: the one table of it, from which the accounts are made.
//!
//! Each host has an account of its own. In one account that all share, permissions would not keep hosts apart: whoever may
//! ask JetStream anything names a subject for the answer, which no permission is held against. An answer that is sent
//! to `$JS.API.STREAM.DELETE.os-upgrade:journal` deletes the journal, one to the heartbeats of another host is such a
//! heartbeat. In an account of the host's own there is nothing that an answer could reach but what is here anyway.
//!
//! For the same reason no host may make a consumer: the subject to which it delivers is taken in the orchestrators'
//! account, unchecked. Orchestrators make them, see `consumers` of `os-upgrade-bus`.

use os_upgrade_protocol::{HostName, subject};

/// One thing that workers may do, each for its own host.
#[derive(Debug)]
pub(super) struct Right {
    /// What it is, in the claims.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The subject in the orchestrators' account, for all hosts.
    pub(super) exported: &'static str,
    /// The same for one host, which stands for [`HOST`].
    imported: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Publishing, and being answered once.
    Request,
    /// Publishing, and being answered many times.
    Pull,
    /// Being told.
    Listen,
}

/// Where the token of the host stands.
const HOST: &str = "HOST";
const JETSTREAM: &str = "$JS.API";

pub(super) const RIGHTS: &[Right] = &[
    right("replies", Kind::Request, "os-upgrade:control.reply.*", "os-upgrade:control.reply.HOST"),
    right("versions", Kind::Request, "os-upgrade:versions.*", "os-upgrade:versions.HOST"),
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
    // Whether it is there, and was made anew. It tells the names of other hosts to who asks for them.
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

    /// The subject in the host's account, where it is another: there `$JS.API` is the host's own, which has no
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
    fn rights_are_for_the_subjects_of_the_protocol() {
        let host = HostName::new("h1.example.com").unwrap();
        let rights: Vec<String> = RIGHTS.iter().map(|right| right.of_host(&host)).collect();
        let next =
            format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", subject::CONTROL_STREAM, subject::consumer(&host));
        for subject in [
            subject::reply(&host),
            subject::versions(&host),
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
    fn nothing_is_for_more_than_one_host() {
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
