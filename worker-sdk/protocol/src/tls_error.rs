//! Failures of TLS in plain words. The TLS library names some of its variants in the texts of its errors, and the clients
//! for HTTP and NATS pass on only such texts.

use crate::limits::{NAME_BYTES_MAX, bounded};
use crate::text::sanitized_character;

/// Why TLS with another program failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure {
    /// No trusted authority has issued its certificate.
    UntrustedIssuer,
    /// Its certificate is for other names.
    OtherName,
    /// Its certificate is for no name.
    NoName,
    /// It shows the certificate of an authority as its own.
    AuthorityShown,
    /// Its certificate has expired.
    Expired,
    /// Its certificate is not valid yet.
    NotYetValid,
    /// Its certificate cannot be used for another reason.
    InvalidCertificate,
    /// It wants a certificate, and got none.
    CertificateRequired,
    /// It does not accept the certificate that it got.
    CertificateRefused,
    /// What it sends is not TLS.
    NoTls,
    /// Both speak TLS, but without agreement.
    NoAgreement,
}

/// What the library says about a certificate without a `subjectAltName`.
const NO_NAMES: &str = "is not valid for any names";

/// How many names of a certificate are told.
const NAMES_MAX: usize = 5;

/// The beginnings of the library's texts; of those that fit, the first counts.
const SIGNS: [(&str, TlsFailure); 22] = [
    ("invalid peer certificate: UnknownIssuer", TlsFailure::UntrustedIssuer),
    ("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", TlsFailure::AuthorityShown),
    ("invalid peer certificate: certificate not valid for name", TlsFailure::OtherName),
    ("invalid peer certificate: NotValidForName", TlsFailure::OtherName),
    ("invalid peer certificate: certificate expired", TlsFailure::Expired),
    ("invalid peer certificate: Expired", TlsFailure::Expired),
    ("invalid peer certificate: certificate not valid yet", TlsFailure::NotYetValid),
    ("invalid peer certificate: NotValidYet", TlsFailure::NotYetValid),
    ("invalid peer certificate: ", TlsFailure::InvalidCertificate),
    ("received fatal alert: CertificateRequired", TlsFailure::CertificateRequired),
    ("received fatal alert: UnknownCA", TlsFailure::CertificateRefused),
    ("received fatal alert: BadCertificate", TlsFailure::CertificateRefused),
    ("received fatal alert: UnsupportedCertificate", TlsFailure::CertificateRefused),
    ("received fatal alert: Certificate", TlsFailure::CertificateRefused),
    ("received fatal alert: AccessDenied", TlsFailure::CertificateRefused),
    ("received fatal alert: DecryptError", TlsFailure::CertificateRefused),
    ("received fatal alert: ", TlsFailure::NoAgreement),
    ("received corrupt message of type ", TlsFailure::NoTls),
    ("received unexpected handshake message: got", TlsFailure::NoAgreement),
    ("received unexpected message: got", TlsFailure::NoAgreement),
    ("peer is incompatible: ", TlsFailure::NoAgreement),
    ("peer misbehaved: ", TlsFailure::NoAgreement),
];

impl TlsFailure {
    const ALL: [Self; 11] = [
        Self::UntrustedIssuer,
        Self::OtherName,
        Self::NoName,
        Self::AuthorityShown,
        Self::Expired,
        Self::NotYetValid,
        Self::InvalidCertificate,
        Self::CertificateRequired,
        Self::CertificateRefused,
        Self::NoTls,
        Self::NoAgreement,
    ];

    /// What is wrong with the other program, "it", in a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UntrustedIssuer => "its certificate is from an authority that is not trusted",
            Self::OtherName => "its certificate is for other names",
            Self::NoName => "its certificate is for no name: make one with a subjectAltName",
            Self::AuthorityShown => {
                "its certificate is one of an authority (CA:TRUE), which is for signing others only: make one with CA:FALSE"
            }
            Self::Expired => "its certificate has expired",
            Self::NotYetValid => "its certificate is not valid yet",
            Self::InvalidCertificate => "its certificate cannot be used",
            Self::CertificateRequired => "it requires a certificate",
            Self::CertificateRefused => "it does not accept the certificate",
            Self::NoTls => "it does not speak TLS",
            Self::NoAgreement => "there is no agreement on how to use TLS",
        }
    }

    /// The failure that `text` tells in [plain] words.
    pub fn told_in(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| text.contains(failure.as_str()))
    }
}

/// The text of an error with a failure of TLS in plain words. What the library says of such a failure comes last in the
/// text of an error.
pub fn plain(text: String) -> String {
    let found = SIGNS.iter().find_map(|(sign, failure)| Some((text.split_once(sign)?, failure)));
    let Some(((before, detail), failure)) = found else { return text };
    // The library has no variant of its own for this.
    let has_no_name = *failure == TlsFailure::OtherName && detail.contains(NO_NAMES);
    let failure = if has_no_name { &TlsFailure::NoName } else { failure };
    let said = format!("{before}{}", failure.as_str());
    match failure {
        TlsFailure::InvalidCertificate | TlsFailure::NoAgreement => {
            // The library wraps what it has no name for.
            let detail = ["Other(", "OtherError(", "General("]
                .iter()
                .fold(detail, |detail, wrapper| detail.strip_prefix(wrapper).unwrap_or(detail));
            let variant: String = detail.chars().take_while(char::is_ascii_alphanumeric).collect();
            match variant.as_str() {
                "" | "Other" => said,
                variant => format!("{said}: {}", spaced(variant)),
            }
        }
        TlsFailure::OtherName => match names(detail) {
            Some(names) => format!("{said} ({names})"),
            None => said,
        },
        TlsFailure::UntrustedIssuer
        | TlsFailure::NoName
        | TlsFailure::AuthorityShown
        | TlsFailure::Expired
        | TlsFailure::NotYetValid
        | TlsFailure::CertificateRequired
        | TlsFailure::CertificateRefused
        | TlsFailure::NoTls => said,
    }
}

/// The first names that a certificate is for, from a detail such as `is only valid for DnsName("a") or IpAddress(::1)`.
/// Whoever made the certificate chose them.
fn names(detail: &str) -> Option<String> {
    let (_, listed) = detail.split_once("only valid for ")?;
    let name = |part: &str| {
        let name = part.split_once(')')?.0.trim_matches('"');
        Some(bounded(name, NAME_BYTES_MAX).chars().map(sanitized_character).collect::<String>())
    };
    let names: Vec<String> = listed.split('(').skip(1).filter_map(name).take(NAMES_MAX).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The words of a variant's name, such as `bad signature` for `BadSignature`.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(character.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_in_plain_words() {
        for (text, expected, failure) in [
            (
                "client error (Connect): invalid peer certificate: UnknownIssuer",
                "client error (Connect): its certificate is from an authority that is not trusted",
                Some(TlsFailure::UntrustedIssuer),
            ),
            (
                "IO error: invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for \
                 DnsName(\"b\")",
                "IO error: its certificate is for other names (b)",
                Some(TlsFailure::OtherName),
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is only valid for \
                 DnsName(\"b\\u{1b}\u{1b}\"), DnsName(\"*.c.example\") or IpAddress(127.0.0.1)",
                "its certificate is for other names (b\\u{1b}\u{fffd}, *.c.example, 127.0.0.1)",
                Some(TlsFailure::OtherName),
            ),
            (
                "invalid peer certificate: NotValidForName",
                "its certificate is for other names",
                Some(TlsFailure::OtherName),
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"; certificate is not valid for any names \
                 (according to its subjectAltName extension)",
                "its certificate is for no name: make one with a subjectAltName",
                Some(TlsFailure::NoName),
            ),
            (
                "client error (Connect): invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "client error (Connect): its certificate is one of an authority (CA:TRUE), which is for signing others \
                 only: make one with CA:FALSE",
                Some(TlsFailure::AuthorityShown),
            ),
            (
                "invalid peer certificate: certificate expired: verification time 9 (UNIX), but certificate is not valid \
                 after 8 (1 seconds ago)",
                "its certificate has expired",
                Some(TlsFailure::Expired),
            ),
            (
                "invalid peer certificate: BadSignature",
                "its certificate cannot be used: bad signature",
                Some(TlsFailure::InvalidCertificate),
            ),
            (
                "invalid peer certificate: Other(OtherError(..))",
                "its certificate cannot be used",
                Some(TlsFailure::InvalidCertificate),
            ),
            (
                "received fatal alert: CertificateRequired",
                "it requires a certificate",
                Some(TlsFailure::CertificateRequired),
            ),
            (
                "received fatal alert: CertificateExpired",
                "it does not accept the certificate",
                Some(TlsFailure::CertificateRefused),
            ),
            (
                "received fatal alert: ProtocolVersion",
                "there is no agreement on how to use TLS: protocol version",
                Some(TlsFailure::NoAgreement),
            ),
            (
                "received corrupt message of type InvalidContentType",
                "it does not speak TLS",
                Some(TlsFailure::NoTls),
            ),
            ("IO error: Connection refused", "IO error: Connection refused", None),
        ] {
            let told = plain(text.to_owned());
            assert_eq!((told.as_str(), TlsFailure::told_in(&told)), (expected, failure));
            assert_eq!(plain(told.clone()), told);
        }
    }
}
