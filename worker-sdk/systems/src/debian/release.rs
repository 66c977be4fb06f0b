//! The release of Debian, or of a derivative, that a system runs.

/// The version in `/etc/os-release` and `/etc/debian_version`, such as `13.2`, with the point release if available.
pub fn version(os_release: &str, debian_version: &str) -> Option<String> {
    let value = |key: &str| {
        let lines = os_release.lines().filter_map(|line| line.split_once('='));
        let value = lines.filter(|(name, _)| name.trim() == key).map(|(_, value)| value).next_back()?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    let point =
        Some(debian_version.trim()).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
    let point = point.filter(|_| value("ID").as_deref() == Some("debian")).map(str::to_owned);
    value("DEBIAN_VERSION_FULL").or(point).or_else(|| value("VERSION_ID")).or_else(|| value("PRETTY_NAME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_release_is_included_if_available() {
        for (os_release, debian_version, expected) in [
            ("ID=debian\nVERSION_ID=\"12\"\n", "12.11\n", Some("12.11")),
            ("ID=debian\nVERSION_ID=13\nDEBIAN_VERSION_FULL=13.1\n", "13.1", Some("13.1")),
            (
                "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux forky/sid\"\n",
                "forky/sid\n",
                Some("Debian GNU/Linux forky/sid"),
            ),
            ("ID=ubuntu\nVERSION_ID=\"24.04\"\n", "12.0", Some("24.04")),
            ("", "12.0", None),
        ] {
            assert_eq!(version(os_release, debian_version).as_deref(), expected, "{os_release}");
        }
    }
}
