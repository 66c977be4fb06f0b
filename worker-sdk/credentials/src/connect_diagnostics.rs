//! What goes wrong with a connection to NATS, in words: where, why, and what to do about it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Event, Server, ServerError};
use futures::future::join_all;
use os_upgrade_protocol::error::with_causes;

use crate::access::read;
use crate::{Access, LogThrottle};

/// How long a name may take to be found.
const RESOLVE_WITHIN: Duration = Duration::from_secs(5);

/// Who connects: what is to be done has other names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// One that has options.
    Worker,
    /// One that has a settings file.
    Orchestrator,
}

impl Program {
    /// What to do about `error`, which is an attempt's to connect with `access`, where that is known.
    pub fn advice(self, access: &Access, error: &str) -> Option<String> {
        let [authority, certificate] = match self {
            Self::Worker => ["--tls-ca (OS_UPGRADE_NATS_CA)", "--tls-cert and --tls-key"],
            Self::Orchestrator => ["[nats] ca", "[nats] certificate and key"],
        };
        if is_refusal(error) {
            return Some(self.refused(access));
        }
        let advice = [
            ("UnknownIssuer", format!("give the certificate of the server's authority with {authority}")),
            ("not valid for name", "connect to a name that the server's certificate is for".to_owned()),
            ("CertificateRequired", format!("give a certificate that the server knows with {certificate}")),
            ("InvalidContentType", "the server does not speak TLS, or this is not its port".to_owned()),
        ];
        advice.into_iter().find_map(|(sign, advice)| error.contains(sign).then_some(advice))
    }

    /// What it means that the server does not want who shows `access`.
    fn refused(self, access: &Access) -> String {
        match (self, &access.credentials) {
            (Self::Worker, Some(path)) => format!(
                "NATS does not accept the credentials in {}: they have been revoked or have expired, or NATS does not \
                 know them yet. Have new ones made with `os-upgrade nats-config host` and put them there: they are \
                 read at each try to connect",
                path.display()
            ),
            (Self::Orchestrator, Some(path)) => format!(
                "NATS does not accept the credentials in {}: they have been revoked or have expired, or are another \
                 site's. Put those there that `os-upgrade nats-config init` made for orchestrators: they are read at \
                 each try to connect",
                path.display()
            ),
            (Self::Worker, None) => "NATS does not let in who shows no credentials, or this user and password: give a \
                 file of `os-upgrade nats-config host` with --credentials, or the right user and password in the URL; \
                 that of a managed nats-server stands in its data directory: OS_UPGRADE_NATS_URL=$(cat data/nats/url)"
                .to_owned(),
            (Self::Orchestrator, None) => "NATS does not let in who shows no credentials, or this user and password: \
                 give the file of `os-upgrade nats-config init` as [nats] credentials, or the right user and password \
                 in [nats] url; that of a nats-server that another orchestrator manages stands in its data directory: \
                 OS_UPGRADE_NATS_URL=$(cat data/nats/url)"
                .to_owned(),
        }
    }
}

/// What is wrong with one client's connection, told once and then each 10 minutes.
#[derive(Debug)]
pub struct ConnectDiagnostics {
    program: Program,
    access: Access,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// Attempts that failed. What servers refuse may differ each time, and must not keep these from being told.
    attempts: LogThrottle,
    /// What servers have said.
    errors: LogThrottle,
    /// Whether there was an attempt since there was a connection.
    has_tried: bool,
    /// How many attempts had failed at a server when it was looked at last.
    failed: HashMap<String, usize>,
}

impl ConnectDiagnostics {
    /// Of a client that `program` has connect with `access`.
    pub fn new(program: Program, access: Access) -> Self {
        Self { program, access, told: Mutex::default() }
    }

    /// What to say before another attempt: why the last one failed, at which servers, and what to do. The client says
    /// that nowhere but in what it keeps of its servers.
    pub async fn before_attempt(&self, servers: &[Server]) -> Option<String> {
        let has_failed = self.count(servers)?;
        let failures = servers.iter().zip(has_failed).map(async |(server, has_failed)| {
            let error = match &server.last_error {
                Some(error) if has_failed => error.clone(),
                // Names that cannot be found are not counted.
                Some(_) | None => resolved(server).await.err()?,
            };
            Some((without_userinfo(server.addr.as_url_str()), error))
        });
        // At once: the attempt waits for it.
        let failures: Vec<_> = join_all(failures).await.into_iter().flatten().collect();
        let text = self.text(&failures)?;
        self.told().attempts.is_due(&text, Instant::now()).then_some(text)
    }

    /// What to say of `event`. Attempts that fail are [`Self::before_attempt`]'s.
    pub fn of_event(&self, event: &Event) -> Option<String> {
        let text = match event {
            Event::Connected => {
                *self.told() = Told::default();
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
        self.told().errors.is_due(&text, Instant::now()).then_some(text)
    }

    /// Which of `servers` have failed since the last attempt; nothing before the second one.
    fn count(&self, servers: &[Server]) -> Option<Vec<bool>> {
        let mut told = self.told();
        let count = |server: &Server| {
            let url = server.addr.as_url_str().to_owned();
            told.failed.insert(url, server.failed_attempts) != Some(server.failed_attempts)
        };
        let has_failed = servers.iter().map(count).collect();
        std::mem::replace(&mut told.has_tried, true).then_some(has_failed)
    }

    fn text(&self, failures: &[(String, String)]) -> Option<String> {
        // Without a file nothing has come to the server.
        if let Some(Err(error)) = self.access.credentials.as_deref().map(read) {
            return Some(format!("{}; it is read at each try to connect", with_causes(&error)));
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

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Servers hand these on as they are written, so that there is only text to go by.
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
    fn passwords_are_not_shown() {
        for (server, shown) in [
            ("nats://user:pw@host:4222", "nats://host:4222"),
            ("nats://host:4222", "nats://host:4222"),
            ("user:p@w@host", "host"),
        ] {
            assert_eq!(without_userinfo(server), shown);
        }
    }

    #[test]
    fn refusals_are_told_from_other_events_and_once() {
        let access = Access { credentials: Some(PathBuf::from("/c")), ..Access::default() };
        let trouble = || ConnectDiagnostics::new(Program::Worker, access.clone());
        let other = |text: &str| Event::ServerError(ServerError::Other(text.to_owned()));
        for event in [
            Event::ServerError(ServerError::AuthorizationViolation),
            other("User Authentication Revoked"),
            other("User Authentication Expired"),
        ] {
            let trouble = trouble();
            assert!(trouble.of_event(&event).unwrap().contains("the credentials in /c"), "{event}");
            assert_eq!(trouble.of_event(&event), None, "{event}");
            // There was a connection meanwhile.
            assert_eq!(trouble.of_event(&Event::Connected), None);
            assert!(trouble.of_event(&event).is_some(), "{event}");
        }
        assert_eq!(trouble().of_event(&Event::Disconnected), None);
        let stale = trouble().of_event(&other("Stale Connection"));
        assert!(stale.is_some_and(|text| !text.contains("/c")));
    }

    #[tokio::test]
    async fn what_servers_refuse_keeps_no_failed_attempt_from_being_told() {
        let trouble = ConnectDiagnostics::new(Program::Worker, Access::default());
        let refused = |subject| format!("Permissions Violation for Publish to \"{subject}\"");
        let is_told = |text| trouble.of_event(&Event::ServerError(ServerError::Other(text))).is_some();
        assert!((0..100).filter(|subject| is_told(refused(*subject))).count() < 100);
        let server = |failed_attempts| Server {
            addr: "nats://h:4222".parse().unwrap(),
            failed_attempts,
            did_connect: true,
            is_discovered: false,
            last_error: Some("IO error: Connection refused".to_owned()),
        };
        assert_eq!(trouble.before_attempt(&[server(0)]).await, None);
        let told = trouble.before_attempt(&[server(1)]).await;
        assert_eq!(told.as_deref(), Some("cannot connect to nats://h:4222: IO error: Connection refused"));
    }

    #[test]
    fn every_server_is_told_with_what_to_do() {
        let told = |errors: &[&str]| {
            let failures: Vec<_> =
                errors.iter().map(|error| ("tls://h".to_owned(), (*error).to_owned())).collect();
            ConnectDiagnostics::new(Program::Worker, Access::default()).text(&failures)
        };
        assert_eq!(told(&[]), None);
        let refused = "IO error: Connection refused";
        assert_eq!(told(&[refused]).unwrap(), format!("cannot connect to tls://h: {refused}"));
        let unknown = "IO error: invalid peer certificate: UnknownIssuer";
        assert_eq!(
            told(&[unknown, refused]).unwrap(),
            format!(
                "cannot connect to tls://h: {unknown}; tls://h: {refused}: \
                 give the certificate of the server's authority with --tls-ca (OS_UPGRADE_NATS_CA)"
            )
        );
        assert!(told(&["authorization violation"]).unwrap().contains("$(cat data/nats/url)"));
        let gone = Access { credentials: Some(PathBuf::from("/nonexistent")), ..Access::default() };
        let gone = ConnectDiagnostics::new(Program::Worker, gone).text(&[]).unwrap();
        assert!(gone.contains("/nonexistent: it cannot be read: No such file"), "{gone}");
    }
}
