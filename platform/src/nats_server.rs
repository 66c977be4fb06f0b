//! Finds a nats-server that is new enough, and configures one in its own directory, for the orchestrator, the workers' test
//! kit and the tests. They start the process themselves.
//!
//! If `OS_UPGRADE_NATS_SERVER` is set, only that binary is tried. Else it is the first usable one in an absolute directory of
//! `PATH`; nothing is looked for beside the program or in the current directory, where others may have put one.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

/// The variable that names the binary to use.
pub const ENV: &str = "OS_UPGRADE_NATS_SERVER";
/// The oldest version that supports the header for fences, `Nats-Expected-Last-Subject-Sequence-Subject`.
pub const OLDEST: Version = Version { major: 2, minor: 11 };
/// How long `nats-server --version` may take.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// The part of a nats-server's version that determines its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The 2 of `2.11`.
    pub major: u32,
    /// The 11 of `2.11`.
    pub minor: u32,
}

impl Version {
    /// Parses `2.15.1`, `v2.15.1`, or `nats-server: v2.15.1`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.trim().rsplit(' ').next()?;
        let mut parts = number.trim_start_matches('v').split('.');
        Some(Self { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A nats-server on this machine that is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsServer {
    /// The binary.
    pub path: PathBuf,
    /// The version that it reports.
    pub version: Version,
}

/// Why a candidate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It does not exist.
    #[error("not found")]
    Missing,
    /// It is older than [`OLDEST`].
    #[error("version {0} is too old")]
    TooOld(Version),
    /// It could not be run, or did not print its version.
    #[error("{0}")]
    Unusable(String),
}

/// There is no usable nats-server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// The candidates in the order they were tried, with what was wrong; of `PATH` only directories with a nats-server.
    pub candidates: Vec<(PathBuf, Unfit)>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no nats-server {OLDEST} or newer: ")?;
        for (path, unfit) in &self.candidates {
            write!(f, "{}: {unfit}; ", path.display())?;
        }
        write!(f, "install one on PATH, or set {ENV} to its path")
    }
}

impl std::error::Error for NotFound {}

/// Finds a nats-server in the places that the module's documentation lists.
///
/// # Errors
/// None can be used; [`NotFound`] has everything that was tried.
pub async fn find() -> Result<NatsServer, NotFound> {
    let places = Places {
        chosen: env::var_os(ENV).filter(|path| !path.is_empty()).map(PathBuf::from),
        path: env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
    };
    places.find().await
}

/// The path of the log of a server with the [`configuration`] for `directory`.
pub fn log_file(directory: &Path) -> PathBuf {
    directory.join("nats-server.log")
}

/// The first lines of the configuration of a server whose files are in `directory`, an absolute path. It listens only on
/// 127.0.0.1, on `port` or else a free port, and writes the port to a file in `directory`, see [`port`].
pub fn configuration(directory: &Path, port: Option<u16>) -> String {
    // With -1 the server itself takes a free port, so no other process can take it in between.
    let port = port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
    format!(
        "listen: \"127.0.0.1:{port}\"\nports_file_dir: {}\nlog_file: {}\n",
        quoted(directory),
        quoted(&log_file(directory))
    )
}

/// `path` as a string of a nats-server configuration.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// The port on which the server of process `pid` listens, with the [`configuration`] for `directory`; `None` until it
/// listens.
pub fn port(directory: &Path, pid: u32) -> Option<u16> {
    // An incomplete file does not parse; the caller tries again.
    let text = std::fs::read(directory.join(format!("nats-server_{pid}.ports"))).ok()?;
    // {"nats":["nats://127.0.0.1:38971"]}
    let ports: serde_json::Value = serde_json::from_slice(&text).ok()?;
    ports["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// Where to look for a binary.
#[derive(Debug, Default)]
struct Places {
    /// The only binary to try, if set.
    chosen: Option<PathBuf>,
    /// The directories of `PATH`.
    path: Vec<PathBuf>,
}

impl Places {
    async fn find(&self) -> Result<NatsServer, NotFound> {
        let mut candidates = Vec::new();
        for path in self.candidates() {
            match probe(&path).await {
                Ok(version) => return Ok(NatsServer { path, version }),
                Err(unfit) => candidates.push((path, unfit)),
            }
        }
        Err(NotFound { candidates })
    }

    fn candidates(&self) -> Vec<PathBuf> {
        if let Some(chosen) = &self.chosen {
            return vec![chosen.clone()];
        }
        let mut found: Vec<PathBuf> = Vec::new();
        for candidate in self.path.iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join("nats-server")) {
            if candidate.is_file() && !found.contains(&candidate) {
                found.push(candidate);
            }
        }
        if found.is_empty() {
            // The error then does not name every directory of PATH.
            found.push(PathBuf::from("nats-server"));
        }
        found
    }
}

/// The version of the binary `path`.
async fn probe(path: &Path) -> Result<Version, Unfit> {
    // A bare name means that PATH was searched without success.
    if path.file_name() == Some(path.as_os_str()) {
        return Err(Unfit::Missing);
    }
    let metadata = std::fs::metadata(path).map_err(|_| Unfit::Missing)?;
    if metadata.permissions().mode() & 0o002 != 0 {
        return Err(Unfit::Unusable(
            "every user may write to it: run chmod o-w on it, and check it".to_owned(),
        ));
    }
    let output = version_output(path.as_os_str()).await?;
    match Version::parse(&output) {
        Some(version) if version >= OLDEST => Ok(version),
        Some(version) => Err(Unfit::TooOld(version)),
        None => Err(Unfit::Unusable(format!("says its version is {:?}", output.trim()))),
    }
}

async fn version_output(path: &OsStr) -> Result<String, Unfit> {
    let output = Command::new(path).arg("--version").kill_on_drop(true).output();
    match tokio::time::timeout(VERSION_WAIT, output).await {
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Err(error)) => Err(Unfit::Unusable(format!("cannot be run: {error}"))),
        Err(_) => {
            Err(Unfit::Unusable(format!("did not print its version within {} s", VERSION_WAIT.as_secs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Creates a program at `dir/name` that prints `output`. A shell writes it: a file that this process wrote could still
    /// be open in a child forked meanwhile, and could then not be executed.
    fn fake(dir: &Path, name: &str, output: &str) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let script = format!("#!/bin/sh\necho '{output}'\n");
        let written = std::process::Command::new("sh")
            .args(["-c", r#"printf %s "$1" >"$0""#])
            .args([path.as_os_str(), script.as_ref()])
            .status()
            .unwrap();
        assert!(written.success());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn port_is_read_once_complete() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(port(dir.path(), 7), None);
        let file = dir.path().join("nats-server_7.ports");
        let whole = r#"{"nats":["nats://127.0.0.1:38971"]}"#;
        for (text, expected) in [("", None), (&whole[..20], None), ("{}", None), (whole, Some(38971))] {
            fs::write(&file, text).unwrap();
            assert_eq!(port(dir.path(), 7), expected, "{text}");
        }
        assert_eq!(port(dir.path(), 8), None);
    }

    #[test]
    fn paths_are_quoted() {
        let text = configuration(Path::new(r#"/a "b\c""#), None);
        let expected = r#"listen: "127.0.0.1:-1"
ports_file_dir: "/a \"b\\c\""
log_file: "/a \"b\\c\"/nats-server.log"
"#;
        assert_eq!(text, expected);
        assert!(configuration(Path::new("/"), Some(4222)).starts_with("listen: \"127.0.0.1:4222\"\n"));
    }

    #[test]
    fn versions_are_parsed() {
        for (text, expected) in [
            ("nats-server: v2.15.1\n", Some((2, 15))),
            ("v2.11.0", Some((2, 11))),
            ("2.12.0-RC.1", Some((2, 12))),
            ("nats-server: v10.0", Some((10, 0))),
            ("", None),
            ("hello", None),
            ("nats-server: v2", None),
        ] {
            let expected = expected.map(|(major, minor)| Version { major, minor });
            assert_eq!(Version::parse(text), expected, "{text:?}");
        }
        assert!(Version { major: 2, minor: 9 } < OLDEST);
    }

    #[tokio::test]
    async fn first_new_enough_binary_is_used() {
        let dir = tempfile::tempdir().unwrap();
        fake(dir.path(), "old/nats-server", "nats-server: v2.9.10");
        let new = fake(dir.path(), "new/nats-server", "nats-server: v2.11.0");
        let newest = fake(dir.path(), "newest/nats-server", "nats-server: v2.15.1");
        let relative = Places { path: [".", "", "bin"].map(PathBuf::from).to_vec(), chosen: None };
        assert_eq!(relative.candidates(), [PathBuf::from("nats-server")], "none of the current directory");
        let mut places = Places {
            path: ["old", "new", "newest"].map(|name| dir.path().join(name)).to_vec(),
            chosen: None,
        };
        assert_eq!(places.find().await.unwrap().path, new);
        fs::set_permissions(&new, fs::Permissions::from_mode(0o757)).unwrap();
        assert_eq!(places.find().await.unwrap().path, newest, "every user may write to the other");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        places.chosen = Some(new.clone());
        assert_eq!(places.find().await.unwrap().path, new);
    }

    #[tokio::test]
    async fn error_names_candidates_and_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let old = fake(dir.path(), "old/nats-server", "nats-server: v2.9.10");
        let odd = fake(dir.path(), "odd/nats-server", "hello");
        let mut places =
            Places { path: ["old", "empty", "odd"].map(|name| dir.path().join(name)).to_vec(), chosen: None };
        assert_eq!(
            places.find().await.unwrap_err().to_string(),
            format!(
                "no nats-server 2.11 or newer: {}: version 2.9 is too old; {}: says its version is \"hello\"; \
                 install one on PATH, or set OS_UPGRADE_NATS_SERVER to its path",
                old.display(),
                odd.display()
            )
        );
        // If the chosen binary is missing, no other is tried.
        places.chosen = Some(dir.path().join("gone"));
        let candidates = vec![(dir.path().join("gone"), Unfit::Missing)];
        assert_eq!(places.find().await.unwrap_err(), NotFound { candidates });

        let nowhere = Places::default().find().await.unwrap_err();
        let candidates = vec![(PathBuf::from("nats-server"), Unfit::Missing)];
        assert_eq!(nowhere, NotFound { candidates });
    }
}
