//! Whether the host is healthy: systemd has started, nothing stands worse than before the upgrade or the reboot, and the
//! operator's health script succeeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_systems::systemd::{State, failed_units};
use os_upgrade_systems::text::{names, one_line};
use os_upgrade_worker_sdk::{BootIdSource, Context, HandlerResult};
use tracing::{info, warn};

use super::before::{Before, BeforeFile, Change, Seen, SeenFile};
use super::reboot::runs_systemd;
use super::tools::Tools;
use super::{Retry, SystemOptions};
use crate::process::Script;
use crate::scripts::{environment, success};

const SYSTEMCTL: &str = "systemctl";
/// How often the host is checked.
const POLL_EVERY: Duration = Duration::from_secs(5);
/// Added to a failure when it is unknown whether it is an old one.
const UNRECORDED: &str = "nothing was recorded before this boot, so every failure counts";

/// The health check of a host.
#[derive(Debug)]
pub(crate) struct Health {
    script: Option<PathBuf>,
    wait: Duration,
    before: BeforeFile,
    seen: SeenFile,
    boot_id: BootIdSource,
}

impl Health {
    pub(crate) fn new(
        options: &SystemOptions,
        before: PathBuf,
        seen: PathBuf,
        boot_id: BootIdSource,
    ) -> Self {
        Self {
            script: options.health_script.clone(),
            wait: options.health_wait,
            before: BeforeFile::new(before),
            seen: SeenFile::new(seen),
            boot_id,
        }
    }

    /// What was recorded before the change of this command's run.
    pub(crate) fn recorded(&self, context: &Context) -> HandlerResult<Option<Before>> {
        self.before.read_of(context.run())
    }

    /// What to compare the host with: what was recorded before the change, or else what was last seen of the boot before this one.
    /// A requested reboot has no record if the host left its boot before the worker saw the request. `None` if nobody knows.
    pub(crate) fn before(&self, context: &Context) -> HandlerResult<Option<Before>> {
        if let Some(recorded) = self.recorded(context)? {
            return Ok(Some(recorded));
        }
        let Some(seen) = self.seen.read()?.before(&self.boot_id.read()?.0) else { return Ok(None) };
        let broken_units = self.broken_units(&seen.boot)?;
        Ok(Some(Before {
            run: context.run().cloned(),
            boot: seen.boot,
            change: Change::LeftBoot,
            failed_units: &seen.failed_units - &broken_units,
            unfinished_packages: seen.unfinished_packages,
            target: None,
            broken_units,
            is_judged: false,
        }))
    }

    /// The units that an upgrade broke in `boot`, and that no health check has reported yet. What broke in an earlier boot is old:
    /// a reboot came in between, whoever wanted it.
    fn broken_units(&self, boot: &str) -> HandlerResult<BTreeSet<String>> {
        let unjudged = self.before.read()?.filter(|before| !before.is_judged && before.boot == boot);
        Ok(unjudged.map(|before| before.broken_units).unwrap_or_default())
    }

    /// Records what is seen now, unless units may still fail because the host is starting or going down.
    pub(crate) async fn see(
        &self,
        tools: &Tools,
        unfinished_packages: Option<BTreeSet<String>>,
    ) -> HandlerResult {
        let boot = self.boot_id.read()?.0;
        let failed_units = failed_now(tools).await?;
        if matches!(state(tools).await?, State::Starting | State::Stopping) {
            return Ok(());
        }
        self.seen.add(Seen { boot, failed_units, unfinished_packages })
    }

    /// Records what stands before an upgrade; a resumed one keeps its earlier record.
    pub(crate) async fn before_upgrade(&self, tools: &Tools, context: &Context) -> HandlerResult {
        let earlier = self.recorded(context)?.is_some_and(|before| before.change == Change::Upgrade);
        if context.is_resumed() && earlier {
            return Ok(());
        }
        self.before.write(&Before {
            run: context.run().cloned(),
            boot: self.boot_id.read()?.0,
            change: Change::Upgrade,
            failed_units: failed_before(tools).await?,
            unfinished_packages: Some(BTreeSet::new()),
            target: None,
            broken_units: BTreeSet::new(),
            is_judged: false,
        })
    }

    /// Records the image that the host is to run after the reboot that its upgrade requires.
    pub(crate) fn set_target(&self, context: &Context, target: &str) -> HandlerResult {
        let before = self.recorded(context)?.ok_or("what stood before the upgrade is no longer recorded")?;
        self.before.write(&Before { target: Some(target.to_owned()), ..before })
    }

    /// Records which units an upgrade broke that requires a reboot. If another run or the reboot queue reboots the host out of
    /// this boot, these units do not count as having failed before that.
    pub(crate) async fn after_upgrade(&self, tools: &Tools, context: &Context) -> HandlerResult {
        let Some(before) = self.recorded(context)? else { return Ok(()) };
        let boot = self.boot_id.read()?.0;
        match failed_now(tools).await {
            Ok(failed) => {
                let broken_units = &failed - &before.failed_units;
                self.before.write(&Before { boot, broken_units, ..before })
            }
            Err(error) => {
                // Its reboot compares with what stood before the upgrade anyway.
                warn!("which units the upgrade broke is unknown: {}", error.message());
                Ok(())
            }
        }
    }

    /// Records what stands before a reboot, unless it belongs to an upgrade of the same run: then what stood before the upgrade
    /// counts. An attempt that follows a [`Change::RebootBegun`] keeps its record, as units may have failed because of that.
    pub(crate) async fn before_reboot(
        &self,
        tools: &Tools,
        context: &Context,
        unfinished_packages: Option<BTreeSet<String>>,
        change: Change,
    ) -> HandlerResult {
        let keeps = self.recorded(context)?.is_some_and(|before| match before.change {
            Change::Upgrade => !before.is_judged,
            Change::RebootBegun => context.is_resumed(),
            Change::Reboot | Change::LeftBoot => false,
        });
        if keeps {
            return Ok(());
        }
        let boot = self.boot_id.read()?.0;
        let broken_units = self.broken_units(&boot)?;
        self.before.write(&Before {
            run: context.run().cloned(),
            boot,
            change,
            failed_units: &failed_before(tools).await? - &broken_units,
            unfinished_packages,
            target: None,
            broken_units,
            is_judged: false,
        })
    }

    /// For what is checked until it holds, or until the host should have become healthy.
    pub(crate) fn retry(&self) -> Retry {
        Retry::new(self.wait, POLL_EVERY)
    }

    /// Records that the host has been compared with what stood before, with whatever result.
    pub(crate) fn set_judged(&self, before: Before) {
        if let Err(error) = self.before.write(&Before { is_judged: true, ..before }) {
            // The next reboot is then compared more strictly than necessary.
            warn!("{}", error.message());
        }
    }

    /// Checks the host once. `unfinished` are its packages that are not fully installed.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) async fn check(
        &self,
        tools: &Tools,
        context: &Context,
        before: Option<&Before>,
        unfinished: impl Future<Output = HandlerResult<BTreeSet<String>>>,
    ) -> HandlerResult {
        if state(tools).await? == State::Starting {
            return Err("systemd is still starting units; see systemctl list-jobs".into());
        }
        // Something that starts with the host may be installing some.
        if let Some(problem) = package_problem(before, unfinished.await) {
            return Err(problem.into());
        }
        let failed = failed_now(tools).await?;
        if let Some(problem) = problem(before, &failed) {
            return Err(problem.into());
        }
        match &self.script {
            Some(path) => run_script(path, context).await,
            None => Ok(()),
        }
    }
}

/// The problem with these failed units.
fn problem(before: Option<&Before>, failed: &BTreeSet<String>) -> Option<String> {
    let Some(before) = before else {
        return (!failed.is_empty()).then(|| {
            let names = names(failed);
            format!("units have failed: {names}; {UNRECORDED}; repair them, or call systemctl reset-failed")
        });
    };
    let new = failed - &before.failed_units;
    let (broken, new): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|unit| before.broken_units.contains(unit));
    let since = match before.change {
        Change::Upgrade => {
            return listed("units have failed since the upgrade began", [broken, new].concat());
        }
        Change::Reboot | Change::RebootBegun => "units have failed since the reboot began",
        Change::LeftBoot => "units have failed that had not in the boot before",
    };
    listed(since, new).or_else(|| listed("units have failed since the upgrade before this reboot", broken))
}

fn listed(what: &str, units: Vec<String>) -> Option<String> {
    (!units.is_empty()).then(|| format!("{what}: {}; see systemctl status", names(units)))
}

/// The problem with these unfinished packages, or with an error instead of them. They could not be listed before a reboot either
/// if its record lacks them, and then that error does not count.
fn package_problem(before: Option<&Before>, unfinished: HandlerResult<BTreeSet<String>>) -> Option<String> {
    let recorded = before.map(|before| before.unfinished_packages.as_ref());
    let unfinished = match unfinished {
        Ok(unfinished) => unfinished,
        Err(error) if recorded == Some(None) => {
            warn!("unfinished packages are unknown, as before the reboot: {}", error.message());
            return None;
        }
        Err(error) => return Some(error.message().to_owned()),
    };
    let new = recorded.flatten().map_or_else(|| unfinished.clone(), |excused| &unfinished - excused);
    let unrecorded = if before.is_none() { format!("; {UNRECORDED}") } else { String::new() };
    (!new.is_empty())
        .then(|| format!("packages are not fully installed: {}; see dpkg --audit{unrecorded}", names(new)))
}

async fn run_script(path: &Path, context: &Context) -> HandlerResult {
    let mut script = Script::start(path, "health", &environment(context), context.output())
        .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    success("the health script", &script.wait().await?)
}

/// The state of systemd; absent if the root is not this machine's, or has no systemctl.
///
/// # Errors
/// It does not answer.
async fn state(tools: &Tools) -> HandlerResult<State> {
    if !tools.is_this_machine() {
        return Ok(State::Absent);
    }
    // The exit status is ignored: it is 0 only for the state `running`.
    let finished = match tools.run(SYSTEMCTL, &["is-system-running".to_owned()]).await {
        Err(_) if !runs_systemd() => return Ok(State::Absent),
        finished => finished?,
    };
    match State::parse(&finished.stdout) {
        State::Unknown => Err(format!("systemd does not answer: {}", one_line(&finished.all())).into()),
        state @ (State::Absent | State::Starting | State::Started | State::Stopping) => Ok(state),
    }
}

/// The units that have failed.
async fn failed_now(tools: &Tools) -> HandlerResult<BTreeSet<String>> {
    if state(tools).await? == State::Absent {
        return Ok(BTreeSet::new());
    }
    let words = ["list-units", "--state=failed", "--plain", "--no-legend", "--no-pager"];
    let listed = tools.query(SYSTEMCTL, &words.map(str::to_owned)).await?;
    Ok(failed_units(&listed))
}

/// The units that have failed before a change.
async fn failed_before(tools: &Tools) -> HandlerResult<BTreeSet<String>> {
    let failed = failed_now(tools).await?;
    if !failed.is_empty() {
        info!("units have failed already, and do not count against this host: {}", names(&failed));
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_what_has_become_worse_counts() {
        let before = |change, failed: &[&str], broken: &[&str]| Before {
            run: None,
            boot: String::new(),
            change,
            failed_units: units(failed),
            unfinished_packages: Some(units(&["foo"])),
            target: None,
            broken_units: units(broken),
            is_judged: false,
        };
        let upgrade = before(Change::Upgrade, &["a.service"], &["b.service"]);
        let reboot = before(Change::RebootBegun, &["a.service"], &["b.service"]);
        let left = before(Change::LeftBoot, &["a.service"], &["b.service"]);
        let see = "see systemctl status";
        for (before, failed, expected) in [
            (Some(&upgrade), &["a.service"][..], None),
            (
                Some(&upgrade),
                &["a.service", "b.service", "c.service"],
                Some(format!("units have failed since the upgrade began: b.service, c.service; {see}")),
            ),
            (Some(&reboot), &["a.service"], None),
            (
                Some(&reboot),
                &["b.service", "c.service"],
                Some(format!("units have failed since the reboot began: c.service; {see}")),
            ),
            (
                Some(&reboot),
                &["b.service"],
                Some(format!("units have failed since the upgrade before this reboot: b.service; {see}")),
            ),
            (Some(&left), &["a.service"], None),
            (
                Some(&left),
                &["b.service", "c.service"],
                Some(format!("units have failed that had not in the boot before: c.service; {see}")),
            ),
            (None, &[], None),
            (
                None,
                &["a.service"],
                Some(format!(
                    "units have failed: a.service; {UNRECORDED}; repair them, or call systemctl reset-failed"
                )),
            ),
        ] {
            assert_eq!(problem(before, &units(failed)), expected, "{failed:?}");
        }
        let unfinished = |names: &[&str]| Ok(units(names));
        assert_eq!(package_problem(Some(&reboot), unfinished(&["foo"])), None);
        let other = "packages are not fully installed: bar; see dpkg --audit".to_owned();
        assert_eq!(package_problem(Some(&reboot), unfinished(&["bar", "foo"])), Some(other));
        let unrecorded = format!("packages are not fully installed: foo; see dpkg --audit; {UNRECORDED}");
        assert_eq!(package_problem(None, unfinished(&["foo"])), Some(unrecorded));

        let damaged = || Err("dpkg-query failed".into());
        let unlisted = Before { unfinished_packages: None, ..reboot.clone() };
        assert_eq!(package_problem(Some(&unlisted), damaged()), None);
        for before in [Some(&upgrade), Some(&reboot), None] {
            assert_eq!(package_problem(before, damaged()), Some("dpkg-query failed".to_owned()));
        }
    }
}
