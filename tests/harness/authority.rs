//! Certificates for TLS, of authorities that nobody else knows.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// An authority of one test alone.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// One of this name.
    pub fn new(name: &str) -> Self {
        let mut params = named(Vec::new(), name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes its own certificate to `directory`, as `<name>.pem`.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(format!("{name}.pem"));
        fs::write(&path, self.0.pem()).unwrap();
        path
    }

    /// Writes a certificate for `subject`, a DNS name or an address, to `directory` as `<name>.pem`, and its key as
    /// `<name>.key`.
    pub fn certify(&self, subject: &str, directory: &Path, name: &str) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let certificate = named(vec![subject.to_owned()], subject).signed_by(&key, &self.0).unwrap();
        let files = [(certificate.pem(), "pem"), (key.serialize_pem(), "key")];
        files.map(|(text, extension)| {
            let path = directory.join(format!("{name}.{extension}"));
            fs::write(&path, text).unwrap();
            path
        })
    }
}

fn named(subjects: Vec<String>, common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(subjects).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
