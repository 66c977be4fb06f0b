//! How asking a provider fails.

mod hooks;

use serde::{Deserialize, Serialize};

pub use self::hooks::{ConfigurationProblem, MemberProblem};

/// Why a provider has not said what a host is to have. What it said last remains in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Failure {
    /// No URL can be made for the host, whose name would be a segment `.` or `..`.
    HostNotInUrl,
    /// The credentials could not be sent, so nothing was.
    Credentials {
        problem: CredentialsProblem,
        /// The name of the secret; absent in what earlier builds have stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
    },
    /// The client certificate could not be used, so nothing was sent.
    ClientCertificate {
        problem: CredentialsProblem,
        /// The name of the secret; absent in what earlier builds have stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
    },
    /// No connection could be made.
    Unreachable {
        /// The library's error message.
        why: String,
    },
    /// TLS failed, or could not be set up.
    TlsFailed {
        /// The library's error message, in plain words.
        why: String,
    },
    /// It did not answer completely in time.
    TimedOut,
    /// The connection was lost before the answer was complete.
    Cut,
    /// The answer is not HTTP.
    NotHttp {
        /// The library's error message.
        why: String,
    },
    /// A status from 400 to 499 without a meaning of its own, such as 401 or 403.
    Refused { status: u16 },
    /// 429: it was asked too often.
    Throttled,
    /// A status from 500 to 599.
    Unavailable { status: u16 },
    /// A redirect, which is never followed.
    Redirected { status: u16 },
    /// Another status than is expected of a file server, such as 206, or 304 although nothing was asked for conditionally.
    UnexpectedStatus { status: u16 },
    /// It has more bytes than are taken.
    TooLarge {
        /// How many are taken.
        limit: usize,
    },
    /// It is a page of HTML, such as a login page, where a file was expected.
    Html,
    /// It is compressed or otherwise encoded, which was not asked for.
    Encoded,
    /// The answer to a call of hooks is no JSON array.
    NotAnArray {
        /// Where in the body that shows, from 1; the column is 0 where nothing is there.
        line: usize,
        column: usize,
    },
    /// The answer to a call of hooks says nothing about the host.
    NotAnswered,
    /// What the answer to a call of hooks says about the host cannot be used.
    BadMember { why: MemberProblem },
    /// The configuration that a hook gives for the host cannot be used.
    BadConfiguration { why: ConfigurationProblem },
    /// The content could not be sealed to the host's key.
    NotSealed,
    /// The sealed item could not be stored on the bus.
    NotStored,
}

/// Why credentials, or a client certificate, could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialsProblem {
    /// There is no such secret.
    Missing,
    /// The instance that asks has no key that opens it.
    Sealed,
    /// The secret has changed since it was sealed.
    Damaged,
    /// They are for another origin than that of the provider's URL, or for none.
    OtherOrigin,
    /// Credentials with characters that no header can have; or what is no certificate with its private key in PEM.
    Malformed,
}

/// What is needed for the next attempt to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Time: it passes by itself.
    Time,
    /// Somebody has to change something.
    Change,
}

impl Failure {
    /// Whether the provider, or how it is configured, is to blame, and not what its answer would have been stored in.
    pub const fn is_of_provider(&self) -> bool {
        match self {
            Self::NotSealed | Self::NotStored => false,
            Self::HostNotInUrl
            | Self::Credentials { .. }
            | Self::ClientCertificate { .. }
            | Self::Unreachable { .. }
            | Self::TlsFailed { .. }
            | Self::TimedOut
            | Self::Cut
            | Self::NotHttp { .. }
            | Self::Refused { .. }
            | Self::Throttled
            | Self::Unavailable { .. }
            | Self::Redirected { .. }
            | Self::UnexpectedStatus { .. }
            | Self::TooLarge { .. }
            | Self::Html
            | Self::Encoded
            | Self::NotAnArray { .. }
            | Self::NotAnswered
            | Self::BadMember { .. }
            | Self::BadConfiguration { .. } => true,
        }
    }

    /// What is needed for the next attempt to succeed.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable { .. }
            | Self::TimedOut
            | Self::Cut
            | Self::Throttled
            | Self::Unavailable { .. }
            | Self::NotStored => Remedy::Time,
            Self::HostNotInUrl
            | Self::Credentials { .. }
            | Self::ClientCertificate { .. }
            | Self::TlsFailed { .. }
            | Self::NotHttp { .. }
            | Self::Refused { .. }
            | Self::Redirected { .. }
            | Self::UnexpectedStatus { .. }
            | Self::TooLarge { .. }
            | Self::Html
            | Self::Encoded
            | Self::NotAnArray { .. }
            | Self::NotAnswered
            | Self::BadMember { .. }
            | Self::BadConfiguration { .. }
            | Self::NotSealed => Remedy::Change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_back() {
        let why = || "no".to_owned();
        let secret = || Some("files".to_owned());
        for failure in [
            Failure::HostNotInUrl,
            Failure::Credentials { problem: CredentialsProblem::Missing, secret: secret() },
            Failure::Credentials { problem: CredentialsProblem::Sealed, secret: secret() },
            Failure::Credentials { problem: CredentialsProblem::Damaged, secret: secret() },
            Failure::Credentials { problem: CredentialsProblem::OtherOrigin, secret: secret() },
            Failure::Credentials { problem: CredentialsProblem::Malformed, secret: None },
            Failure::ClientCertificate { problem: CredentialsProblem::Malformed, secret: secret() },
            Failure::Unreachable { why: why() },
            Failure::TlsFailed { why: why() },
            Failure::TimedOut,
            Failure::Cut,
            Failure::NotHttp { why: why() },
            Failure::Refused { status: 403 },
            Failure::Throttled,
            Failure::Unavailable { status: 503 },
            Failure::Redirected { status: 302 },
            Failure::UnexpectedStatus { status: 206 },
            Failure::TooLarge { limit: 7 },
            Failure::Html,
            Failure::Encoded,
            Failure::NotAnArray { line: 1, column: 0 },
            Failure::NotAnswered,
            Failure::BadMember { why: MemberProblem::OtherDevice },
            Failure::BadConfiguration { why: ConfigurationProblem::Unsupported { key: "systemd".into() } },
            Failure::NotSealed,
            Failure::NotStored,
        ] {
            let json = serde_json::to_string(&failure).unwrap();
            assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure, "{json}");
        }
        let json = serde_json::to_string(&Failure::UnexpectedStatus { status: 206 }).unwrap();
        assert_eq!(json, r#"{"kind":"unexpected-status","status":206}"#);
        let sealed = Failure::Credentials { problem: CredentialsProblem::Sealed, secret: secret() };
        let json = serde_json::to_string(&sealed).unwrap();
        assert_eq!(json, r#"{"kind":"credentials","problem":"sealed","secret":"files"}"#);
        // As earlier builds have stored it.
        let json = r#"{"kind":"client-certificate","problem":"sealed"}"#;
        let unnamed = Failure::ClientCertificate { problem: CredentialsProblem::Sealed, secret: None };
        assert_eq!(serde_json::from_str::<Failure>(json).unwrap(), unnamed);
        let why = ConfigurationProblem::Mode { file: 2 };
        let json = serde_json::to_string(&Failure::BadConfiguration { why }).unwrap();
        assert_eq!(json, r#"{"kind":"bad-configuration","why":{"kind":"mode","file":2}}"#);
    }
}
