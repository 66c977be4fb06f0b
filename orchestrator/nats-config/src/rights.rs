//! What a worker may do on NATS: the table from which the accounts are made.
//!
//! Each host has its own account. In a shared account, permissions would not keep hosts apart: a client that may send
//! JetStream requests chooses the subject of the answer, and that subject is not checked against permissions. An answer to
//! `$JS.API.STREAM.DELETE.os-upgrade:journal` would delete the journal, and an answer to another host's heartbeat subject
//! would be such a heartbeat. In the host's own account, answers only reach subjects that the host may use anyway.
//!
//! For the same reason no host may create a consumer: its delivery subject is in the orchestrators' account, and is not
//! checked. Orchestrators create them, see `consumers` of `os-upgrade-bus`.

use std::cmp::Ordering;

use os_upgrade_protocol::{HostName, subject};
use sha2::{Digest as _, Sha256};

/// The orchestrators' account maps messages to this subject to the [`rights_mark`], by which orchestrators see whether the
/// accounts in force have all rights.
pub const RIGHTS_SUBJECT: &str = "os-upgrade.rights";
/// The version of [`RIGHTS`], to be raised with each right.
const RIGHTS_VERSION: u32 = 2;

/// The subject that tells the version of the rights of hosts.
pub fn rights_mark() -> String {
    format!("{RIGHTS_SUBJECT}.{RIGHTS_VERSION}")
}

/// Compares the rights that a [`rights_mark`] tells of with those of this version. No mark, which leaves [`RIGHTS_SUBJECT`]
/// as it is, means the oldest rights; one of another form is newer.
pub fn compare_rights(mark: &str) -> Ordering {
    if mark == RIGHTS_SUBJECT {
        return Ordering::Less;
    }
    let version =
        mark.strip_prefix(RIGHTS_SUBJECT).and_then(|rest| rest.strip_prefix('.')?.parse::<u32>().ok());
    version.map_or(Ordering::Greater, |version| version.cmp(&RIGHTS_VERSION))
}

/// One thing that workers may do, each for its own host.
#[derive(Debug)]
pub(super) struct Right {
    /// Its name in the claims.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The subject in the orchestrators' account for all hosts, with [`ACCOUNT`] in place of that account's hash.
    exported: &'static str,
    /// The same for one host, with [`HOST`] in place of the host's token.
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
/// The placeholder for the hash of the orchestrators' account.
const ACCOUNT: &str = "ACCOUNT";
const JETSTREAM: &str = "$JS.API";

pub(super) const RIGHTS: &[Right] = &[
    right("replies", Kind::Request, "os-upgrade:control.reply.*", "os-upgrade:control.reply.HOST"),
    right("versions", Kind::Request, "os-upgrade:versions.*", "os-upgrade:versions.HOST"),
    right("output", Kind::Request, "os-upgrade:output.*", "os-upgrade:output.HOST"),
    right("announcements", Kind::Request, "os-upgrade:workers.*.*", "os-upgrade:workers.*.HOST"),
    right("heartbeats", Kind::Request, "os-upgrade.presence.*", "os-upgrade.presence.HOST"),
    right("progress", Kind::Request, "os-upgrade.progress.*", "os-upgrade.progress.HOST"),
    right("hints", Kind::Listen, "os-upgrade.hint.*", "os-upgrade.hint.HOST"),
    right("desired-hints", Kind::Listen, "os-upgrade.desired.*", "os-upgrade.desired.HOST"),
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
    // The long form, see `AckSubject` of `os-upgrade-protocol`; any JetStream domain comes before the account. With any account
    // as well it would also match the short form for other consumers, which have `os-upgrade:control` in place of a
    // number: the server takes a `+NXT` of it, and gives another host's next command.
    right(
        "long-acknowledgements",
        Kind::Request,
        "$JS.ACK.*.ACCOUNT.os-upgrade:control.*.>",
        "$JS.ACK.*.ACCOUNT.os-upgrade:control.worker-HOST.>",
    ),
    right("applied", Kind::Request, "os-upgrade:applied.*", "os-upgrade:applied.HOST"),
    // By subject only: the other forms of the request name no subject that could be checked.
    right(
        "desired",
        Kind::Request,
        "$JS.API.DIRECT.GET.os-upgrade:desired.os-upgrade:desired.*.>",
        "$JS.API.DIRECT.GET.os-upgrade:desired.os-upgrade:desired.HOST.>",
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
    /// The subject that the orchestrators' account, with the public key `site`, exports.
    pub(super) fn exported(&self, site: &str) -> String {
        self.exported.replace(ACCOUNT, &account_hash(site))
    }

    /// The subject in the orchestrators' account, with the public key `site`, for this host alone.
    pub(super) fn of_host(&self, site: &str, host: &HostName) -> String {
        self.imported.replace(ACCOUNT, &account_hash(site)).replace(HOST, &host.token())
    }

    /// The subject in the host's account, if it differs: in that account `$JS.API` is the host's own, which has no
    /// JetStream.
    pub(super) fn local_of_host(&self, host: &HostName) -> Option<String> {
        let rest = self.imported.strip_prefix(JETSTREAM)?;
        Some(format!("{}{}", subject::JETSTREAM_PREFIX, rest.replace(HOST, &host.token())))
    }
}

/// What nats-server calls an account in the subjects of acknowledgements: 8 digits of base 62 from the SHA-256 of its name,
/// which is its public key.
fn account_hash(public_key: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let digest = Sha256::digest(public_key);
    digest.iter().take(8).map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = "ACSU3Q6LTLBVLGAQUONAGXJHVNWGSKKAUA7IY5TB4Z7PLEKSR5O6JTGR";

    #[test]
    fn rights_cover_the_protocol_subjects() {
        let host = HostName::new("h1.example.com").unwrap();
        let rights: Vec<String> = RIGHTS.iter().map(|right| right.of_host(SITE, &host)).collect();
        let next =
            format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", subject::CONTROL_STREAM, subject::consumer(&host));
        for subject in [
            subject::reply(&host),
            subject::versions(&host),
            subject::output(&host),
            subject::applied(&host),
            subject::presence(&host),
            subject::hint(&host),
            subject::desired_hint(&host),
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
    fn rights_are_compared_by_version() {
        for (mark, order) in [
            (rights_mark(), Ordering::Equal),
            (RIGHTS_SUBJECT.to_owned(), Ordering::Less),
            (format!("{RIGHTS_SUBJECT}.0"), Ordering::Less),
            (format!("{RIGHTS_SUBJECT}.10"), Ordering::Greater),
            (format!("{RIGHTS_SUBJECT}.1.1"), Ordering::Greater),
        ] {
            assert_eq!(compare_rights(&mark), order, "{mark}");
        }
    }

    #[test]
    fn rights_have_a_version() {
        let names: Vec<_> = RIGHTS.iter().map(|right| right.name).collect();
        assert_eq!((RIGHTS_VERSION, names.len()), (2, 18), "a new right is a new version: {names:?}");
    }

    #[test]
    fn each_right_is_for_one_host() {
        let host = HostName::new("h01").unwrap();
        for right in RIGHTS {
            let subject = right.of_host(SITE, &host);
            let info = subject.starts_with("$JS.API.STREAM.INFO.");
            assert!(subject.contains("h01") || info, "{subject}");
            assert!(
                !subject.contains("journal")
                    && subject.find('>').is_none_or(|at| subject.find("h01").is_some_and(|host| host < at))
            );
        }
    }
}
