//! What a client presents to NATS servers and which servers it trusts, as options of the client library.

use std::path::{Path, PathBuf};

use async_nats::{Auth, AuthError, ConnectOptions, ServerAddr};
use os_upgrade_protocol::error::with_causes;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

use crate::file::{CredentialsFile, FileError};

/// What to present to NATS servers and which certificate authorities to trust. Each part is an optional file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Credentials, a user's JWT with its seed, as `os-upgrade nats-config` and `nsc` create them.
    pub credentials: Option<PathBuf>,
    /// The certificate authorities to trust, in PEM, instead of the system's. If set, TLS is required.
    pub ca: Option<PathBuf>,
    /// The client certificate in PEM, followed by its intermediate certificates.
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate` in PEM.
    pub key: Option<PathBuf>,
}

/// Why an [`Access`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The credentials file cannot be used.
    #[error("cannot use the NATS credentials in {}", path.display())]
    Credentials {
        path: PathBuf,
        /// Why not.
        source: FileError,
    },
    /// A TLS certificate or key file cannot be read.
    #[error("cannot read {}", path.display())]
    Tls {
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file of certificate authorities has no certificate, or an invalid one.
    #[error(
        "there is no usable certificate in {} ({reason}): give the certificates, in PEM, of the authorities that signed \
         the nats-servers' certificates",
        path.display()
    )]
    Certificates {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("a client certificate for NATS and its private key go together; give both")]
    Incomplete,
}

impl Error {
    /// Whether the configuration is wrong, as opposed to a file that may still be created.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Certificates { .. } | Self::Incomplete => true,
            Self::Credentials { .. } | Self::Tls { .. } => false,
        }
    }
}

impl Access {
    /// The client library's options for connecting to `servers`.
    ///
    /// # Errors
    /// A file cannot be read or is not of the expected kind.
    pub fn options(&self, servers: &[ServerAddr]) -> Result<ConnectOptions, Error> {
        let mut options = match &self.credentials {
            Some(path) => {
                read(path)?;
                let path = path.clone();
                // Read for every connection, so that new credentials need no restart.
                ConnectOptions::with_auth_callback(move |nonce| {
                    let auth = authenticate(&path, &nonce);
                    async move { auth }
                })
            }
            None => match servers.iter().find_map(userinfo) {
                // The client library ignores the user in a URL.
                Some((user, Some(password))) => ConnectOptions::with_user_and_password(user, password),
                Some((token, None)) => ConnectOptions::with_token(token),
                None => ConnectOptions::new(),
            },
        };
        if let Some(ca) = &self.ca {
            has_certificates(ca)?;
            // Otherwise the client would speak plain text to any server that offers no TLS.
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

    /// The user name in the credentials; `None` without readable credentials that contain one.
    pub fn user(&self) -> Option<String> {
        read(self.credentials.as_ref()?).ok()?.user()
    }
}

/// The server's address without the user in its URL, because the client library logs the addresses that it tries.
/// The user is passed with [`Access::options`].
pub fn address_for_client(server: ServerAddr) -> ServerAddr {
    let mut url = server.clone().into_inner();
    // Neither call fails for an address with a host, and other addresses have no user.
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
    let unusable = |reason| Error::Certificates { path: path.to_owned(), reason };
    let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    match all {
        Ok(all) if all.is_empty() => Err(unusable("it contains none".to_owned())),
        Ok(_) => Ok(()),
        Err(error) => Err(unusable(error.to_string())),
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
    fn user_is_read_from_url() {
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
    fn client_addresses_contain_no_user() {
        for (url, expected) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("nats://token@host", "nats://host"),
            ("tls://me:s%40fe%2F@[::1]:4223", "tls://[::1]:4223"),
        ] {
            assert_eq!(address_for_client(url.parse().unwrap()), expected.parse().unwrap(), "{url}");
        }
    }

    #[test]
    fn unusable_files_are_named() {
        let missing = Some(PathBuf::from("/nonexistent"));
        let error = |access: Access| access.options(&[]).unwrap_err().to_string();
        assert_eq!(
            error(Access { credentials: missing.clone(), ..Access::default() }),
            "cannot use the NATS credentials in /nonexistent"
        );
        assert_eq!(error(Access { ca: missing.clone(), ..Access::default() }), "cannot read /nonexistent");
        assert_eq!(
            error(Access { certificate: missing, ..Access::default() }),
            "a client certificate for NATS and its private key go together; give both"
        );
    }

    #[test]
    fn ca_file_needs_valid_certificates() {
        let directory = tempfile::tempdir().unwrap();
        let ca = directory.path().join("ca.pem");
        let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        for (text, reason) in [("", "it contains none"), ("nothing\n", "it contains none"), (broken, "")] {
            std::fs::write(&ca, text).unwrap();
            let access = Access { ca: Some(ca.clone()), ..Access::default() };
            let error = access.options(&[]).unwrap_err().to_string();
            assert!(error.contains(&format!("in {} ({reason}", ca.display())), "{error}");
        }
    }
}
