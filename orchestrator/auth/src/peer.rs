//! The identity of a TLS client, from its certificate.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The names in a client's certificate. It is an extension of each of the client's requests, present only if the
/// certificate was verified against `[api.tls] client-ca`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    common_name: Option<Arc<str>>,
    dns_names: Arc<[String]>,
}

impl PeerCertificate {
    /// The names in `certificate`, which has been verified. `None` if it cannot be parsed; its owner then has no name.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let mut common_names = certificate.subject().iter_common_name();
        let common_name = match (common_names.next(), common_names.next()) {
            (Some(name), None) => name.as_str().ok().filter(|name| is_plain(name)).map(Arc::from),
            // Of several names, it is unknown which one the authority has verified.
            (Some(_), Some(_)) | (None, _) => None,
        };
        let extension = certificate.subject_alternative_name().ok().flatten();
        let names = extension.iter().flat_map(|extension| &extension.value.general_names);
        let dns_names = names.filter_map(dns_name).filter(|name| is_plain(name)).map(str::to_owned);
        Some(Self { common_name, dns_names: dns_names.collect() })
    }

    /// The common name of the subject, if it has exactly one.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The DNS names among the subject's alternative names, verbatim; they may contain wildcards.
    pub fn dns_names(&self) -> &[String] {
        &self.dns_names
    }
}

fn dns_name<'a>(name: &GeneralName<'a>) -> Option<&'a str> {
    if let GeneralName::DNSName(name) = name { Some(name) } else { None }
}

/// Whether a name is safe to compare and to log.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn peer(common_names: &[&str], names: Vec<SanType>) -> PeerCertificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (index, name) in common_names.iter().enumerate() {
            let kind = if index == 0 { DnType::CommonName } else { DnType::CustomDnType(vec![2, 5, 4, 3]) };
            params.distinguished_name.push(kind, *name);
        }
        params.subject_alt_names = names;
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        PeerCertificate::of(certificate.der()).unwrap()
    }

    #[test]
    fn names() {
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        let host =
            peer(&["h01"], vec![dns("h01.example"), SanType::IpAddress([10, 0, 0, 1].into()), dns("*.b")]);
        assert_eq!(host.common_name(), Some("h01"));
        assert_eq!(host.dns_names(), ["h01.example", "*.b"]);
        let nobody = peer(&[], Vec::new());
        assert_eq!((nobody.common_name(), nobody.dns_names()), (None, &[][..]));
        assert_eq!(peer(&["h01", "h02"], Vec::new()).common_name(), None);
        assert_eq!(peer(&["h01\nh02"], Vec::new()).common_name(), None);
        assert_eq!(PeerCertificate::of(&CertificateDer::from(vec![0; 3])), None);
    }
}
