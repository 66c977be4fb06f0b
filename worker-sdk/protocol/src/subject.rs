//! Streams, subjects and consumer names.

use crate::name::{check, token};
use crate::{ApplicationName, HostName, ItemId, NameError};

/// The durable stream of commands and replies.
pub const CONTROL_STREAM: &str = "os-upgrade:control";
/// The last versions of every host.
pub const VERSIONS_STREAM: &str = "os-upgrade:versions";
/// The last announcement of every worker.
pub const WORKERS_STREAM: &str = "os-upgrade:workers";
/// The last output of the commands of every host; a worker may do without it.
pub const OUTPUT_STREAM: &str = "os-upgrade:output";
/// What every host is to have: items, each sealed to its host, and a manifest per host that says which of them count.
pub const DESIRED_STREAM: &str = "os-upgrade:desired";
/// What every host has applied of that: its last report.
pub const APPLIED_STREAM: &str = "os-upgrade:applied";
/// The orchestrator's log of facts; no worker reads or writes it.
pub const JOURNAL_STREAM: &str = "os-upgrade:journal";

/// Matches every command.
pub const COMMANDS: &str = "os-upgrade:control.command.*";
/// Matches every reply.
pub const REPLIES: &str = "os-upgrade:control.reply.*";
/// One message per leadership: the fence of every command.
pub const LEADER: &str = "os-upgrade:control.leader";
/// Matches the versions of every host.
pub const VERSIONS: &str = "os-upgrade:versions.*";
/// Matches every announcement.
pub const WORKERS: &str = "os-upgrade:workers.*.*";
/// Matches the output of every host.
pub const OUTPUTS: &str = "os-upgrade:output.*";
/// Matches the items and the manifest of every host.
pub const DESIRED: &str = "os-upgrade:desired.>";
/// The fence of whoever writes what hosts are to have. No host's subject is as short.
pub const DESIRED_LEADER: &str = "os-upgrade:desired.leader";
/// Matches the reports of every host on what it has applied.
pub const APPLIED: &str = "os-upgrade:applied.*";
/// Matches every heartbeat (core NATS).
pub const PRESENCES: &str = "os-upgrade.presence.*";
/// Matches the progress of every host (core NATS).
pub const PROGRESSES: &str = "os-upgrade.progress.*";
/// Matches the heartbeats of the orchestrator's instances (core NATS).
pub const INSTANCES: &str = "os-upgrade.instance.*";
/// Matches every consumer request (core NATS).
pub const CONSUMER_REQUESTS: &str = "os-upgrade.consumer.*";
/// The prefix of the JetStream API, instead of `$JS.API`, for a host with its own account.
pub const JETSTREAM_PREFIX: &str = "os-upgrade.js";
/// Where orchestrators try what NATS takes, and nobody listens.
pub const TRIAL: &str = "os-upgrade.trial";
/// Facts, in the journal.
pub const JOURNAL_FACT: &str = "os-upgrade:journal.fact";
/// Snapshots, in the journal.
pub const JOURNAL_SNAPSHOT: &str = "os-upgrade:journal.snapshot";

const COMMAND_PREFIX: &str = "os-upgrade:control.command.";
const REPLY_PREFIX: &str = "os-upgrade:control.reply.";
const VERSIONS_PREFIX: &str = "os-upgrade:versions.";
const WORKERS_PREFIX: &str = "os-upgrade:workers.";
const OUTPUT_PREFIX: &str = "os-upgrade:output.";
const DESIRED_PREFIX: &str = "os-upgrade:desired.";
const APPLIED_PREFIX: &str = "os-upgrade:applied.";
/// The prefix of every heartbeat (core NATS).
pub const PRESENCE_PREFIX: &str = "os-upgrade.presence.";
const PROGRESS_PREFIX: &str = "os-upgrade.progress.";
const HINT_PREFIX: &str = "os-upgrade.hint.";
const DESIRED_HINT_PREFIX: &str = "os-upgrade.desired.";
const CONSUMER_REQUEST_PREFIX: &str = "os-upgrade.consumer.";
const REQUEST_PREFIX: &str = "os-upgrade.request.";
const INSTANCE_PREFIX: &str = "os-upgrade.instance.";
const SITE_PREFIX: &str = "os-upgrade.site.";

/// The commands to `host`; its worker consumes this one subject.
pub fn command(host: &HostName) -> String {
    format!("{COMMAND_PREFIX}{}", host.token())
}

/// The replies of `host`.
pub fn reply(host: &HostName) -> String {
    format!("{REPLY_PREFIX}{}", host.token())
}

/// The versions of `host`.
pub fn versions(host: &HostName) -> String {
    format!("{VERSIONS_PREFIX}{}", host.token())
}

/// The announcement of `application` on `host`.
pub fn worker(application: &ApplicationName, host: &HostName) -> String {
    format!("{WORKERS_PREFIX}{}.{}", application.token(), host.token())
}

/// Matches the announcements of `host` with every application.
pub fn workers_of(host: &HostName) -> String {
    format!("{WORKERS_PREFIX}*.{}", host.token())
}

/// The output of the commands of `host`.
pub fn output(host: &HostName) -> String {
    format!("{OUTPUT_PREFIX}{}", host.token())
}

/// Which items of `host` count.
pub fn desired_manifest(host: &HostName) -> String {
    format!("{DESIRED_PREFIX}{}.manifest", host.token())
}

/// The item `id` for `host`.
pub fn desired_item(host: &HostName, id: &ItemId) -> String {
    format!("{DESIRED_PREFIX}{}.item.{id}", host.token())
}

/// Matches the items for `host`.
pub fn desired_items(host: &HostName) -> String {
    format!("{DESIRED_PREFIX}{}.item.*", host.token())
}

/// What `host` has applied.
pub fn applied(host: &HostName) -> String {
    format!("{APPLIED_PREFIX}{}", host.token())
}

/// The heartbeat of `host` (core NATS).
pub fn presence(host: &HostName) -> String {
    format!("{PRESENCE_PREFIX}{}", host.token())
}

/// The progress of `host` with the command under way (core NATS).
pub fn progress(host: &HostName) -> String {
    format!("{PROGRESS_PREFIX}{}", host.token())
}

/// Hints to a running handler on `host` that it should stop if it can (core NATS).
pub fn hint(host: &HostName) -> String {
    format!("{HINT_PREFIX}{}", host.token())
}

/// Hints to `host` that its manifest has changed (core NATS). Another subject than that of [`hint`], which an older worker would take for a
/// request to stop.
pub fn desired_hint(host: &HostName) -> String {
    format!("{DESIRED_HINT_PREFIX}{}", host.token())
}

/// Requests to the orchestrator for the consumer of `host` (core NATS).
pub fn consumer_request(host: &HostName) -> String {
    format!("{CONSUMER_REQUEST_PREFIX}{}", host.token())
}

/// Requests to one process of the orchestrator (core NATS): `instance` is the name it keeps across restarts, `nonce`
/// is unique to the process. Only orchestrators may publish there.
pub fn request(instance: &str, nonce: &str) -> String {
    format!("{REQUEST_PREFIX}{}.{}", token(instance), token(nonce))
}

/// The heartbeat of an instance of the orchestrator (core NATS). Only orchestrators may publish there.
pub fn instance(instance: &str) -> String {
    format!("{INSTANCE_PREFIX}{}", token(instance))
}

/// Requests to the orchestrator of the site `name` (core NATS). Only orchestrators may publish there.
///
/// # Errors
/// `name` is not a valid site name: 1 to 255 bytes of UTF-8 without control characters.
pub fn site(name: &str) -> Result<String, NameError> {
    check(name)?;
    Ok(format!("{SITE_PREFIX}{}", token(name)))
}

/// The durable consumer through which the worker of `host` receives its commands.
pub fn consumer(host: &HostName) -> String {
    format!("worker-{}", host.token())
}

/// The kind of a message on the control stream, derived from its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlSubject {
    /// A command to this host.
    Command(HostName),
    /// A reply of this host.
    Reply(HostName),
    /// A new leader's fence.
    Leader,
}

impl ControlSubject {
    /// Parses a subject of the control stream; `None` for a subject that is not part of this protocol.
    ///
    /// # Errors
    /// The host's token is not an encoded name.
    pub fn parse(subject: &str) -> Result<Option<Self>, NameError> {
        if let Some(token) = subject.strip_prefix(COMMAND_PREFIX) {
            HostName::from_token(token).map(Self::Command).map(Some)
        } else if let Some(token) = subject.strip_prefix(REPLY_PREFIX) {
            HostName::from_token(token).map(Self::Reply).map(Some)
        } else {
            Ok((subject == LEADER).then_some(Self::Leader))
        }
    }
}

/// The host in a subject that matches [`VERSIONS`].
pub fn versions_host(subject: &str) -> Result<HostName, NameError> {
    host_after(VERSIONS_PREFIX, subject)
}

/// The host in a subject that matches [`APPLIED`].
pub fn applied_host(subject: &str) -> Result<HostName, NameError> {
    host_after(APPLIED_PREFIX, subject)
}

/// The host in a subject that matches [`PRESENCES`].
pub fn presence_host(subject: &str) -> Result<HostName, NameError> {
    host_after(PRESENCE_PREFIX, subject)
}

/// The host in a subject that matches [`PROGRESSES`].
pub fn progress_host(subject: &str) -> Result<HostName, NameError> {
    host_after(PROGRESS_PREFIX, subject)
}

/// The application and the host in a subject that matches [`WORKERS`].
pub fn worker_parts(subject: &str) -> Result<(ApplicationName, HostName), NameError> {
    let bad = || NameError::BadToken(subject.to_owned());
    let (application, host) =
        subject.strip_prefix(WORKERS_PREFIX).and_then(|rest| rest.split_once('.')).ok_or_else(bad)?;
    Ok((ApplicationName::from_token(application)?, HostName::from_token(host)?))
}

/// The host in a subject that matches [`CONSUMER_REQUESTS`], if a consumer can be named after it.
pub fn consumer_request_host(subject: &str) -> Result<HostName, NameError> {
    let host = host_after(CONSUMER_REQUEST_PREFIX, subject)?;
    host.check_length()?;
    Ok(host)
}

fn host_after(prefix: &str, subject: &str) -> Result<HostName, NameError> {
    let token = subject.strip_prefix(prefix).ok_or_else(|| NameError::BadToken(subject.to_owned()))?;
    HostName::from_token(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_round_trip() {
        let application = ApplicationName::new("os.upgrade").unwrap();
        for name in ["h01", "h1.example.com", "häst", "a>b"] {
            let host = HostName::new(name).unwrap();
            assert_eq!(
                ControlSubject::parse(&command(&host)),
                Ok(Some(ControlSubject::Command(host.clone())))
            );
            assert_eq!(ControlSubject::parse(&reply(&host)), Ok(Some(ControlSubject::Reply(host.clone()))));
            assert_eq!(versions_host(&versions(&host)).unwrap(), host);
            assert_eq!(applied_host(&applied(&host)).unwrap(), host);
            assert_eq!(presence_host(&presence(&host)).unwrap(), host);
            assert_eq!(progress_host(&progress(&host)).unwrap(), host);
            assert_eq!(consumer_request_host(&consumer_request(&host)).unwrap(), host);
            assert_eq!(
                worker_parts(&worker(&application, &host)).unwrap(),
                (application.clone(), host.clone())
            );
        }
        assert_eq!(ControlSubject::parse(LEADER), Ok(Some(ControlSubject::Leader)));
        assert_eq!(ControlSubject::parse("os-upgrade:control.other"), Ok(None));
        assert!(ControlSubject::parse("os-upgrade:control.reply.a.b").is_err());
        assert!(worker_parts("os-upgrade:workers.a").is_err());
    }

    #[test]
    fn subjects_match_the_documentation() {
        let host = HostName::new("h1.example.com").unwrap();
        assert_eq!(command(&host), "os-upgrade:control.command.h1%2Eexample%2Ecom");
        assert_eq!(output(&host), "os-upgrade:output.h1%2Eexample%2Ecom");
        assert_eq!(desired_manifest(&host), "os-upgrade:desired.h1%2Eexample%2Ecom.manifest");
        let item = desired_item(&host, &ItemId::new("a_1").unwrap());
        assert_eq!(item, "os-upgrade:desired.h1%2Eexample%2Ecom.item.a_1");
        assert_eq!(applied(&host), "os-upgrade:applied.h1%2Eexample%2Ecom");
        assert_eq!(hint(&host), "os-upgrade.hint.h1%2Eexample%2Ecom");
        assert_eq!(desired_hint(&host), "os-upgrade.desired.h1%2Eexample%2Ecom");
        assert_eq!(consumer(&host), "worker-h1%2Eexample%2Ecom");
        assert_eq!(instance("a.b"), "os-upgrade.instance.a%2Eb");
        assert_eq!(request("a.b", "n1"), "os-upgrade.request.a%2Eb.n1");
        assert_eq!(site("Hall 1.a").unwrap(), "os-upgrade.site.Hall%201%2Ea");
        assert_eq!(site(""), Err(NameError::Empty));
    }
}
