//! APT's status file (`APT::Status-Fd`), which it writes while it works.

/// A line of the status file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Progress {
        /// Progress of dpkg or of the download, 0 to 100.
        percent: u8,
        /// What is being done.
        text: String,
    },
    /// dpkg could not install or remove a package.
    Failed {
        package: String,
        /// The error message of dpkg.
        reason: String,
    },
}

/// Parses one line, `kind:package:percent:text`; `None` for any other line. Lines about conflicting configuration files
/// are ignored too: the upgrade keeps the installed ones.
pub fn parse(line: &str) -> Option<Status> {
    let mut fields = line.splitn(4, ':');
    let (kind, package, percent, text) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    // The name of a package of a foreign architecture contains a colon, so its percentage is one field later.
    let (package, percent, text) = if let Ok(percent) = percent.parse::<f64>() {
        (package.to_owned(), percent, text)
    } else {
        let (later, text) = text.split_once(':')?;
        (format!("{package}:{percent}"), later.parse::<f64>().ok()?, text)
    };
    let text = text.trim().to_owned();
    match kind {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 0 and 100, and a cast of anything else saturates"
        )]
        "pmstatus" | "dlstatus" => Some(Status::Progress { percent: percent.clamp(0.0, 100.0) as u8, text }),
        "pmerror" => Some(Status::Failed { package, reason: text }),
        _ => None,
    }
}

/// The packages that failed and the reasons, in the order of failure.
pub fn failed(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(parse);
    lines
        .filter_map(|status| match status {
            Status::Failed { package, reason } => Some((package_name(&package).to_owned(), reason)),
            Status::Progress { .. } => None,
        })
        .collect()
}

/// The package in `/DIRECTORY/NAME_VERSION_ARCHITECTURE.deb`; any other name is returned unchanged.
pub(super) fn package_name(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".deb").and_then(|file| file.split('_').next()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_are_parsed() {
        let progress = |percent, text: &str| Some(Status::Progress { percent, text: text.to_owned() });
        let failed = |package: &str, reason: &str| {
            Some(Status::Failed { package: package.to_owned(), reason: reason.to_owned() })
        };
        for (line, expected) in [
            ("dlstatus:2:34.6816:Retrieving file 2 of 3", progress(34, "Retrieving file 2 of 3")),
            (
                "pmstatus:foo:53.3333:Preparing to configure foo (amd64)",
                progress(53, "Preparing to configure foo (amd64)"),
            ),
            ("pmstatus:libc6:i386:10.0:Unpacking libc6:i386", progress(10, "Unpacking libc6:i386")),
            ("pmstatus:foo:1e9:x", progress(100, "x")),
            ("pmstatus:foo:NaN:x", progress(0, "x")),
            (
                "pmerror:foo:60.0000:installed foo package post-installation script subprocess returned error exit status 3",
                failed(
                    "foo",
                    "installed foo package post-installation script subprocess returned error exit status 3",
                ),
            ),
            ("pmconffile:/etc/x:10:'/etc/x' '/etc/x.dpkg-new' 1 1", None),
            ("pmstatus:foo", None),
            ("pmstatus:foo:x:y", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
        let unpacking =
            "pmerror:/var/cache/apt/archives/foo_2.0_all.deb:20:failed to write\npmerror:bar:30:x\n";
        let names: Vec<String> = super::failed(unpacking).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["foo", "bar"]);
    }
}
