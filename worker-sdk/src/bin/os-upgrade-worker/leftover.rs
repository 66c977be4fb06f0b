//! What a killed worker left running: a script goes on when its worker is killed, and must not run beside its second
//! start. The process group of the running script stands in a file, with the time its process was started, by which
//! a group is told from a later one with the same id. It stands there before the script begins: until then the process is
//! a shell that waits for a line, and ends without one when the worker is killed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::killpg;
use nix::unistd::{Pid, getpgrp};
use os_upgrade_worker_sdk::{Error, HostName};
use tracing::warn;

use crate::process::end_group;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The note about the script that runs.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
}

impl Leftover {
    /// `what` tells notes of one host from each other.
    pub(crate) fn of_host(state_dir: &Path, host: &str, what: &str) -> Result<Self, Error> {
        let token = HostName::new(host).map_err(|source| Error::Name { of: "host", source })?.token();
        Ok(Self { path: state_dir.join(format!("{token}.{what}")) })
    }

    /// Notes that `group` runs. Not synced: after a crash of the machine no script is left.
    pub(crate) fn note(&self, group: Pid) -> io::Result<()> {
        let boot_id = fs::read_to_string(BOOT_ID)?;
        let started = started(group)?.unwrap_or_default();
        fs::write(&self.path, format!("{group} {started} {boot_id}"))
    }

    /// Notes that nothing runs any more.
    pub(crate) fn clear(&self) {
        match fs::remove_file(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!("cannot remove {}: {error}", self.path.display()),
        }
    }

    /// Ends what an earlier worker left running.
    pub(crate) async fn end(&self) {
        if let Some(group) = self.running() {
            warn!(%group, "a script that an earlier worker left behind is ended");
            end_group(group, || std::future::ready(())).await;
        }
        self.clear();
    }

    /// The group that an earlier worker noted, if it still runs.
    pub(crate) fn running(&self) -> Option<Pid> {
        let text = fs::read_to_string(&self.path).ok()?;
        let boot_id = fs::read_to_string(BOOT_ID).ok()?;
        let mut words = text.split_whitespace();
        let group = Pid::from_raw(words.next()?.parse().ok()?);
        let noted: u64 = words.next()?.parse().ok()?;
        if words.next()? != boot_id.trim() || group.as_raw() <= 1 || group == getpgrp() {
            return None;
        }
        // Its leader may have ended before what it started; then no other process can have taken the id.
        let same = started(group).ok()?.is_none_or(|started| started == noted);
        (same && killpg(group, None) != Err(Errno::ESRCH)).then_some(group)
    }
}

/// When the process was started, in clock ticks since the boot; `None` when there is no such process.
fn started(process: Pid) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // The second field, the name, may hold anything; what follows its last parenthesis has 20 fields up to this one.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest);
    let field = after_name.and_then(|rest| rest.split_whitespace().nth(19));
    let ticks = field.and_then(|field| field.parse().ok());
    ticks.map(Some).ok_or_else(|| io::Error::other("the kernel's process table cannot be read"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{self, Stdio};

    use tokio::process::Command;

    use super::*;
    use crate::process::{GATED, start_gated};

    fn sleeper() -> (process::Child, Pid) {
        let child = process::Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let group = Pid::from_raw(child.id().try_into().unwrap());
        (child, group)
    }

    #[tokio::test]
    async fn a_leftover_is_ended() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "script").unwrap();
        leftover.end().await;
        let (mut child, group) = sleeper();
        leftover.note(group).unwrap();
        assert_eq!(leftover.running(), Some(group));
        let waiting = tokio::task::spawn_blocking(move || child.wait());
        leftover.end().await;
        assert!(!waiting.await.unwrap().unwrap().success());
        assert_eq!(leftover.running(), None);
    }

    #[tokio::test]
    async fn what_is_started_is_noted_before_it_begins() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "script").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", GATED, "sh", "cat", leftover.path.to_str().unwrap()]).stdout(Stdio::piped());
        let child = start_gated(&mut command, |group| leftover.note(group)).await.unwrap();
        let group = child.id().unwrap().to_string();
        let output = child.wait_with_output().await.unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().starts_with(&format!("{group} ")));
    }

    #[tokio::test]
    async fn nothing_begins_when_its_worker_ends_before_that() {
        let directory = tempfile::tempdir().unwrap();
        let begun = directory.path().join("begun");
        let mut command = Command::new("sh");
        command.args(["-c", GATED, "sh", "touch"]).arg(&begun).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take());
        assert_eq!(child.wait().await.unwrap().code(), Some(125));
        assert!(!begun.exists());
    }

    #[test]
    fn another_process_with_the_same_id_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "script").unwrap();
        let (mut child, group) = sleeper();
        let boot_id = fs::read_to_string(BOOT_ID).unwrap();
        for text in [
            format!("{group} 1 {boot_id}"),
            format!("{group} {} other-boot", started(group).unwrap().unwrap()),
            format!("{} 1 {boot_id}", getpgrp()),
            format!("0 1 {boot_id}"),
            "nonsense".to_owned(),
            String::new(),
        ] {
            fs::write(&leftover.path, &text).unwrap();
            assert_eq!(leftover.running(), None, "{text}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
