//! Why an installation by APT or dpkg failed: the first package that failed, and what it printed.

use super::{database, progress};
use crate::text::{names, one_line};

/// Lines of APT that do not name the cause.
const NOT_THE_CAUSE: [&str; 4] = [
    "E: Sub-process ",
    "E: Can not write log",
    "E: Unable to acquire the dpkg frontend lock",
    "E: Some index files failed",
];
/// Starts of dpkg's own lines, which are mixed with the output of packages' scripts.
const DPKG_LINES: [&str; 10] = [
    "Setting up ",
    "Unpacking ",
    "Preparing to ",
    "Selecting ",
    "Removing ",
    "Processing triggers ",
    "(Reading database",
    "Installing new version",
    "dpkg: ",
    "Errors were encountered",
];

/// One line for the operator about the failure of `tool`, from its output and from APT's status file, which is empty if
/// there is none.
pub fn describe(tool: &str, output: &str, status: &str) -> String {
    let mut text = match first_failure(output, status) {
        Some((package, reason, printed)) => {
            let printed = printed.map(|printed| format!("; it printed: {printed}")).unwrap_or_default();
            let others: Vec<String> = progress::failed(status)
                .into_iter()
                .map(|(name, _)| name)
                .filter(|name| *name != package)
                .collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!("; failed with it: {}", names(others))
            };
            format!("package {package}: {reason}{printed}{others}")
        }
        None => database::damage(output).unwrap_or_else(|| errors(output)),
    };
    if output.contains("No space left on device") || status.contains("No space left on device") {
        text = format!("the disk is full; make room and try again: {text}");
    }
    format!("{tool} failed: {text}")
}

/// The first package that failed, the reason, and the last line that its script printed.
fn first_failure(output: &str, status: &str) -> Option<(String, String, Option<String>)> {
    let mut from_output = processing_errors(output);
    let Some((package, reason)) = progress::failed(status).into_iter().next() else {
        return from_output.next();
    };
    let printed = from_output.find(|(name, _, _)| *name == package).and_then(|(_, _, printed)| printed);
    Some((package, reason, printed))
}

/// The failures `dpkg: error processing package NAME (--configure):` and `... archive FILE (--unpack):`, with the reason
/// on the next line.
fn processing_errors(output: &str) -> impl Iterator<Item = (String, String, Option<String>)> {
    let lines: Vec<&str> = output.lines().collect();
    (0..lines.len()).filter_map(move |at| {
        let rest = lines[at].strip_prefix("dpkg: error processing ")?;
        let rest = rest.strip_prefix("package ").or_else(|| rest.strip_prefix("archive "))?;
        let name = progress::package_name(rest.split_whitespace().next()?).to_owned();
        let reason = lines.get(at + 1).map(|line| line.trim().to_owned()).unwrap_or_default();
        let before = at.checked_sub(1).map(|before| lines[before].trim());
        let printed =
            before.filter(|line| !line.is_empty() && !DPKG_LINES.iter().any(|start| line.starts_with(start)));
        // dpkg indents its explanations about dependencies.
        let printed = printed.filter(|_| !lines[at - 1].starts_with(' ')).map(str::to_owned);
        Some((name, reason, printed))
    })
}

/// The lines marked as errors, or else the last line.
fn errors(output: &str) -> String {
    let by_apt = output
        .lines()
        .filter(|line| !NOT_THE_CAUSE.iter().any(|start| line.starts_with(start)))
        .filter_map(|line| line.strip_prefix("E: ").map(str::to_owned));
    let marked: Vec<String> = database::errors(output).into_iter().chain(by_apt).collect();
    if !marked.is_empty() {
        let unmet = unmet(output).map(|unmet| format!(" ({unmet})")).unwrap_or_default();
        return format!("{}{unmet}", marked.join("; "));
    }
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    one_line(last.unwrap_or("it printed nothing"))
}

/// The dependencies that APT could not satisfy.
fn unmet(output: &str) -> Option<String> {
    let (_, after) = output.split_once("The following packages have unmet dependencies:\n")?;
    let lines: Vec<&str> = after.lines().take_while(|line| line.starts_with(' ')).collect();
    (!lines.is_empty()).then(|| names(lines.iter().map(|line| line.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTINST: &str = "\
Setting up foo (2.0) ...
from postinst
no such thing: gizmo
dpkg: error processing package foo (--configure):
 installed foo package post-installation script subprocess returned error exit status 3
Setting up newdep (1.0) ...
dpkg: dependency problems prevent configuration of bar:
 bar depends on foo; however:
  Package foo is not configured yet.

dpkg: error processing package bar (--configure):
 dependency problems - leaving unconfigured
Errors were encountered while processing:
 foo
 bar
E: Sub-process /usr/bin/dpkg returned an error code (1)
";
    const POSTINST_STATUS: &str = "\
pmstatus:foo:60.0000:Configuring foo (amd64)
pmerror:foo:60.0000:installed foo package post-installation script subprocess returned error exit status 3
pmerror:bar:73.3333:dependency problems - leaving unconfigured
";
    const FULL: &str = "\
Unpacking foo (3.0) over (2.1) ...
dpkg: error processing archive /var/cache/os-upgrade-worker/archives/foo_3.0_all.deb (--unpack):
 cannot copy extracted data for './usr/share/foo/big' to '/usr/share/foo/big.dpkg-new': failed to write (No space left on device)
E: Sub-process /usr/bin/dpkg returned an error code (1)
";
    const UNMET: &str = "\
Reading package lists...
The following packages have unmet dependencies:
 bar : Depends: newdep but it is not installable
E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).
";

    #[test]
    fn cause_is_described_in_one_line() {
        for (output, status, expected) in [
            (
                POSTINST,
                POSTINST_STATUS,
                "package foo: installed foo package post-installation script subprocess returned error exit status 3; it \
                 printed: no such thing: gizmo; failed with it: bar",
            ),
            (
                POSTINST,
                "",
                "package foo: installed foo package post-installation script subprocess returned error exit status 3; it \
                 printed: no such thing: gizmo",
            ),
            (
                FULL,
                "",
                "the disk is full; make room and try again: package foo: cannot copy extracted data for \
                 './usr/share/foo/big' to '/usr/share/foo/big.dpkg-new': failed to write (No space left on device)",
            ),
            (
                UNMET,
                "",
                "Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution). (bar : \
                 Depends: newdep but it is not installable)",
            ),
            (
                "E: Can not write log (Is /dev/pts mounted?) - posix_openpt (2: No such file or directory)\nE: Unable to \
                 fetch some archives, maybe run apt-get update or try with --fix-missing?\n",
                "",
                "Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?",
            ),
            ("dpkg: error: cannot access archive '/x'\n", "", "cannot access archive '/x'"),
            (
                "dpkg: unrecoverable fatal error, aborting:\n files list file for package 'bar' is missing final newline\n\
                 (Reading database ... E: Sub-process /usr/bin/dpkg returned an error code (2)\n",
                "pmstatus:dpkg-exec:0.0000:Running dpkg\n",
                "dpkg's database is damaged: files list file for package 'bar' is missing final newline; remove \
                 /var/lib/dpkg/info/bar.list, then reinstall bar",
            ),
            (
                "dpkg: unrecoverable fatal error, aborting:\n unknown user 'x' in statoverride\n",
                "",
                "unknown user 'x' in statoverride",
            ),
            ("dpkg: error processing package foo (--configure):", "", "package foo: "),
            ("Segmentation fault\n\n", "", "Segmentation fault"),
            ("", "", "it printed nothing"),
        ] {
            assert_eq!(describe("x", output, status), format!("x failed: {expected}"));
        }
    }
}
