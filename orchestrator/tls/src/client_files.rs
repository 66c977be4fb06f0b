//! The certificate authorities a TLS client trusts and the certificate it presents: PEM files, read when the client is
//! made, or a certificate in PEM that was kept elsewhere.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use os_upgrade_protocol::error::with_causes;
use reqwest::{Certificate, ClientBuilder, Identity};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::pem_file::{self, PemError, PemFile};

/// Files for `https`. Without any, the system's authorities are trusted, and no certificate is presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate to present to servers that ask for one; it needs `key`.
    pub certificate: Option<PathBuf>,
    /// The private key of that certificate.
    pub key: Option<PathBuf>,
    /// The options or settings that name `ca`, `certificate` and `key`, for error messages.
    pub roles: [&'static str; 3],
    /// Whether pipes are accepted, such as a shell's `<(command)`. Reading one may block: acceptable at a terminal, but a
    /// service could wait forever.
    pub pipes: bool,
}

impl TlsFiles {
    /// Makes `builder` use the files.
    ///
    /// # Errors
    /// One cannot be read or used.
    pub fn apply_to(&self, mut builder: ClientBuilder) -> Result<ClientBuilder, PemError> {
        let [ca, certificate, key] = self.roles;
        let read = if self.pipes { PemFile::read } else { PemFile::read_plain };
        if let Some(path) = &self.ca {
            builder = builder.tls_certs_only(authorities(&read(ca, path)?)?);
        }
        if let (Some(shown), Some(private)) = (&self.certificate, &self.key) {
            let (shown, private) = (read(certificate, shown)?, read(key, private)?);
            builder = builder.identity(identity(&shown, &private)?);
        }
        Ok(builder)
    }
}

fn authorities(file: &PemFile<'_>) -> Result<Vec<Certificate>, PemError> {
    let trusted = |certificate| {
        Certificate::from_der(certificate)
            .map_err(|error| file.invalid(format!("holds no usable authority: {}", with_causes(&error))))
    };
    file.authorities()?.iter().map(|certificate| trusted(certificate)).collect()
}

/// The identity contains exactly what was checked: each file may hold more, such as the other's content.
fn identity(certificate: &PemFile<'_>, key: &PemFile<'_>) -> Result<Identity, PemError> {
    let chain = certificate.certificates()?;
    let private = key.private_key()?;
    let mut shown: String = chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect();
    shown.push_str(&match &private {
        PrivateKeyDer::Pkcs1(key) => pem("RSA PRIVATE KEY", key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => pem("EC PRIVATE KEY", key.secret_sec1_der()),
        PrivateKeyDer::Pkcs8(key) => pem("PRIVATE KEY", key.secret_pkcs8_der()),
        _ => return Err(key.invalid("holds a private key of an unknown kind")),
    });
    check_pair(chain, private).map_err(|why| key.invalid(why))?;
    Identity::from_pem(shown.as_bytes())
        .map_err(|error| certificate.invalid(format!("cannot be used: {}", with_causes(&error))))
}

/// The text is not a client certificate. It says no more, since what is wrong with PEM may quote it, private key and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it holds no certificate with its one private key in PEM")]
pub struct IdentityError;

/// The client certificate in `pem`: certificates, of which the first has the only private key there, and the others are its chain.
///
/// # Errors
/// There is something else in `pem`, or the key is encrypted or another certificate's.
pub fn identity_from_pem(pem: &[u8]) -> Result<Identity, IdentityError> {
    let chain = pem_file::certificates(pem).map_err(|_| IdentityError)?;
    let private = pem_file::private_key(pem).map_err(|_| IdentityError)?;
    check_pair(chain, private).map_err(|_| IdentityError)?;
    Identity::from_pem(pem).map_err(|_| IdentityError)
}

/// Checks that a private key is that of the first certificate. The error is the rest of a sentence about the key.
fn check_pair(chain: Vec<CertificateDer<'static>>, private: PrivateKeyDer<'static>) -> Result<(), String> {
    let checked = CertifiedKey::from_der(chain, private, &ring::default_provider());
    checked.map_err(|error| format!("does not go with the certificate: {}", with_causes(&error)))?;
    Ok(())
}

/// `der` in PEM, in lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let lines: Vec<String> = der.chunks(48).map(|bytes| BASE64_STANDARD.encode(bytes)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
