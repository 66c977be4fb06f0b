//! PEM files with certificates, private keys and certificate authorities. Their size is bounded. Errors name the file and
//! its role.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use chrono::{DateTime, Utc};
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::error::with_causes;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The largest file that is read, in bytes: more than all authorities of a system need.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// It cannot be read.
    #[error("cannot read {}, the {role}", path.display())]
    Unreadable {
        /// The role of the file, with the setting or option that names it.
        role: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Its content is unusable.
    #[error("{}, the {role}, {why}", path.display())]
    Invalid {
        /// The role of the file, with the setting or option that names it.
        role: &'static str,
        path: PathBuf,
        /// What is wrong, as the rest of a sentence about the file.
        why: String,
    },
}

/// The content of a file, with what error messages need.
pub struct PemFile<'a> {
    role: &'static str,
    path: &'a Path,
    content: Vec<u8>,
}

impl<'a> PemFile<'a> {
    /// Reads `path`. `role` is what the file is for, with the setting or option that names it.
    ///
    /// # Errors
    /// It cannot be read, or is larger than 4 MiB.
    pub fn read(role: &'static str, path: &'a Path) -> Result<Self, PemError> {
        Self::of(role, path, fs::File::open(path))
    }

    /// Like [`Self::read`], for a regular file only.
    ///
    /// # Errors
    /// It is not a regular file, cannot be read, or is larger than 4 MiB.
    pub fn read_plain(role: &'static str, path: &'a Path) -> Result<Self, PemError> {
        Self::of(role, path, plain_file::open(path).map(|(file, _)| file))
    }

    /// Like [`Self::read_plain`], for a file that decides who has rights: only its owner may write it, who is root or
    /// `reader`; `None` stands for any user.
    ///
    /// # Errors
    /// Others may write it, it is not a regular file, cannot be read, or is larger than 4 MiB.
    pub fn read_trusted(role: &'static str, path: &'a Path, reader: Option<u32>) -> Result<Self, PemError> {
        let opened = plain_file::open(path);
        if let Ok((_, metadata)) = &opened {
            let invalid = |why| PemError::Invalid { role, path: path.to_owned(), why };
            plain_file::check_writers(metadata, reader).map_err(invalid)?;
        }
        Self::of(role, path, opened.map(|(file, _)| file))
    }

    fn of(role: &'static str, path: &'a Path, file: io::Result<fs::File>) -> Result<Self, PemError> {
        let unreadable = |source| PemError::Unreadable { role, path: path.to_owned(), source };
        let mut content = Vec::new();
        let file = file.map_err(unreadable)?;
        // The size in its metadata may be missing, as of a device, or change.
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unreadable)?;
        if read as u64 > FILE_BYTES_MAX {
            let message = format!("more than {FILE_BYTES_MAX} bytes");
            return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
        }
        Ok(Self { role, path, content })
    }

    /// An error about the content; `why` is the rest of the sentence, such as "holds no certificate".
    pub fn invalid(&self, why: impl Into<String>) -> PemError {
        PemError::Invalid { role: self.role, path: self.path.to_owned(), why: why.into() }
    }

    /// Every certificate, at least one.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, PemError> {
        certificates(&self.content).map_err(|why| self.invalid(why))
    }

    /// The only private key.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, PemError> {
        private_key(&self.content).map_err(|why| self.invalid(why))
    }

    /// Every certificate, each of which can be trusted as an authority.
    ///
    /// # Errors
    /// There is none, or one is unfit.
    pub fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, PemError> {
        let all = self.certificates()?;
        for certificate in &all {
            let checked = RootCertStore::empty().add(certificate.clone());
            checked.map_err(|error| {
                self.invalid(format!("holds no usable authority: {}", with_causes(&error)))
            })?;
        }
        Ok(all)
    }
}

/// Every certificate in `pem`, at least one.
///
/// # Errors
/// There is none, or one cannot be read. The error is the rest of a sentence about `pem`, of which it may quote some.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err("holds no certificate in PEM".to_owned()),
        Err(error) => Err(format!("is not PEM: {}", with_causes(&error))),
    }
}

/// The only private key in `pem`.
///
/// # Errors
/// There is none, or more than one. The error is the rest of a sentence about `pem`.
pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, &'static str> {
    let mut all = PrivateKeyDer::pem_slice_iter(pem);
    let Some(Ok(private)) = all.next() else {
        return Err("holds no private key in PEM; one that is encrypted cannot be used");
    };
    match all.next() {
        None => Ok(private),
        Some(_) => Err("holds more than one private key"),
    }
}

/// When `certificate` expires.
///
/// # Errors
/// It cannot be parsed; the error is the rest of a sentence about its file.
pub fn not_after(certificate: &CertificateDer<'_>) -> Result<DateTime<Utc>, String> {
    let (_, certificate) = X509Certificate::from_der(certificate)
        .map_err(|error| format!("holds a certificate that cannot be read: {error}"))?;
    let end = certificate.validity().not_after.timestamp();
    Ok(DateTime::from_timestamp(end, 0).unwrap_or(DateTime::<Utc>::MAX_UTC))
}
