//! How orchestrators and workers show NATS who they are, and know that it is NATS they speak to: credentials files, which
//! are read at every connection so that new ones need no restart, certificates, and the user in a URL.

mod file;

use std::path::{Path, PathBuf};

use async_nats::{Auth, AuthError, ClientError, ConnectOptions, Event, ServerAddr, ServerError};
use percent_encoding::percent_decode_str;

pub use file::{CredentialsFile, FileError};

/// What to show to NATS, and whom to trust. Everything is a file, and may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Credentials, a user's JWT with its seed, as `os-upgrade nats-config` and `nsc` make them.
    pub credentials: Option<PathBuf>,
    /// The authorities of servers' certificates in PEM, instead of the system's. With it only TLS will do.
    pub ca: Option<PathBuf>,
    /// The certificate to show in PEM, and those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate` in PEM.
    pub key: Option<PathBuf>,
}

/// What is given cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The credentials file.
    #[error("cannot use the NATS credentials in {}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: FileError,
    },
    /// A file of TLS.
    #[error("cannot read {}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("a client certificate for NATS and its private key go together; give both")]
    Incomplete,
}

impl Access {
    /// Options for connecting to `servers` with this.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be.
    pub fn options(&self, servers: &[ServerAddr]) -> Result<ConnectOptions, Error> {
        let mut options = match &self.credentials {
            Some(path) => {
                read(path)?;
                let path = path.clone();
                // Read anew each time: whoever gets new credentials is let in without being started again.
                ConnectOptions::with_auth_callback(move |nonce| {
                    let auth = authenticate(&path, &nonce);
                    async move { auth }
                })
            }
            None => match servers.iter().find_map(userinfo) {
                // The client library does not look at the user in a URL by itself.
                Some((user, Some(password))) => ConnectOptions::with_user_and_password(user, password),
                Some((token, None)) => ConnectOptions::with_token(token),
                None => ConnectOptions::new(),
            },
        };
        if let Some(ca) = &self.ca {
            readable(ca)?;
            // Or a server that offers no TLS, whoever it is, would be spoken to in the clear.
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                readable(certificate)?;
                readable(key)?;
                options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => return Err(Error::Incomplete),
        }
        Ok(options)
    }

    /// The name that the credentials are made out to, if there are any that say so.
    pub fn user(&self) -> Option<String> {
        read(self.credentials.as_ref()?).ok()?.user()
    }

    /// What to do about `event`, if it means that the server does not want who shows this.
    pub fn advice(&self, event: &Event) -> Option<String> {
        let refused = match event {
            Event::ServerError(ServerError::AuthorizationViolation) => true,
            // The library hands these on as they are written, so that there is only text to go by.
            Event::ServerError(ServerError::Other(text)) | Event::ClientError(ClientError::Other(text)) => {
                let text = text.to_lowercase();
                let signs = ["authorization violation", "authentication revoked", "authentication expired"];
                signs.iter().any(|sign| text.contains(sign))
            }
            Event::Connected
            | Event::Disconnected
            | Event::LameDuckMode
            | Event::Draining
            | Event::Closed
            | Event::SlowConsumer(_)
            | Event::ServerError(ServerError::SlowConsumer(_))
            | Event::ClientError(ClientError::MaxReconnects | ClientError::ServerNotInPool) => false,
        };
        refused.then(|| match &self.credentials {
            Some(path) => format!(
                "NATS does not accept the credentials in {}: they have been revoked or have expired, or NATS does not \
                 know them yet. Have new ones made with `os-upgrade nats-config host` and put them there: they are \
                 read at each try to connect",
                path.display()
            ),
            None => "NATS does not let anybody in who shows no credentials, or not these: have some made with \
                     `os-upgrade nats-config host` and give the file"
                .to_owned(),
        })
    }
}

fn read(path: &Path) -> Result<CredentialsFile, Error> {
    CredentialsFile::read(path).map_err(|source| Error::Credentials { path: path.to_owned(), source })
}

fn readable(path: &Path) -> Result<(), Error> {
    std::fs::File::open(path).map(drop).map_err(|source| Error::Tls { path: path.to_owned(), source })
}

fn authenticate(path: &Path, nonce: &[u8]) -> Result<Auth, AuthError> {
    let file = CredentialsFile::read(path).map_err(AuthError::new)?;
    let mut auth = Auth::new();
    auth.signature = Some(file.sign(nonce).map_err(AuthError::new)?);
    auth.jwt = Some(file.jwt().to_owned());
    Ok(auth)
}

fn userinfo(address: &ServerAddr) -> Option<(String, Option<String>)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = address.username().filter(|user| !user.is_empty())?;
    Some((decode(user), address.password().map(decode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_stands_in_the_url() {
        for (url, expected) in [
            ("nats://127.0.0.1:4222", None),
            ("127.0.0.1", None),
            ("nats://token@host", Some(("token", None))),
            ("nats://me:s%40fe%2F@host:4222", Some(("me", Some("s@fe/")))),
        ] {
            let user = userinfo(&url.parse().unwrap());
            let user = user.as_ref().map(|(user, password)| (user.as_str(), password.as_deref()));
            assert_eq!(user, expected, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let missing = Some(PathBuf::from("/nonexistent"));
        let told = |access: Access| access.options(&[]).unwrap_err().to_string();
        assert_eq!(
            told(Access { credentials: missing.clone(), ..Access::default() }),
            "cannot use the NATS credentials in /nonexistent"
        );
        assert_eq!(told(Access { ca: missing.clone(), ..Access::default() }), "cannot read /nonexistent");
        assert_eq!(
            told(Access { certificate: missing, ..Access::default() }),
            "a client certificate for NATS and its private key go together; give both"
        );
    }

    #[test]
    fn refusals_are_told_from_other_events() {
        let access = Access { credentials: Some(PathBuf::from("/c")), ..Access::default() };
        let other = |text: &str| Event::ServerError(ServerError::Other(text.to_owned()));
        for event in [
            Event::ServerError(ServerError::AuthorizationViolation),
            other("User Authentication Revoked"),
            other("User Authentication Expired"),
            Event::ClientError(ClientError::Other("authorization violation".to_owned())),
        ] {
            assert!(access.advice(&event).unwrap().contains("the credentials in /c"), "{event}");
        }
        for event in [Event::Connected, Event::Disconnected, other("Stale Connection")] {
            assert_eq!(access.advice(&event), None, "{event}");
        }
    }
}
