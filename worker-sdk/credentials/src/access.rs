//! What is shown to the servers of NATS and whom to trust, and what it takes to connect with it.

use std::path::{Path, PathBuf};

use async_nats::{Auth, AuthError, ConnectOptions, ServerAddr};
use os_upgrade_protocol::error::with_causes;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

use crate::file::{CredentialsFile, FileError};

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
    /// A file of certificates has none, or something that is none.
    #[error(
        "there is no certificate that can be used in {} ({reason}): give the certificates, in PEM, of the authorities \
         that those of the nats-servers are from",
        path.display()
    )]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("a client certificate for NATS and its private key go together; give both")]
    Incomplete,
}

impl Error {
    /// Whether what was given is wrong, rather than a file not there yet.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Certificates { .. } | Self::Incomplete => true,
            Self::Credentials { .. } | Self::Tls { .. } => false,
        }
    }
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
            has_certificates(ca)?;
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
}

/// The same server without the user in its URL, for the client library, which logs the addresses that it tries.
/// [`Access::options`] has taken the user from there.
pub fn address_for_client(server: ServerAddr) -> ServerAddr {
    let mut url = server.clone().into_inner();
    // Neither fails for an address with a host, and others have no user.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    ServerAddr::from_url(url).unwrap_or(server)
}

pub(crate) fn read(path: &Path) -> Result<CredentialsFile, Error> {
    CredentialsFile::read(path).map_err(|source| Error::Credentials { path: path.to_owned(), source })
}

pub(crate) fn readable(path: &Path) -> Result<(), Error> {
    std::fs::File::open(path).map(drop).map_err(|source| Error::Tls { path: path.to_owned(), source })
}

pub(crate) fn has_certificates(path: &Path) -> Result<(), Error> {
    let text = std::fs::read(path).map_err(|source| Error::Tls { path: path.to_owned(), source })?;
    let unfit = |reason| Error::Certificates { path: path.to_owned(), reason };
    let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if all.is_empty() => Err(unfit("none is in it".to_owned())),
        Ok(_) => Ok(()),
        Err(error) => Err(unfit(error.to_string())),
    }
}

pub(crate) fn authenticate(path: &Path, nonce: &[u8]) -> Result<Auth, AuthError> {
    let file = read(path).map_err(|error| AuthError::new(with_causes(&error)))?;
    let mut auth = Auth::new();
    auth.signature = Some(file.sign(nonce).map_err(AuthError::new)?);
    auth.jwt = Some(file.jwt().to_owned());
    Ok(auth)
}

pub(crate) fn userinfo(address: &ServerAddr) -> Option<(String, Option<String>)> {
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
    fn addresses_for_the_client_name_no_user() {
        for (url, expected) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("nats://token@host", "nats://host"),
            ("tls://me:s%40fe%2F@[::1]:4223", "tls://[::1]:4223"),
        ] {
            assert_eq!(address_for_client(url.parse().unwrap()), expected.parse().unwrap(), "{url}");
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
    fn a_file_without_certificates_is_none_of_authorities() {
        let directory = tempfile::tempdir().unwrap();
        let ca = directory.path().join("ca.pem");
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        for (text, reason) in [("", "none is in it"), ("nothing\n", "none is in it"), (broken, "")] {
            std::fs::write(&ca, text).unwrap();
            let access = Access { ca: Some(ca.clone()), ..Access::default() };
            let told = access.options(&[]).unwrap_err().to_string();
            assert!(told.contains(&format!("in {} ({reason}", ca.display())), "{told}");
        }
    }
}
