//! What a client trusts and shows when it speaks TLS: PEM files, read when the client is made.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use os_upgrade_protocol::error::with_causes;
use reqwest::{Certificate, ClientBuilder, Identity};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::BuildError;
use crate::config::FleetLock;

/// The largest file that is read, in bytes: more than all authorities of a system take.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Files for `https`. Without any, the system's authorities are trusted, and no certificate is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities that are trusted in place of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate that is shown to servers that ask for one; it goes with a key.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// What `ca`, `certificate` and `key` are called where they are named, for what is said about them.
    pub roles: [&'static str; 3],
}

impl TlsFiles {
    /// Those that `[fleet-lock]` names.
    pub(super) fn of_settings(settings: &FleetLock) -> Self {
        let FleetLock { ca, certificate, key, .. } = settings.clone();
        let roles = ["`ca` of [fleet-lock]", "`certificate` of [fleet-lock]", "`key` of [fleet-lock]"];
        Self { ca, certificate, key, roles }
    }

    /// Has `builder` use them.
    ///
    /// # Errors
    /// One cannot be read or used.
    pub fn use_in(&self, mut builder: ClientBuilder) -> Result<ClientBuilder, BuildError> {
        let [ca, certificate, key] = self.roles;
        if let Some(path) = &self.ca {
            let authorities = File::read(ca, path)?.authorities()?;
            builder = builder.tls_certs_only(authorities);
        }
        if let (Some(shown), Some(private)) = (&self.certificate, &self.key) {
            let (shown, private) = (File::read(certificate, shown)?, File::read(key, private)?);
            builder = builder.identity(identity(&shown, &private)?);
        }
        Ok(builder)
    }
}

/// One of the files.
struct File<'a> {
    role: &'static str,
    path: &'a Path,
    content: Vec<u8>,
}

impl<'a> File<'a> {
    fn read(role: &'static str, path: &'a Path) -> Result<Self, BuildError> {
        let unreadable = |source| BuildError::Unreadable { role, path: path.to_owned(), source };
        let mut content = Vec::new();
        let file = fs::File::open(path).map_err(unreadable)?;
        // Its size may not be known, as of a device, or change.
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unreadable)?;
        if read as u64 > FILE_BYTES_MAX {
            let message = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
        }
        Ok(Self { role, path, content })
    }

    fn unfit(&self, why: impl Into<String>) -> BuildError {
        BuildError::Unfit { role: self.role, path: self.path.to_owned(), why: why.into() }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, BuildError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.content).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(self.unfit("holds no certificate in PEM")),
            Err(error) => Err(self.unfit(format!("is not PEM: {}", with_causes(&error)))),
        }
    }

    /// The only private key.
    fn private_key(&self) -> Result<PrivateKeyDer<'static>, BuildError> {
        let mut all = PrivateKeyDer::pem_slice_iter(&self.content);
        let Some(Ok(private)) = all.next() else {
            return Err(self.unfit("holds no private key in PEM; one that is encrypted cannot be used"));
        };
        match all.next() {
            None => Ok(private),
            Some(_) => Err(self.unfit("holds more than one private key")),
        }
    }

    fn authorities(&self) -> Result<Vec<Certificate>, BuildError> {
        let trusted = |certificate: CertificateDer<'static>| {
            let checked = RootCertStore::empty().add(certificate.clone());
            checked
                .map_err(|error| self.unfit(format!("holds no usable authority: {}", with_causes(&error))))?;
            Certificate::from_der(&certificate)
                .map_err(|error| self.unfit(format!("holds no usable authority: {}", with_causes(&error))))
        };
        self.certificates()?.into_iter().map(trusted).collect()
    }
}

/// What is shown is exactly what was checked: each file may hold more, such as the other's content.
fn identity(certificate: &File<'_>, key: &File<'_>) -> Result<Identity, BuildError> {
    let chain = certificate.certificates()?;
    let private = key.private_key()?;
    let mut shown: String = chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect();
    shown.push_str(&match &private {
        PrivateKeyDer::Pkcs1(key) => pem("RSA PRIVATE KEY", key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => pem("EC PRIVATE KEY", key.secret_sec1_der()),
        PrivateKeyDer::Pkcs8(key) => pem("PRIVATE KEY", key.secret_pkcs8_der()),
        _ => return Err(key.unfit("holds a private key of an unknown kind")),
    });
    CertifiedKey::from_der(chain, private, &ring::default_provider())
        .map_err(|error| key.unfit(format!("does not go with the certificate: {}", with_causes(&error))))?;
    Identity::from_pem(shown.as_bytes())
        .map_err(|error| certificate.unfit(format!("cannot be used: {}", with_causes(&error))))
}

/// `der` in PEM, in lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let lines: Vec<String> = der.chunks(48).map(|bytes| BASE64_STANDARD.encode(bytes)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests;
