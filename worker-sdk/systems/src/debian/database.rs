//! dpkg's database in `/var/lib/dpkg`: what dpkg says when it cannot read it.

/// The reason if dpkg knows no package at all: its database is gone, and APT would find nothing to upgrade.
pub const EMPTY: &str =
    "dpkg knows no packages; restore /var/lib/dpkg/status from /var/lib/dpkg/status-old or /var/backups";

/// Parts of dpkg's errors that are about its database.
const DAMAGE: [&str; 7] = [
    "files list file",
    "parsing file '/var/lib/dpkg/",
    "'/var/lib/dpkg/diversions'",
    "'/var/lib/dpkg/triggers/",
    "'/var/lib/dpkg/arch'",
    "info database",
    "statoverride file",
];

/// Damages of a package's list of files that are repaired by installing the package again without its list. A list that
/// cannot be read at all may be intact.
const BROKEN_LIST: [&str; 2] = ["is missing final newline", "contains empty filename"];

/// One line about a damaged database with the package that dpkg names, and the repair, from the output of a tool; `None`
/// if the output does not speak of one.
pub fn damage(output: &str) -> Option<String> {
    let error = errors(output).into_iter().find(|error| DAMAGE.iter().any(|part| error.contains(part)))?;
    let package =
        error.split_once("package '").and_then(|(_, rest)| rest.split_once('\'')).map(|(name, _)| name);
    let repair = match package {
        Some(package) if BROKEN_LIST.iter().any(|part| error.contains(part)) => {
            format!("; remove /var/lib/dpkg/info/{package}.list, then reinstall {package}")
        }
        _ if error.contains("/var/lib/dpkg/status") => {
            "; restore that file from /var/lib/dpkg/status-old or /var/backups".to_owned()
        }
        Some(_) | None => String::new(),
    };
    Some(format!("dpkg's database is damaged: {error}{repair}"))
}

/// The packages whose lists of files are gone, from the output of a tool: dpkg takes such a package for one without files, and
/// only warns.
pub fn missing_lists(output: &str) -> impl Iterator<Item = &str> {
    let warnings =
        output.lines().filter_map(|line| line.split_once("warning: files list file for package '"));
    warnings.filter_map(|(_, rest)| rest.split_once("' missing")).map(|(package, _)| package)
}

/// The errors of dpkg and its tools, each in one line. They go on in indented lines:
///
/// ```text
/// dpkg: unrecoverable fatal error, aborting:
///  files list file for package 'foo' is missing final newline
/// ```
pub(super) fn errors(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut in_error = false;
    for line in output.lines() {
        if let Some(error) = first_line(line) {
            found.push(error.to_owned());
            in_error = true;
        } else if in_error && line.starts_with(' ') {
            if let Some(last) = found.last_mut() {
                let separator = if last.is_empty() { "" } else { " " };
                last.push_str(separator);
                last.push_str(line.trim());
            }
        } else {
            in_error = false;
        }
    }
    found.retain(|error| !error.is_empty());
    found
}

fn first_line(line: &str) -> Option<&str> {
    // dpkg's progress does not end its line.
    let line = line.strip_prefix("(Reading database ... ").unwrap_or(line);
    let error = line.strip_prefix("dpkg: ").or_else(|| line.strip_prefix("dpkg-query: "))?;
    let fatal = error.strip_prefix("unrecoverable fatal error, aborting:");
    fatal.or_else(|| error.strip_prefix("error: ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What dpkg 1.21 and 1.22 print.
    #[test]
    fn damage_names_package_and_repair() {
        for (output, expected) in [
            (
                "dpkg-query: unrecoverable fatal error, aborting:\n files list file for package 'bar' is missing final newline\n",
                Some(
                    "files list file for package 'bar' is missing final newline; remove /var/lib/dpkg/info/bar.list, then \
                     reinstall bar",
                ),
            ),
            (
                "(Reading database ... dpkg: unrecoverable fatal error, aborting:\n files list file for package \
                 'libc6:amd64' contains empty filename\nE: Sub-process /usr/bin/dpkg returned an error code (2)\n",
                Some(
                    "files list file for package 'libc6:amd64' contains empty filename; remove \
                     /var/lib/dpkg/info/libc6:amd64.list, then reinstall libc6:amd64",
                ),
            ),
            (
                "dpkg-query: unrecoverable fatal error, aborting:\n loading files list file for package 'bar': cannot open \
                 /var/lib/dpkg/info/bar.list (Input/output error)\n",
                Some(
                    "loading files list file for package 'bar': cannot open /var/lib/dpkg/info/bar.list (Input/output error)",
                ),
            ),
            (
                "dpkg-query: error: parsing file '/var/lib/dpkg/status' near line 78 package 'bar':\n 'Version' field value \
                 '': version string is empty\n",
                Some(
                    "parsing file '/var/lib/dpkg/status' near line 78 package 'bar': 'Version' field value '': version \
                     string is empty; restore that file from /var/lib/dpkg/status-old or /var/backups",
                ),
            ),
            (
                "dpkg: error: parsing file '/var/lib/dpkg/updates/0001' near line 0:\n end of file after field name 'x'\n",
                Some(
                    "parsing file '/var/lib/dpkg/updates/0001' near line 0: end of file after field name 'x'",
                ),
            ),
            (
                "dpkg: unrecoverable fatal error, aborting:\n syntax error in statoverride file\n",
                Some("syntax error in statoverride file"),
            ),
            (
                "dpkg-query: error: corrupt info database format file '/var/lib/dpkg/info/format'\n",
                Some("corrupt info database format file '/var/lib/dpkg/info/format'"),
            ),
            ("dpkg-query: no path found matching pattern /x\n", None),
            ("dpkg: error: dpkg frontend lock was locked by another process with pid 22106\n", None),
            ("dpkg: unrecoverable fatal error, aborting:\n", None),
        ] {
            let expected = expected.map(|text| format!("dpkg's database is damaged: {text}"));
            assert_eq!(damage(output), expected, "{output}");
        }
    }

    #[test]
    fn packages_without_lists_are_named() {
        let output = "\
(Reading database ... dpkg: warning: files list file for package 'tar' missing; assuming package has no files currently installed
dpkg-query: warning: files list file for package 'libc6:amd64' missing; assuming package has no files currently installed
dpkg-query: warning: parsing file '/var/lib/dpkg/status' near line 1 package 'foo':
dpkg-query: no path found matching pattern /x
";
        assert_eq!(missing_lists(output).collect::<Vec<_>>(), ["tar", "libc6:amd64"]);
    }
}
