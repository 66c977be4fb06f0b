//! What stood before an upgrade or a reboot, so that the health check afterwards can tell what came of it. The record belongs to
//! the command's run, or to the entry of the reboot queue, and counts for no other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use os_upgrade_worker_sdk::{HandlerResult, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What the host was about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Change {
    /// An upgrade, and the reboot that it may require.
    Upgrade,
    /// A reboot that nobody's upgrade required, not begun yet.
    Reboot,
    /// The same, from the moment at which systemd is told: units may fail because of it.
    RebootBegun,
    /// Leaving a boot unannounced, so that only what was last [`Seen`] in it is known.
    LeftBoot,
}

/// What stood before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Before {
    /// The run or the entry of the reboot queue, if the command named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// The id of the boot that the change began in, or that a resumed upgrade ended in.
    #[serde(default)]
    pub(crate) boot: String,
    pub(crate) change: Change,
    /// The units that had failed.
    pub(crate) failed_units: BTreeSet<String>,
    /// The packages that were not fully installed; none after an upgrade, which finishes them. Absent if they could not be
    /// listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished_packages: Option<BTreeSet<String>>,
    /// The image that the host is to run after the upgrade's reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// The units that failed during the last upgrade that required a reboot.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) broken_units: BTreeSet<String>,
    /// A health check has judged what came of the change.
    #[serde(default)]
    pub(crate) is_judged: bool,
}

/// What the worker last saw of the host in one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Seen {
    pub(crate) boot: String,
    /// The units that had failed.
    pub(crate) failed_units: BTreeSet<String>,
    /// The packages that were not fully installed. Absent if they could not be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished_packages: Option<BTreeSet<String>>,
}

/// What the worker last saw of the last two boots it saw, the later one first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SeenBoots(Vec<Seen>);

impl SeenBoots {
    /// What was last seen of the boot before `boot`.
    pub(crate) fn before(self, boot: &str) -> Option<Seen> {
        self.0.into_iter().find(|seen| seen.boot != boot)
    }

    /// Replaces what was seen of this boot.
    fn with(&self, seen: Seen) -> Self {
        let earlier = self.clone().before(&seen.boot);
        Self([Some(seen), earlier].into_iter().flatten().collect())
    }
}

/// The file with what the worker last saw.
#[derive(Debug)]
pub(crate) struct SeenFile(PathBuf);

impl SeenFile {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self) -> HandlerResult<SeenBoots> {
        Ok(read(&self.0)?.unwrap_or_default())
    }

    /// Records what is seen now, if that is new.
    pub(crate) fn add(&self, seen: Seen) -> HandlerResult {
        let boots = self.read()?;
        let new = boots.with(seen);
        if new == boots { Ok(()) } else { replace(&self.0, &serde_json::to_vec(&new)?) }
    }
}

/// The file with the record.
#[derive(Debug)]
pub(crate) struct BeforeFile(PathBuf);

impl BeforeFile {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The last record, of whatever run.
    ///
    /// # Errors
    /// It cannot be read. It is not taken for a missing one, because units that an upgrade broke would count as old.
    pub(crate) fn read(&self) -> HandlerResult<Option<Before>> {
        read(&self.0)
    }

    /// The record, if it is that of `run`.
    pub(crate) fn read_of(&self, run: Option<&RunId>) -> HandlerResult<Option<Before>> {
        Ok(self.read()?.filter(|before| before.run.as_ref() == run))
    }

    /// Replaces the record. After `Ok` it outlasts a loss of power.
    pub(crate) fn write(&self, before: &Before) -> HandlerResult {
        replace(&self.0, &serde_json::to_vec(before)?)
    }
}

/// Reads a record; `None` if there is no file.
fn read<T: DeserializeOwned>(path: &Path) -> HandlerResult<Option<T>> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("what stood before cannot be read from {}: {error}; remove that file", path.display())
    };
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|error| failed(&error))?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error).into()),
    }
}

/// Replaces a file durably: whatever happens, it has the old content or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> HandlerResult {
    let replaced = || {
        // Next to it, under a name of its own: files that differ in their extension may be replaced at the same time.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let mut file = File::create(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(path))?.sync_all()
    };
    Ok(replaced().map_err(|error: io::Error| format!("cannot write {}: {error}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_counts_for_its_run_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = BeforeFile::new(directory.path().join("h1.before"));
        let [one, other] = ["r1", "r2"].map(|run| RunId::new(run).unwrap());
        assert_eq!(file.read_of(Some(&one)), Ok(None));
        let before = Before {
            run: Some(one.clone()),
            boot: "boot-1".to_owned(),
            change: Change::RebootBegun,
            failed_units: ["a.service".to_owned()].into(),
            unfinished_packages: Some(["foo".to_owned()].into()),
            target: None,
            broken_units: ["b.service".to_owned()].into(),
            is_judged: false,
        };
        file.write(&before).unwrap();
        assert_eq!(file.read_of(Some(&one)), Ok(Some(before.clone())));
        assert_eq!(file.read_of(Some(&other)), Ok(None));
        assert_eq!(file.read_of(None), Ok(None));
        let written = fs::read_to_string(&file.0).unwrap();
        assert_eq!(
            written,
            r#"{"run":"r1","boot":"boot-1","change":"reboot-begun","failed-units":["a.service"],"unfinished-packages":["foo"],"broken-units":["b.service"],"is-judged":false}"#
        );

        fs::write(&file.0, "{").unwrap();
        let error = file.read_of(Some(&one)).unwrap_err();
        assert!(error.message().ends_with("; remove that file"), "{}", error.message());
    }

    #[test]
    fn last_two_boots_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let file = SeenFile::new(directory.path().join("h1.seen"));
        let seen = |boot: &str, unit: &str| Seen {
            boot: boot.to_owned(),
            failed_units: [unit.to_owned()].into(),
            unfinished_packages: Some(BTreeSet::new()),
        };
        assert_eq!(file.read().unwrap().before("boot-1"), None);
        for (boot, unit) in [("boot-1", "a"), ("boot-2", "b"), ("boot-2", "c"), ("boot-3", "d")] {
            file.add(seen(boot, unit)).unwrap();
        }
        // Whether the worker has looked at the present boot or not.
        assert_eq!(file.read().unwrap().before("boot-3"), Some(seen("boot-2", "c")));
        assert_eq!(file.read().unwrap().before("boot-4"), Some(seen("boot-3", "d")));
        let written = fs::read_to_string(&file.0).unwrap();
        assert_eq!(
            written,
            r#"[{"boot":"boot-3","failed-units":["d"],"unfinished-packages":[]},{"boot":"boot-2","failed-units":["c"],"unfinished-packages":[]}]"#
        );
    }
}
