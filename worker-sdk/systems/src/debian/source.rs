//! Why APT could not read its sources or download packages: which source, why, and what an operator does about it.

mod fault;

use crate::text::{names, one_line};
use fault::Fault;

/// One line for the operator about a failed `apt-get update`, from its output. `lists` is the directory of the lists.
pub fn describe_update(text: &str, lists: &str) -> String {
    let mut failures = misread(text);
    for (source, what) in changed(text) {
        failures.add(source, format!("{what}rm -r {lists}"));
    }
    for (source, reason) in failed_requests(text).chain(errors(text).filter_map(unusable)) {
        let reason = reason.trim();
        // Its providers' traces help nobody here.
        let reason = reason.split_once("  Stack backtrace:").map_or(reason, |(before, _)| before);
        failures.add(source, format!("{}: {reason}", Fault::of(reason).advice()));
    }
    failures.describe("apt-get update", text)
}

/// One line for the operator about `file:` sources that APT refuses and the worker's `apt-get update` has read, from its
/// output; `None` if there are none. APT's method `copy`, by which the worker reads them, takes the host in
/// `file://HOST/DIRECTORY` for a directory.
pub fn describe_misread(text: &str) -> Option<String> {
    let failures = misread(text);
    (!failures.0.is_empty()).then(|| failures.describe("apt-get update", text))
}

fn misread(text: &str) -> Failures {
    let mut failures = Failures::default();
    for line in text.lines() {
        let request = ["Get:", "Hit:", "Err:"].iter().find_map(|start| line.strip_prefix(start));
        // APT writes `file:///srv` as `file:/srv`.
        let what = request.and_then(|rest| rest.split_once(' ')).map(|(_, what)| what);
        // Without the size.
        let what = what.and_then(|what| what.split(" [").next());
        if let Some(source) = what.filter(|what| what.starts_with("file://")).and_then(source) {
            let advice = Fault::Missing.advice();
            failures.add(source, format!("{advice}: Invalid URI, local URIS must not start with //"));
        }
    }
    failures
}

/// One line for the operator about failed downloads of packages, from the output of `apt-get --download-only`.
pub fn describe_download(text: &str) -> String {
    let mut failures = Failures::default();
    for (source, reason) in failed_requests(text) {
        let fault = Fault::of(reason);
        // The source has just listed this file.
        let fault = if fault == Fault::Missing { Fault::Mismatch } else { fault };
        failures.add(source, format!("{}: {}", fault.advice(), reason.trim()));
    }
    failures.describe("the download of packages", text)
}

/// The names of lists that APT has stored but cannot read: of a source without a Release file, APT stores whatever it gets,
/// such as a login page, and may take it for the current list ever after.
pub fn unreadable_lists<'a>(text: &'a str, lists: &'a str) -> impl Iterator<Item = &'a str> {
    let words =
        errors(text).filter(|line| Fault::of(line) == Fault::Unreadable).flat_map(str::split_whitespace);
    let names = words.filter_map(move |word| word.strip_prefix(lists)?.strip_prefix('/'));
    names.filter(|name| !name.is_empty() && !name.contains('/') && !name.starts_with('.'))
}

/// The first failure of each source.
#[derive(Debug, Default)]
struct Failures(Vec<(String, String)>);

impl Failures {
    fn add(&mut self, source: String, what: String) {
        if !self.0.iter().any(|(known, _)| *known == source) {
            self.0.push((source, what));
        }
    }

    /// The failures, or else APT's errors.
    fn describe(self, tool: &str, text: &str) -> String {
        if !self.0.is_empty() {
            return names(self.0.into_iter().map(|(source, what)| format!("{source} {what}")));
        }
        let errors: Vec<&str> = errors(text).collect();
        if errors.is_empty() {
            return format!("{tool} failed: {}", last_line(text));
        }
        let known = errors.iter().map(|line| Fault::of(line)).find(|fault| *fault != Fault::Other);
        let errors = errors.join("; ");
        match known {
            Some(Fault::DiskFull) => {
                format!("{tool} failed because the disk is full; make room: {errors}")
            }
            Some(fault) => format!("{tool} failed, as a source {}: {errors}", fault.advice()),
            None => format!("{tool} failed: {errors}"),
        }
    }
}

/// The lines marked as errors.
fn errors(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("E: "))
}

/// Sources with a changed Release file: the source, and the change with advice that ends before the command. APT's message
/// is `Repository 'URL SUITE InRelease' changed its 'Label' value from 'a' to 'b'`.
fn changed(text: &str) -> Vec<(String, String)> {
    let mut sources: Vec<(String, Vec<&str>)> = Vec::new();
    for line in errors(text) {
        let parts = line.strip_prefix("Repository '").and_then(|rest| rest.split_once("' changed its "));
        let Some((source, what)) = parts.and_then(|(what, change)| Some((source(what)?, change))) else {
            continue;
        };
        let what = what.trim_end_matches('.');
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, changes)) => changes.push(what),
            None => sources.push((source, vec![what])),
        }
    }
    let described = sources.into_iter().map(|(source, changes)| {
        let is_release = changes.iter().any(|change| change.starts_with("'Codename'"));
        let advice = if is_release {
            "that may be another release; name the old one in the source to stay with it, or accept the change with: "
        } else {
            "packages may be pinned by that; check /etc/apt/preferences.d, and accept the change with: "
        };
        (source, format!("changed its {}; {advice}", changes.join(", its ")))
    });
    described.collect()
}

/// The failures `Err:1 URL SUITE FILE`, with the reason on the next line. A request may succeed after it has failed, at
/// another mirror or with another compression: `Get:1`.
fn failed_requests(text: &str) -> impl Iterator<Item = (String, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |at| {
        let (number, what) = lines[at].strip_prefix("Err:")?.split_once(' ')?;
        let reason = lines.get(at + 1).filter(|line| line.starts_with(' '))?;
        let succeeds = |line: &str| {
            let rest = line.strip_prefix("Get:").or_else(|| line.strip_prefix("Hit:"));
            rest.and_then(|rest| rest.split_once(' ')).is_some_and(|(other, _)| other == number)
        };
        let source = source(what)?;
        (!lines[at..].iter().any(|line| succeeds(line))).then(|| (source, reason.trim()))
    })
}

/// `The repository 'URL SUITE Release' is not signed.` or `Release file for URL is expired (...).`
fn unusable(line: &str) -> Option<(String, &str)> {
    if let Some(rest) = line.strip_prefix("Release file for ") {
        let (file, reason) = rest.split_once(' ')?;
        return Some((source_of_file(file), reason));
    }
    let (what, reason) = line.strip_prefix("The repository '")?.split_once("' ")?;
    Some((source(what)?, reason))
}

/// The address and suite of a source, without the file.
fn source(what: &str) -> Option<String> {
    // The name of a disc has spaces: `cdrom://[Debian 12 DVD 1] bookworm Release`.
    let name_end = what.find(']').unwrap_or_default();
    let url_end = what[name_end..].find(' ').map_or(what.len(), |at| name_end + at);
    let (url, rest) = what.split_at(url_end);
    let suite = rest.split_whitespace().next().filter(|suite| *suite != "./");
    // The component in `bookworm/main` is removed, but a suite may contain a slash itself: `stable/updates`.
    let named =
        suite.map_or_else(|| url.to_owned(), |suite| format!("{url} {}", suite.trim_end_matches("/main")));
    (!named.is_empty()).then_some(named)
}

/// The source that has a Release file at this URL.
fn source_of_file(url: &str) -> String {
    let directory = url.rsplit_once('/').map_or(url, |(directory, _)| directory);
    match directory.split_once("/dists/") {
        Some((url, suite)) => format!("{url} {suite}"),
        None => directory.trim_end_matches("/.").to_owned(),
    }
}

fn last_line(text: &str) -> String {
    one_line(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = "/var/cache/os-upgrade-worker/lists";

    /// Checks the reasons for failures of one source against what APT 2.6 and 3.0 print, and what follows the source's name.
    fn check_advice(failures: &[(&str, &str)]) {
        for (reason, advice) in failures {
            let text = format!(
                "Ign:1 http://a stable InRelease\nErr:1 http://a stable InRelease\n  {reason}\n  Hashes of expected file:\n\
                 Reading package lists...\nE: The repository 'http://a stable InRelease' is not signed.\n"
            );
            assert_eq!(describe_update(&text, LISTS), format!("http://a stable {advice}{reason}"));
        }
    }

    #[test]
    fn sources_that_cannot_be_reached_have_advice() {
        let unreachable = "cannot be reached; check the network, the proxy and the source's address: ";
        let intercepted = "is not what answers; check the network for a login page (captive portal), the proxy and its \
                           credentials, and the source's address: ";
        let no_mirrors =
            "has no list of mirrors; check the file or address that the source names, and the network: ";
        let tls = "has no TLS that this host trusts; check the host's clock, its ca-certificates, the network for a login \
                   page, the proxy and the source's address: ";
        check_advice(&[
            // A login page in place of the InRelease file, and of the signature of a source without one.
            (
                "Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)",
                intercepted,
            ),
            ("Signed file isn't valid, got 'NODATA' (does the network require authentication?)", intercepted),
            ("511  Network Authentication Required [IP: 127.0.0.1 80]", intercepted),
            ("407  Proxy Authentication Required [IP: 127.0.0.1 80]", intercepted),
            (
                "Redirection from https to 'http://login.example/' is forbidden [IP: 127.0.0.1 443]",
                intercepted,
            ),
            ("Invalid response from proxy: HTTP/1.1 200 OK  [IP: 127.0.0.1 3128]", intercepted),
            (
                "403  Forbidden [IP: 127.0.0.1 80]",
                "refuses access; check the source's credentials and the proxy: ",
            ),
            (
                "401  Unauthorized [IP: 127.0.0.1 80]",
                "refuses access; check the source's credentials and the proxy: ",
            ),
            (
                "503  Service Unavailable [IP: 127.0.0.1 80]",
                "has a problem, or the proxy has one; try again later: ",
            ),
            ("502  Bad Gateway [IP: 127.0.0.1 80]", "has a problem, or the proxy has one; try again later: "),
            (
                "404  Not Found [IP: 127.0.0.1 80]",
                "does not have what the source names; correct the source's address or suite: ",
            ),
            (
                "File not found - /srv/x/./Release (2: No such file or directory)",
                "does not have what the source names; correct the source's address or suite: ",
            ),
            (
                "Failed to stat - copy-stat (2: No such file or directory)",
                "does not have what the source names; correct the source's address or suite: ",
            ),
            (
                "File not found - /srv/unsigned/./Release (2: No such file or directory)",
                "does not have what the source names; correct the source's address or suite: ",
            ),
            ("Could not resolve 'keyring.example'", unreachable),
            ("Connection failed [IP: 127.0.0.1 80]", unreachable),
            ("Temporary failure resolving 'mirror.example'", unreachable),
            (
                "Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)",
                unreachable,
            ),
            ("Unable to connect to 127.0.0.1:9:", unreachable),
            ("Connection timed out [IP: 127.0.0.1 80]", unreachable),
            ("Error reading from server. Remote end closed connection [IP: 127.0.0.1 80]", unreachable),
            (
                "Reading from proxy failed - read (104: Connection reset by peer) [IP: 127.0.0.1 3128]",
                unreachable,
            ),
            ("Writing to proxy failed - write (32: Broken pipe) [IP: 127.0.0.1 3128]", unreachable),
            ("Reading from proxy failed - select (115: Operation now in progress)", unreachable),
            (
                "Timed out while waiting to read 'first part of response' from proxy socks5h://127.0.0.1:1080",
                unreachable,
            ),
            ("Timed out while waiting to write 'greet back' to proxy socks5h://127.0.0.1:1080", unreachable),
            ("Reading the auth report from SOCKS proxy socks5h://127.0.0.1:1080 failed", unreachable),
            ("Writing the user&pass auth to SOCKS proxy socks5h://127.0.0.1:1080 failed", unreachable),
            (
                "SOCKS proxy socks5h://127.0.0.1:1080 could not connect to a (0.0.0.0:0) due to: Host unreachable (4)",
                unreachable,
            ),
            ("SOCKS proxy socks5h://127.0.0.1:1080 greets back with wrong version: 72", intercepted),
            (
                "SOCKS proxy socks5h://127.0.0.1:1080 reported authorization failure: username or password incorrect? (1)",
                intercepted,
            ),
            ("Mirror list /etc/apt/mirrors is empty for mirror+file:/etc/apt/mirrors", no_mirrors),
            ("Downloading mirror file failed", no_mirrors),
            ("Downloading mirror file /x/mirrors failed for http://a/mirrors", no_mirrors),
            ("Could not handshake: An unexpected TLS packet was received. [IP: 127.0.0.1 443]", tls),
            (
                "Certificate verification failed: The certificate is NOT trusted. The certificate chain uses not yet valid \
                 certificate.  Could not handshake: Error in the certificate verification. [IP: 127.0.0.1 443]",
                tls,
            ),
            ("SSL connection failed: error:0A000086:SSL routines::certificate verify failed / Success", tls),
        ]);
    }

    #[test]
    fn sources_that_cannot_be_used_have_advice() {
        let unsigned = "is not signed by its key; do not trust it, or renew the key that the source names: ";
        let weak = "uses algorithms that are too weak; its provider must use stronger ones, such as SHA256: ";
        let mismatch = "has inconsistent files; try again when the mirror is fully updated, or check the network for a \
                        login page and the proxy for old files: ";
        check_advice(&[
            (
                "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY AC68",
                unsigned,
            ),
            ("The following signatures were invalid: BADSIG BEF12F9F806346DF A <a@example.com>", unsigned),
            ("The following signatures were invalid: EXPKEYSIG DA958475BFFE357A E <e@example.com>", unsigned),
            (
                "The following signatures were invalid: EXPKEYSIG DA958475BFFE357A Example Certificates <a@b.example>",
                unsigned,
            ),
            (
                "The following signatures were invalid: BADSIG DA958475BFFE357A TLS Redirection, Read error <a@b.example>",
                unsigned,
            ),
            (
                "Sub-process /usr/bin/sqv returned an error code (1), error message is: Missing key 3BC1, which is needed to \
                 verify signature.",
                unsigned,
            ),
            (
                "Sub-process /usr/bin/sqv returned an error code (1), error message is: Error: Failed to parse keyring \
                 \"/etc/apt/a.gpg\"  Caused by:     0: Reading \"/etc/apt/a.gpg\": No such file or directory (os error 2)",
                unsigned,
            ),
            (
                "Sub-process /usr/bin/sqv returned an error code (1), error message is: Verifying signature: Not live until \
                 2026-08-09T20:52:39Z",
                "has lists from the future; check the host's clock: ",
            ),
            (
                "Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on 3BC1 is not bound:  \
                 No binding signature at time 2026-11-27T04:00:00Z   because: Policy rejected non-revocation signature \
                 (PositiveCertification) requiring second pre-image resistance   because: SHA1 is not considered secure \
                 since 2026-02-01T00:00:00Z",
                weak,
            ),
            (
                "Sub-process /usr/bin/sqv returned an error code (1), error message is: Signature Packet v3 is not \
                 considered secure",
                weak,
            ),
            ("The following signatures were invalid: 3BC1 (untrusted public key algorithm: rsa1024)", weak),
            (
                "gpgv, gpgv2 or gpgv1 required for verification, but neither seems installed",
                "cannot be verified on this host; install gpgv: ",
            ),
            ("Internal error: Cannot find gpgv", "cannot be verified on this host; install gpgv: "),
            ("Hash Sum mismatch", mismatch),
            ("File has unexpected size (916 != 911). Mirror sync in progress? [IP: 127.0.0.1 80]", mismatch),
            (
                "Please use apt-cdrom to make this CD-ROM recognized by APT. apt-get update cannot be used to add new CD-ROMs",
                "is an installation disc, which apt-get update cannot read; remove the source: ",
            ),
            (
                "Error writing to file - write (28: No space left on device)",
                "could not be stored because the disk is full; make room: ",
            ),
            ("something new", "failed: "),
        ]);
    }

    #[test]
    fn failed_sources_are_named() {
        for (text, expected) in [
            (
                "Ign:3 http://127.0.0.1:9 ./ InRelease\n\
                 Err:3 http://127.0.0.1:9 ./ InRelease\n  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                 Err:4 http://[::1]/debian bookworm/main amd64 Packages\n  Could not resolve 'mirror.example'\n\
                 Reading package lists...\n\
                 E: Failed to fetch http://127.0.0.1:9/./InRelease  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                 E: Failed to fetch http://mirror.example/debian/dists/bookworm/InRelease  Could not resolve 'mirror.example'\n\
                 E: Some index files failed to download. They have been ignored, or old ones used instead.\n",
                "http://127.0.0.1:9 cannot be reached; check the network, the proxy and the source's address: Could not \
                 connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused), http://[::1]/debian \
                 bookworm cannot be reached; check the network, the proxy and the source's address: Could not resolve \
                 'mirror.example'",
            ),
            (
                "Err:2 cdrom://[Debian GNU/Linux 12.0.0 _Bookworm_ - DVD 1] stable Release\n  Please use apt-cdrom\n\
                 E: The repository 'cdrom://[Debian GNU/Linux 12.0.0 _Bookworm_ - DVD 1] stable Release' does not have a Release file.\n",
                "cdrom://[Debian GNU/Linux 12.0.0 _Bookworm_ - DVD 1] stable is an installation disc, which apt-get update \
                 cannot read; remove the source: Please use apt-cdrom",
            ),
            (
                "E: The repository 'http://a/debian ./ Release' is no longer signed.\n",
                "http://a/debian is not signed by its key; do not trust it, or renew the key that the source names: \
                 is no longer signed.",
            ),
            (
                "E: The repository 'http://a/debian stable/updates Release' does not have a Release file.\n",
                "http://a/debian stable/updates does not have what the source names; correct the source's address or \
                 suite: does not have a Release file.",
            ),
            (
                "W: No Hash entry in Release file x which is considered strong enough for security purposes\n\
                 E: The repository 'http://a stable InRelease' provides only weak security information.\n",
                "http://a stable uses algorithms that are too weak; its provider must use stronger ones, such as SHA256: \
                 provides only weak security information.",
            ),
            (
                "E: Release file for http://a/dists/stable/updates/InRelease is expired (invalid since 3d). Updates for this \
                 repository will not be applied.\n",
                "http://a stable/updates has lists that have expired; check whether the mirror is still updated, and the \
                 host's clock: is expired (invalid since 3d). Updates for this repository will not be applied.",
            ),
            (
                "E: Release file for http://a/./InRelease is not valid yet (invalid for another 3d). Updates for this \
                 repository will not be applied.\n",
                "http://a has lists from the future; check the host's clock: is not valid yet (invalid for another 3d). \
                 Updates for this repository will not be applied.",
            ),
            (
                "Err:3 file:/srv/x ./ Packages\n  Failed to stat - stat (2: No such file or directory)\n\
                 Get:3 file:/srv/x ./ Packages [55 B]\n\
                 E: Unable to parse package file /var/cache/os-upgrade-worker/lists/_srv_x_._Packages (1)\n\
                 W: You may want to run apt-get update to correct these problems\nE: The package cache file is corrupted\n",
                "apt-get update failed, as a source has lists that cannot be read; check the network for a login page, the \
                 proxy, and the source: Unable to parse package file \
                 /var/cache/os-upgrade-worker/lists/_srv_x_._Packages (1); The package cache file is corrupted",
            ),
            (
                "Err:2 http://a ./ Packages\nReading package lists...\n\
                 E: The method driver /usr/lib/apt/methods/foo could not be found.\n",
                "apt-get update failed: The method driver /usr/lib/apt/methods/foo could not be found.",
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
            assert_eq!(describe_update(text, LISTS), expected);
        }
    }

    #[test]
    fn changed_release_is_accepted_by_removing_lists() {
        for (changes, expected) in [
            (
                &["changed its 'Label' value from 'Test' to 'Other'"] as &[&str],
                "http://a stable changed its 'Label' value from 'Test' to 'Other'; packages may be pinned by that; check \
                 /etc/apt/preferences.d, and accept the change with: rm -r /var/cache/os-upgrade-worker/lists",
            ),
            (
                &["changed its default priority for apt_preferences(5) from 500 to 1."],
                "http://a stable changed its default priority for apt_preferences(5) from 500 to 1; packages may be pinned \
                 by that; check /etc/apt/preferences.d, and accept the change with: rm -r \
                 /var/cache/os-upgrade-worker/lists",
            ),
            (
                &[
                    "changed its 'Origin' value from 'a' to 'b'",
                    "changed its 'Codename' value from 'bookworm' to 'trixie'",
                ],
                "http://a stable changed its 'Origin' value from 'a' to 'b', its 'Codename' value from 'bookworm' to \
                 'trixie'; that may be another release; name the old one in the source to stay with it, or accept the \
                 change with: rm -r /var/cache/os-upgrade-worker/lists",
            ),
        ] {
            let line = |change: &&str| format!("E: Repository 'http://a stable InRelease' {change}\n");
            let text: String = changes.iter().map(line).collect();
            assert_eq!(describe_update(&text, LISTS), expected);
        }
    }

    #[test]
    fn local_source_with_host_is_refused() {
        let refused = "file://srv/archive does not have what the source names; correct the source's address or suite: \
                       Invalid URI, local URIS must not start with //";
        for (text, expected) in [
            (
                "Ign:1 file://srv/archive ./ InRelease\nGet:3 file://srv/archive ./ Packages [55 B]\n",
                Some(refused),
            ),
            ("Hit:1 file://srv/archive ./ InRelease\nReading package lists...\n", Some(refused)),
            ("Get:1 file:/srv/archive ./ InRelease\nHit:2 http://a//b stable InRelease\n", None),
        ] {
            assert_eq!(describe_misread(text).as_deref(), expected, "{text}");
        }
        let text =
            "Err:3 file://srv/archive ./ Packages\n  Failed to stat - stat (2: No such file or directory)\n";
        assert_eq!(describe_update(text, LISTS), refused);
    }

    #[test]
    fn failed_downloads_are_named() {
        let text = "Err:1 http://a stable/main amd64 foo all 1.1\n  404  Not Found [IP: 127.0.0.1 80]\n\
                    E: Failed to fetch http://a/pool/foo_1.1_all.deb  404  Not Found [IP: 127.0.0.1 80]\n\
                    E: Some files failed to download\n";
        assert_eq!(
            describe_download(text),
            "http://a stable has inconsistent files; try again when the mirror is fully updated, or check the network for \
             a login page and the proxy for old files: 404  Not Found [IP: 127.0.0.1 80]"
        );
        let text = "E: You don't have enough free space in /var/cache/os-upgrade-worker/archives/.\n";
        assert_eq!(
            describe_download(text),
            "the download of packages failed because the disk is full; make room: You don't have enough free space in \
             /var/cache/os-upgrade-worker/archives/."
        );
    }

    #[test]
    fn only_own_lists_are_unreadable_lists() {
        for (path, expected) in [
            ("/var/cache/os-upgrade-worker/lists/127.0.0.1:80_dists_stable_main_Packages", 1),
            ("/var/cache/os-upgrade-worker/lists/_srv_unsigned_._Packages", 1),
            ("/var/cache/os-upgrade-worker/lists/../x", 0),
            ("/var/cache/os-upgrade-worker/lists/..", 0),
            ("/var/cache/os-upgrade-worker/lists/", 0),
            ("/var/lib/dpkg/status", 0),
        ] {
            let text = format!(
                "E: Unable to parse package file {path} (1)\nE: The package cache file is corrupted\n"
            );
            assert_eq!(unreadable_lists(&text, LISTS).count(), expected, "{path}");
            let text = format!("E: Problem with MergeList {path}\n");
            assert_eq!(unreadable_lists(&text, LISTS).count(), expected, "{path}");
        }
    }
}
