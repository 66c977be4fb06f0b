//! A certificate authority for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority of one test.
pub struct Authority {
    /// Its certificate, in PEM.
    pub pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority with its own key.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        Self { pem: certificate.pem(), der: certificate.der().clone(), issuer }
    }

    /// A certificate for `name`, and its private key, both in PEM.
    pub fn certify(&self, name: &str) -> (String, String) {
        self.certify_until(name, 4096)
    }

    /// The same, valid until the first day of `year`.
    pub fn certify_until(&self, name: &str, year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(year, 1, 1);
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Writes its own certificate to `directory`, as `<name>.pem`.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        write(directory, name, "pem", &self.pem)
    }

    /// Writes a certificate for `subject`, a DNS name or an address, to `directory` as `<name>.pem`, and its key as
    /// `<name>.key`.
    pub fn certify_into(&self, subject: &str, directory: &Path, name: &str) -> [PathBuf; 2] {
        let (certificate, key) = self.certify(subject);
        [write(directory, name, "pem", &certificate), write(directory, name, "key", &key)]
    }

    /// The configuration of a TLS server with a certificate for `name`. If `clients` is given, it requires client certificates from that
    /// authority.
    pub fn server_config(&self, name: &str, clients: Option<&Self>) -> ServerConfig {
        let (certificate, key) = self.certify(name);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let verifier = clients.map(|clients| {
            WebPkiClientVerifier::builder_with_provider(clients.roots(), provider).build().unwrap()
        });
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        builder.with_single_cert(chain, key).unwrap()
    }

    /// The root certificates of a client that trusts only this authority.
    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        Arc::new(roots)
    }
}

fn write(directory: &Path, name: &str, extension: &str, text: &str) -> PathBuf {
    let path = directory.join(format!("{name}.{extension}"));
    fs::write(&path, text).unwrap();
    path
}
