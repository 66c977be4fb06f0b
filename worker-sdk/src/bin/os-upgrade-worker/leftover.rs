//! Processes that a killed worker left running. A script continues when its worker is killed, and must not run twice at
//! the same time. So the process group of the running script is recorded in a file, with its start time, which
//! distinguishes it from a later group with the same id. It is recorded before the script begins: until then the process
//! is a shell that waits for a line, and exits if the worker is killed first.

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

/// The file that records the running process group.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
}

impl Leftover {
    /// The record of a host; `what` distinguishes several records of one host.
    pub(crate) fn of_host(state_dir: &Path, host: &str, what: &str) -> Result<Self, Error> {
        let token = HostName::new(host).map_err(|source| Error::Name { of: "host", source })?.token();
        Ok(Self { path: state_dir.join(format!("{token}.{what}")) })
    }

    /// Records that `group` runs. The file is not synced: after a crash of the machine no process is left.
    pub(crate) fn record(&self, group: Pid) -> io::Result<()> {
        let boot_id = fs::read_to_string(BOOT_ID)?;
        let started = started(group)?.unwrap_or_default();
        fs::write(&self.path, format!("{group} {started} {boot_id}"))
    }

    /// Removes the record when the process has ended.
    pub(crate) fn clear(&self) {
        match fs::remove_file(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!("cannot remove {}: {error}", self.path.display()),
        }
    }

    /// Stops the process group that an earlier worker left running, if any.
    pub(crate) async fn end(&self) {
        if let Some(group) = self.running() {
            warn!(%group, "a script that an earlier worker left behind is ended");
            end_group(group, || std::future::ready(())).await;
        }
        self.clear();
    }

    /// The recorded group, if a process of it still runs.
    pub(crate) fn running(&self) -> Option<Pid> {
        let (group, recorded) = self.recorded()?;
        // The leader may have ended before other processes of its group; then no other process can have its id.
        let same = started(group).ok()?.is_none_or(|started| started == recorded);
        (same && killpg(group, None) != Err(Errno::ESRCH)).then_some(group)
    }

    /// The recorded group, if its leader, the recorded script or tool itself, still runs.
    pub(crate) fn running_leader(&self) -> Option<Pid> {
        let (group, recorded) = self.recorded()?;
        (started(group).ok()? == Some(recorded)).then_some(group)
    }

    /// The recorded group of this boot, with the start time of its leader.
    fn recorded(&self) -> Option<(Pid, u64)> {
        let text = fs::read_to_string(&self.path).ok()?;
        let boot_id = fs::read_to_string(BOOT_ID).ok()?;
        let mut words = text.split_whitespace();
        let group = Pid::from_raw(words.next()?.parse().ok()?);
        let recorded = words.next()?.parse().ok()?;
        let is_ours = words.next()? == boot_id.trim() && group.as_raw() > 1 && group != getpgrp();
        is_ours.then_some((group, recorded))
    }
}

/// When the process was started, in clock ticks since the boot; `None` when there is no such process.
fn started(process: Pid) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // The second field, the name, may contain anything; the start time is the 20th field after its closing parenthesis.
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
    async fn leftover_is_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "script").unwrap();
        leftover.end().await;
        let (mut child, group) = sleeper();
        leftover.record(group).unwrap();
        assert_eq!(leftover.running(), Some(group));
        let waiting = tokio::task::spawn_blocking(move || child.wait());
        leftover.end().await;
        assert!(!waiting.await.unwrap().unwrap().success());
        assert_eq!(leftover.running(), None);
    }

    #[tokio::test]
    async fn group_is_recorded_before_script_begins() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "script").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", GATED, "sh", "cat", leftover.path.to_str().unwrap()]).stdout(Stdio::piped());
        let child = start_gated(&mut command, |group| leftover.record(group)).await.unwrap();
        let group = child.id().unwrap().to_string();
        let output = child.wait_with_output().await.unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().starts_with(&format!("{group} ")));
    }

    #[tokio::test]
    async fn script_does_not_begin_after_worker_death() {
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
    fn leader_is_told_from_processes_it_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = Leftover::of_host(directory.path(), "h1", "upgrade").unwrap();
        let mut command = process::Command::new("sh");
        command.args(["-c", "sleep 600 & read -r _"]).process_group(0).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let group = Pid::from_raw(child.id().try_into().unwrap());
        leftover.record(group).unwrap();
        assert_eq!((leftover.running_leader(), leftover.running()), (Some(group), Some(group)));
        child.wait().unwrap();
        assert_eq!((leftover.running_leader(), leftover.running()), (None, Some(group)));
        killpg(group, nix::sys::signal::Signal::SIGKILL).unwrap();
    }

    #[test]
    fn other_process_with_same_id_is_ignored() {
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
