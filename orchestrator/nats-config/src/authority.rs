//! The certificate authority for the servers, for sites that have none of their own.

use chrono::{Datelike as _, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// How long certificates are valid. They are only for NATS inside a site, where nothing would renew them.
const VALID_YEARS: i32 = 10;

/// A certificate and its private key, in PEM.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Creates an authority.
pub(super) fn authority() -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    Ok(Pair { certificate: authority_params()?.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

/// Creates a certificate for the server `host`, signed by `authority`.
pub(super) fn server(host: &str, authority: &Pair) -> Result<Pair, rcgen::Error> {
    // Only the authority's name goes into this certificate, and that is always the same.
    let issuer = Issuer::new(authority_params()?, KeyPair::from_pem(&authority.key)?);
    let key = KeyPair::generate()?;
    let certificate = params(vec![host.to_owned()], host)?.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(Vec::new(), "os-upgrade NATS")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(names: Vec<String>, common_name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = Utc::now();
    // A day early, for clocks that are behind.
    let begin = now - chrono::TimeDelta::days(1);
    let date = |date: chrono::DateTime<Utc>, years: i32| {
        // Every month of every year has a 28th.
        let day = u8::try_from(date.day().min(28)).unwrap_or(1);
        date_time_ymd(date.year() + years, u8::try_from(date.month()).unwrap_or(1), day)
    };
    params.not_before = date(begin, 0);
    params.not_after = date(now, VALID_YEARS);
    Ok(params)
}
