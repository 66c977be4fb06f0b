//! What is wrong with a source, by APT's message, and what an operator does about it.

/// What is wrong with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It cannot be reached.
    Unreachable,
    /// A proxy or a login page answers in its place.
    Intercepted,
    /// It refuses access.
    Refused,
    /// It, or the proxy, answers that it has a problem itself.
    Failing,
    /// There is no TLS connection, or its certificate is not trusted.
    Tls,
    /// It is not signed, or not with the key that the source entry names.
    Signature,
    /// Signatures cannot be checked on this host.
    NoVerifier,
    /// Its checksums, signature or key are of a kind that APT does not accept.
    Weak,
    /// Its lists have expired.
    Expired,
    /// Its lists are not valid yet.
    FromFuture,
    /// It does not have the requested suite or file.
    Missing,
    /// Its list of mirrors is empty or could not be downloaded.
    NoMirrors,
    /// It is an installation disc.
    Disc,
    /// A downloaded file does not match the source's checksums.
    Mismatch,
    /// Its lists are no lists.
    Unreadable,
    /// A downloaded file could not be written.
    DiskFull,
    /// Something else; see APT's message.
    Other,
}

/// Parts of APT's messages, and what they mean; the first that is found counts.
const MESSAGES: [(Fault, &[&str]); 15] = [
    (Fault::DiskFull, &["No space left on device", "Disk quota exceeded", "have enough free space"]),
    (Fault::Unreadable, &["Unable to parse package file", "MergeList"]),
    (
        Fault::Weak,
        &[
            "weak security information",
            "not considered secure",
            "Policy rejected",
            "untrusted public key algorithm",
        ],
    ),
    (Fault::Expired, &["is expired"]),
    (Fault::FromFuture, &["is not valid yet", "Not live until"]),
    // Before what may be part of a signer's name, such as "Certificates".
    (
        Fault::Signature,
        &[
            "The following signatures",
            "NO_PUBKEY",
            "BADSIG",
            "EXPKEYSIG",
            "REVKEYSIG",
            "sqv returned",
            "No good signature",
        ],
    ),
    (
        Fault::Intercepted,
        &[
            "does the network require authentication",
            "'NOSPLIT'",
            "'NODATA'",
            "Bad header line",
            "invalid reply header",
            "Redirection",
            "Invalid response from proxy",
            "greets back",
            "authorization failure",
            "with wrong version",
        ],
    ),
    (Fault::NoMirrors, &["Mirror list", "Downloading mirror file"]),
    (
        Fault::NoVerifier,
        &["neither seems installed", "Cannot find gpgv", "do not seem to be installed", "Could not execute"],
    ),
    (Fault::Disc, &["apt-cdrom"]),
    (Fault::Missing, &["File not found", "Failed to stat", "have a Release file", "has a Release file"]),
    (Fault::Mismatch, &["Hash Sum mismatch", "Size mismatch", "unexpected size", "Mirror sync"]),
    (
        Fault::Unreachable,
        &[
            "Could not resolve",
            "failure resolving",
            "error resolving",
            "happened resolving",
            "Could not connect",
            "Cannot initiate the connection",
            "Unable to connect",
            "Connection failed",
            "onnection timed out",
            "onnection reset",
            "onnection refused",
            "closed the connection",
            "onnection closed",
            "Read error",
            "Network is unreachable",
            "No route to host",
            "Could not wait for server fd",
            "Error reading from server",
            "Reading from proxy failed",
            "Writing to proxy failed",
            "Timed out while waiting to",
            "from SOCKS proxy",
            "to SOCKS proxy",
            "could not connect to",
            "but timed out",
        ],
    ),
    (Fault::Tls, &["ertificate", "Could not handshake", "SSL connection failed", "TLS"]),
    // Last, because addresses and paths may contain these words.
    (Fault::Signature, &["signature", "signed", "GPG error", "OpenPGP", "Signed-By", "keyring"]),
];

impl Fault {
    pub(super) fn of(reason: &str) -> Self {
        match http_status(reason) {
            Some(401 | 403) => return Self::Refused,
            Some(404 | 410) => return Self::Missing,
            Some(407 | 511) => return Self::Intercepted,
            Some(429 | 500..) => return Self::Failing,
            Some(_) | None => {}
        }
        let known = MESSAGES.iter().find(|(_, parts)| parts.iter().any(|part| reason.contains(part)));
        known.map_or(Self::Other, |(fault, _)| *fault)
    }

    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "cannot be reached; check the network, the proxy and the source's address",
            Self::Intercepted => {
                "is not what answers; check the network for a login page (captive portal), the proxy and its \
                 credentials, and the source's address"
            }
            Self::Refused => "refuses access; check the source's credentials and the proxy",
            Self::Failing => "has a problem, or the proxy has one; try again later",
            Self::Tls => {
                "has no TLS that this host trusts; check the host's clock, its ca-certificates, the network for a login \
                 page, the proxy and the source's address"
            }
            Self::Signature => {
                "is not signed by its key; do not trust it, or renew the key that the source names"
            }
            Self::NoVerifier => "cannot be verified on this host; install gpgv",
            Self::Weak => {
                "uses algorithms that are too weak; its provider must use stronger ones, such as SHA256"
            }
            Self::Expired => {
                "has lists that have expired; check whether the mirror is still updated, and the host's clock"
            }
            Self::FromFuture => "has lists from the future; check the host's clock",
            Self::Missing => "does not have what the source names; correct the source's address or suite",
            Self::NoMirrors => {
                "has no list of mirrors; check the file or address that the source names, and the network"
            }
            Self::Disc => "is an installation disc, which apt-get update cannot read; remove the source",
            Self::Mismatch => {
                "has inconsistent files; try again when the mirror is fully updated, or check the network for a login \
                 page and the proxy for old files"
            }
            Self::Unreadable => {
                "has lists that cannot be read; check the network for a login page, the proxy, and the source"
            }
            Self::DiskFull => "could not be stored because the disk is full; make room",
            Self::Other => "failed",
        }
    }
}

/// The status at the start of APT's message: `404  Not Found [IP: 127.0.0.1 8099]`.
fn http_status(reason: &str) -> Option<u16> {
    let (status, _) = reason.split_once("  ")?;
    (status.len() == 3).then(|| status.parse().ok()).flatten()
}
