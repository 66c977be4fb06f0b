//! Why `apt-get update` failed: which source, and why.

use crate::text::{names, one_line};

/// What is wrong with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be reached.
    Unreachable,
    /// It is not signed, or not with the key that the source entry names.
    Signature,
    /// Its lists have expired, or are not valid yet.
    Expired,
    /// It does not have the requested suite or file.
    Missing,
    /// A downloaded file does not match the source's checksums.
    Mismatch,
    /// A downloaded file could not be written.
    DiskFull,
    /// Something else; see APT's message.
    Other,
}

impl Fault {
    fn of(reason: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| reason.contains(part));
        if has(&["No space left on device"]) {
            Self::DiskFull
        } else if has(&["signature", "signed", "NO_PUBKEY", "BADSIG", "EXPKEYSIG", "GPG error", "Signed-By"])
        {
            Self::Signature
        } else if has(&["is expired", "is not valid yet"]) {
            Self::Expired
        } else if has(&["404", "File not found", "does not have a Release file"]) {
            Self::Missing
        } else if has(&["Hash Sum mismatch", "unexpected size", "Mirror sync"]) {
            Self::Mismatch
        } else if has(&[
            "Could not resolve",
            "Could not connect",
            "Cannot initiate the connection",
            "Unable to connect",
            "Connection failed",
            "Connection timed out",
            "connection timed out",
            "Temporary failure resolving",
            "Network is unreachable",
            "Could not handshake",
            "Could not wait for server fd",
        ]) {
            Self::Unreachable
        } else {
            Self::Other
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => "cannot be reached; check the network, the proxy and the source's address",
            Self::Signature => {
                "is not signed by its key; do not trust it, or renew the key that the source names"
            }
            Self::Expired => "has lists that are no longer valid; check the mirror and the host's clock",
            Self::Missing => "does not have what the source names; correct the source's address or suite",
            Self::Mismatch => "has inconsistent lists; try again when the mirror is fully updated",
            Self::DiskFull => "could not be stored because the disk is full; make room",
            Self::Other => "failed",
        }
    }
}

/// One line for the operator about a failed `apt-get update`, from its output.
pub fn describe_failure(text: &str) -> String {
    let mut failures: Vec<(String, &str)> = Vec::new();
    let errors: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    let repositories = errors.iter().filter_map(|line| unusable(line));
    for (source, reason) in failed_requests(text).chain(repositories) {
        if !failures.iter().any(|(known, _)| *known == source) {
            failures.push((source, reason.trim()));
        }
    }
    if !failures.is_empty() {
        let texts = failures
            .into_iter()
            .map(|(source, reason)| format!("{source} {}: {reason}", Fault::of(reason).advice()));
        return names(texts);
    }
    if errors.is_empty() {
        return format!("apt-get update failed: {}", last_line(text));
    }
    let full = errors.iter().any(|line| Fault::of(line) == Fault::DiskFull);
    let because = if full { " because the disk is full; make room" } else { "" };
    format!("apt-get update failed{because}: {}", errors.join("; "))
}

/// The failures `Err:1 URL SUITE FILE`, with the reason on the next line.
fn failed_requests(text: &str) -> impl Iterator<Item = (String, &str)> {
    let pairs = text.lines().zip(text.lines().skip(1));
    pairs.filter_map(|(line, reason)| {
        let (_, what) = line.strip_prefix("Err:")?.split_once(' ')?;
        Some((source(what)?, reason))
    })
}

/// `The repository 'URL SUITE Release' is not signed.`
fn unusable(line: &str) -> Option<(String, &str)> {
    let (what, reason) = line.strip_prefix("The repository '")?.split_once("' ")?;
    Some((source(what)?, reason))
}

/// The address and suite of a source, without the file.
fn source(what: &str) -> Option<String> {
    let mut words = what.split_whitespace();
    let url = words.next()?;
    // The component in `bookworm/main` is removed, but a suite may contain a slash itself: `stable/updates`.
    let suite = words.next().filter(|suite| *suite != "./");
    Some(suite.map_or_else(|| url.to_owned(), |suite| format!("{url} {}", suite.trim_end_matches("/main"))))
}

fn last_line(text: &str) -> String {
    one_line(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sources_are_named_with_advice() {
        for (text, expected) in [
            (
                "Ign:3 http://127.0.0.1:9 ./ InRelease\n\
                 Err:3 http://127.0.0.1:9 ./ InRelease\n  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                 Err:4 http://mirror.example/debian bookworm InRelease\n  Could not resolve 'mirror.example'\n\
                 Reading package lists...\n\
                 E: Failed to fetch http://127.0.0.1:9/./InRelease  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                 E: Failed to fetch http://mirror.example/debian/dists/bookworm/InRelease  Could not resolve 'mirror.example'\n\
                 E: Some index files failed to download. They have been ignored, or old ones used instead.\n",
                "http://127.0.0.1:9 cannot be reached; check the network, the proxy and the source's address: Could not \
                 connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused), http://mirror.example/debian \
                 bookworm cannot be reached; check the network, the proxy and the source's address: Could not resolve \
                 'mirror.example'",
            ),
            (
                "Err:1 http://a stable/updates InRelease\n  The following signatures couldn't be verified because the public key is not available: NO_PUBKEY AC68\n\
                 W: An error occurred during the signature verification. GPG error: http://a stable/updates InRelease: NO_PUBKEY AC68\n\
                 E: Failed to fetch http://a/dists/stable/updates/InRelease  The following signatures couldn't be verified\n",
                "http://a stable/updates is not signed by its key; do not trust it, or renew the key that the source \
                 names: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY AC68",
            ),
            (
                "E: The repository 'http://a/debian ./ Release' is no longer signed.\n",
                "http://a/debian is not signed by its key; do not trust it, or renew the key that the source names: \
                 is no longer signed.",
            ),
            (
                "Err:2 http://a/debian nosuch Release\n  404  Not Found [IP: 127.0.0.1 8099]\n\
                 E: The repository 'http://a/debian nosuch Release' does not have a Release file.\n",
                "http://a/debian nosuch does not have what the source names; correct the source's address or suite: 404  \
                 Not Found [IP: 127.0.0.1 8099]",
            ),
            (
                "E: Release file for http://a/InRelease is expired (invalid since 3d). Updates for this repository will not be applied.\n",
                "apt-get update failed: Release file for http://a/InRelease is expired (invalid since 3d). Updates for \
                 this repository will not be applied.",
            ),
            (
                "Err:2 http://a bookworm/main amd64 Packages\n  File has unexpected size (916 != 911). Mirror sync in progress?\n  Hashes of expected file:\n",
                "http://a bookworm has inconsistent lists; try again when the mirror is fully updated: File has \
                 unexpected size (916 != 911). Mirror sync in progress?",
            ),
            (
                "Err:2 http://a ./ Packages\n  Error writing to file - write (28: No space left on device)\n",
                "http://a could not be stored because the disk is full; make room: Error writing to file - write (28: No \
                 space left on device)",
            ),
            (
                "E: Write error - write (28: No space left on device)\nE: IO Error saving source cache\n",
                "apt-get update failed because the disk is full; make room: Write error - write (28: No space left on \
                 device); IO Error saving source cache",
            ),
            (
                "E: Malformed line 2 in source list /etc/apt/sources.list (type)\nE: The list of sources could not be read.\n",
                "apt-get update failed: Malformed line 2 in source list /etc/apt/sources.list (type); The list of sources \
                 could not be read.",
            ),
            ("killed\n\n", "apt-get update failed: killed"),
            ("", "apt-get update failed: it printed nothing"),
        ] {
            assert_eq!(describe_failure(text), expected);
        }
    }
}
