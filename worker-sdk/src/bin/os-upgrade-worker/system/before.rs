//! What stood before an upgrade or a reboot, so that the health check afterwards can tell what came of it. The record belongs to
//! the command's run, or to the entry of the reboot queue, and counts for no other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use os_upgrade_worker_sdk::{HandlerResult, RunId};
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
        let failed = |error: &dyn std::fmt::Display| {
            format!("what stood before cannot be read from {}: {error}; remove that file", self.0.display())
        };
        match fs::read(&self.0) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|error| failed(&error))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&error).into()),
        }
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

/// Replaces a file durably: whatever happens, it has the old content or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> HandlerResult {
    let replaced = || {
        let new = path.with_extension("new");
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
}
