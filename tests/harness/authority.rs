//! TLS certificates, and the authorities that issue them.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// A certificate authority of one test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new authority with this common name.
    pub fn new(name: &str) -> Self {
        let mut params = params_named(Vec::new(), name);
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
        let certificate = params_named(vec![subject.to_owned()], subject).signed_by(&key, &self.0).unwrap();
        let files = [(certificate.pem(), "pem"), (key.serialize_pem(), "key")];
        files.map(|(text, extension)| {
            let path = directory.join(format!("{name}.{extension}"));
            fs::write(&path, text).unwrap();
            path
        })
    }
}

fn params_named(subjects: Vec<String>, common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(subjects).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
