//! What a client trusts and shows when it speaks TLS: files named by `[fleet-lock]`, read when the client is made.

use std::path::Path;
use std::{fs, io};

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

/// Has `builder` use the files that `settings` name.
pub(super) fn with_files(
    mut builder: ClientBuilder,
    settings: &FleetLock,
) -> Result<ClientBuilder, BuildError> {
    if let Some(path) = &settings.ca {
        let authorities = File::read("ca", path)?.authorities()?;
        builder = builder.tls_certs_only(authorities);
    }
    if let (Some(certificate), Some(key)) = (&settings.certificate, &settings.key) {
        let (certificate, key) = (File::read("certificate", certificate)?, File::read("key", key)?);
        builder = builder.identity(identity(&certificate, &key)?);
    }
    Ok(builder)
}

/// What a key of `[fleet-lock]` names.
struct File<'a> {
    key: &'static str,
    path: &'a Path,
    content: Vec<u8>,
}

impl<'a> File<'a> {
    fn read(key: &'static str, path: &'a Path) -> Result<Self, BuildError> {
        let unreadable = |source| BuildError::Unreadable { key, path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(unreadable)?.len();
        if size > FILE_BYTES_MAX {
            let message = format!("{size} bytes, more than {FILE_BYTES_MAX}");
            return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
        }
        Ok(Self { key, path, content: fs::read(path).map_err(unreadable)? })
    }

    fn unfit(&self, why: impl Into<String>) -> BuildError {
        BuildError::Unfit { key: self.key, path: self.path.to_owned(), why: why.into() }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, BuildError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.content).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err(self.unfit("holds no certificate in PEM")),
            Err(error) => Err(self.unfit(format!("is not PEM: {}", with_causes(&error)))),
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

fn identity(certificate: &File<'_>, key: &File<'_>) -> Result<Identity, BuildError> {
    let chain = certificate.certificates()?;
    let private = PrivateKeyDer::from_pem_slice(&key.content);
    let private = private
        .map_err(|_| key.unfit("holds no private key in PEM; one that is encrypted cannot be used"))?;
    CertifiedKey::from_der(chain, private, &ring::default_provider())
        .map_err(|error| key.unfit(format!("does not go with the certificate: {}", with_causes(&error))))?;
    let both = [certificate.content.as_slice(), b"\n", &key.content].concat();
    Identity::from_pem(&both)
        .map_err(|error| certificate.unfit(format!("cannot be used: {}", with_causes(&error))))
}

#[cfg(test)]
mod tests;
