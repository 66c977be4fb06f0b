//! Explains why a connection to NATS fails: at which server, why, and what to do about it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Event, Server, ServerError};
use futures::future::join_all;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::tls_error::{TlsFailure, plain};

use crate::access::read;
use crate::{Access, LogThrottle};

/// Time limit for resolving a host name.
const RESOLVE_WITHIN: Duration = Duration::from_secs(5);

/// The kind of program that connects; the advice names its options or settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Configured with options and environment variables.
    Worker,
    /// Configured with a settings file.
    Orchestrator,
}

impl Program {
    /// What to do about `error`, the text of a failed attempt to connect with `access`, with failures of TLS in plain words;
    /// `None` if nothing is known about it.
    pub fn advice(self, access: &Access, error: &str) -> Option<String> {
        let [authority, certificate] = match self {
            Self::Worker => ["--tls-ca (OS_UPGRADE_NATS_CA)", "--tls-cert and --tls-key"],
            Self::Orchestrator => ["[nats] ca", "[nats] certificate and key"],
        };
        if is_refusal(error) {
            return Some(self.refused(access));
        }
        match TlsFailure::told_in(error)? {
            TlsFailure::UntrustedIssuer => {
                Some(format!("give the certificate of the server's authority with {authority}"))
            }
            TlsFailure::OtherName => Some("connect to a name that the certificate is for".to_owned()),
            TlsFailure::CertificateRequired | TlsFailure::CertificateRefused => {
                Some(format!("give a certificate that the server knows with {certificate}"))
            }
            TlsFailure::NoTls => Some("or this is not its port".to_owned()),
            TlsFailure::NoName
            | TlsFailure::AuthorityShown
            | TlsFailure::Expired
            | TlsFailure::NotYetValid
            | TlsFailure::InvalidCertificate
            | TlsFailure::NoAgreement => None,
        }
    }

    /// Explains that the server refuses `access`.
    fn refused(self, access: &Access) -> String {
        match (self, &access.credentials) {
            (Self::Worker, Some(path)) => format!(
                "NATS does not accept the credentials in {}: they have been revoked or have expired, or NATS does not \
                 know them yet. Create new ones with `os-upgrade nats-config host` and put them there: the file is \
                 read at each attempt to connect",
                path.display()
            ),
            (Self::Orchestrator, Some(path)) => format!(
                "NATS does not accept the credentials in {}: they have been revoked or have expired, or belong to \
                 another site. Put those there that `os-upgrade nats-config init` created for orchestrators: the file \
                 is read at each attempt to connect",
                path.display()
            ),
            (Self::Worker, None) => "NATS requires credentials, or does not accept this user and password: give a file \
                 of `os-upgrade nats-config host` with --credentials, or the right user and password in the URL; the \
                 URL of a managed nats-server is in its data directory: OS_UPGRADE_NATS_URL=$(cat data/nats/url)"
                .to_owned(),
            (Self::Orchestrator, None) => "NATS requires credentials, or does not accept this user and password: give \
                 the file of `os-upgrade nats-config init` as [nats] credentials, or the right user and password in \
                 [nats] url; the URL of a nats-server that another orchestrator manages is in its data directory: \
                 OS_UPGRADE_NATS_URL=$(cat data/nats/url)"
                .to_owned(),
        }
    }
}

/// Explains what is wrong with one client's connection, at first and then every 10 minutes.
#[derive(Debug)]
pub struct ConnectDiagnostics {
    program: Program,
    access: Access,
    reported: Mutex<Reported>,
}

#[derive(Debug, Default)]
struct Reported {
    /// Failed attempts. They have their own throttle because servers may send many different errors, which would use up
    /// a common one.
    attempts: LogThrottle,
    /// Errors that servers have sent.
    errors: LogThrottle,
    /// Whether there was an attempt since the last connection.
    has_tried: bool,
    /// Failed attempts per server URL, as of the last check.
    failed: HashMap<String, usize>,
}

impl ConnectDiagnostics {
    /// Diagnostics for the client of a `program` that connects with `access`.
    pub fn new(program: Program, access: Access) -> Self {
        Self { program, access, reported: Mutex::default() }
    }

    /// What to log before another attempt: why the last one failed, at which servers, and what to do. The client library
    /// reports this only in its list of servers.
    pub async fn before_attempt(&self, servers: &[Server]) -> Option<String> {
        let has_failed = self.failed_since_last_attempt(servers)?;
        let failures = servers.iter().zip(has_failed).map(async |(server, has_failed)| {
            let error = match &server.last_error {
                Some(error) if has_failed => plain(error.clone()),
                // Names that cannot be resolved are not counted as failed attempts.
                Some(_) | None => resolved(server).await.err()?,
            };
            Some((without_userinfo(server.addr.as_url_str()), error))
        });
        // At once: the attempt waits for it.
        let failures: Vec<_> = join_all(failures).await.into_iter().flatten().collect();
        let text = self.text(&failures)?;
        self.reported().attempts.is_due(&text, Instant::now()).then_some(text)
    }

    /// What to log about `event`; `None` if nothing. Failed attempts are left to [`Self::before_attempt`].
    pub fn describe_event(&self, event: &Event) -> Option<String> {
        let text = match event {
            Event::Connected => {
                *self.reported() = Reported::default();
                return None;
            }
            Event::ServerError(error @ (ServerError::AuthorizationViolation | ServerError::Other(_)))
                if is_refusal(&error.to_string()) =>
            {
                self.program.refused(&self.access)
            }
            Event::ServerError(_) => event.to_string(),
            Event::Disconnected
            | Event::LameDuckMode
            | Event::Draining
            | Event::Closed
            | Event::SlowConsumer(_)
            | Event::ClientError(_) => return None,
        };
        self.reported().errors.is_due(&text, Instant::now()).then_some(text)
    }

    /// For each of `servers`, whether it has failed since the last attempt; `None` before the second attempt.
    fn failed_since_last_attempt(&self, servers: &[Server]) -> Option<Vec<bool>> {
        let mut reported = self.reported();
        let has_failed = |server: &Server| {
            let url = server.addr.as_url_str().to_owned();
            reported.failed.insert(url, server.failed_attempts) != Some(server.failed_attempts)
        };
        let has_failed = servers.iter().map(has_failed).collect();
        std::mem::replace(&mut reported.has_tried, true).then_some(has_failed)
    }

    fn text(&self, failures: &[(String, String)]) -> Option<String> {
        // Without the credentials file the attempt has not reached a server.
        if let Some(Err(error)) = self.access.credentials.as_deref().map(read) {
            return Some(format!("{}; the file is read at each attempt to connect", with_causes(&error)));
        }
        let mut advice: Vec<String> =
            failures.iter().filter_map(|(_, error)| self.program.advice(&self.access, error)).collect();
        advice.dedup();
        let failures: Vec<_> = failures.iter().map(|(url, error)| format!("{url}: {error}")).collect();
        (!failures.is_empty()).then(|| {
            let whole = [vec![failures.join("; ")], advice].concat();
            format!("cannot connect to {}", whole.join(": "))
        })
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server's URL without user and password.
pub fn without_userinfo(server: &str) -> String {
    match (server.split_once("://"), server.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => server.to_owned(),
    }
}

/// Whether a server's error means that it refuses the client. Servers send only text.
fn is_refusal(error: &str) -> bool {
    let error = error.to_lowercase();
    let signs = ["authorization violation", "authentication revoked", "authentication expired"];
    signs.iter().any(|sign| error.contains(sign))
}

async fn resolved(server: &Server) -> Result<(), String> {
    match tokio::time::timeout(RESOLVE_WITHIN, server.addr.socket_addrs()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("DNS error: {error}")),
        Err(_) => Err("DNS error: no answer in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn passwords_are_removed_from_urls() {
        for (server, shown) in [
            ("nats://user:pw@host:4222", "nats://host:4222"),
            ("nats://host:4222", "nats://host:4222"),
            ("user:p@w@host", "host"),
        ] {
            assert_eq!(without_userinfo(server), shown);
        }
    }

    #[test]
    fn refusals_are_explained_once() {
        let access = Access { credentials: Some(PathBuf::from("/c")), ..Access::default() };
        let diagnostics = || ConnectDiagnostics::new(Program::Worker, access.clone());
        let other = |text: &str| Event::ServerError(ServerError::Other(text.to_owned()));
        for event in [
            Event::ServerError(ServerError::AuthorizationViolation),
            other("User Authentication Revoked"),
            other("User Authentication Expired"),
        ] {
            let diagnostics = diagnostics();
            assert!(diagnostics.describe_event(&event).unwrap().contains("the credentials in /c"), "{event}");
            assert_eq!(diagnostics.describe_event(&event), None, "{event}");
            // A connection in between starts over.
            assert_eq!(diagnostics.describe_event(&Event::Connected), None);
            assert!(diagnostics.describe_event(&event).is_some(), "{event}");
        }
        assert_eq!(diagnostics().describe_event(&Event::Disconnected), None);
        let stale = diagnostics().describe_event(&other("Stale Connection"));
        assert!(stale.is_some_and(|text| !text.contains("/c")));
    }

    #[tokio::test]
    async fn server_errors_do_not_hide_failed_attempts() {
        let diagnostics = ConnectDiagnostics::new(Program::Worker, Access::default());
        let refused = |subject| format!("Permissions Violation for Publish to \"{subject}\"");
        let is_reported =
            |text| diagnostics.describe_event(&Event::ServerError(ServerError::Other(text))).is_some();
        assert!((0..100).filter(|subject| is_reported(refused(*subject))).count() < 100);
        let server = |failed_attempts| Server {
            addr: "nats://h:4222".parse().unwrap(),
            failed_attempts,
            did_connect: true,
            is_discovered: false,
            last_error: Some("IO error: Connection refused".to_owned()),
        };
        assert_eq!(diagnostics.before_attempt(&[server(0)]).await, None);
        let text = diagnostics.before_attempt(&[server(1)]).await;
        assert_eq!(text.as_deref(), Some("cannot connect to nats://h:4222: IO error: Connection refused"));
    }

    #[test]
    fn every_failure_is_listed_with_advice() {
        let text = |errors: &[&str]| {
            let failures: Vec<_> =
                errors.iter().map(|error| ("tls://h".to_owned(), (*error).to_owned())).collect();
            ConnectDiagnostics::new(Program::Worker, Access::default()).text(&failures)
        };
        assert_eq!(text(&[]), None);
        let refused = "IO error: Connection refused";
        assert_eq!(text(&[refused]).unwrap(), format!("cannot connect to tls://h: {refused}"));
        let unknown = "IO error: its certificate is from an authority that is not trusted";
        assert_eq!(
            text(&[unknown, refused]).unwrap(),
            format!(
                "cannot connect to tls://h: {unknown}; tls://h: {refused}: \
                 give the certificate of the server's authority with --tls-ca (OS_UPGRADE_NATS_CA)"
            )
        );
        assert!(text(&["authorization violation"]).unwrap().contains("$(cat data/nats/url)"));
        let missing = Access { credentials: Some(PathBuf::from("/nonexistent")), ..Access::default() };
        let missing = ConnectDiagnostics::new(Program::Worker, missing).text(&[]).unwrap();
        assert!(missing.contains("/nonexistent: it cannot be read: No such file"), "{missing}");
    }
}
