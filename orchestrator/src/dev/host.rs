//! Demo hosts: directories that stand for machines, with a tree of releases and the worker's scripts.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

/// The release of a new host.
const FIRST_RELEASE: &str = "1.0.0";
/// The scripts that the worker runs, by name, and what they call.
const SCRIPTS: [(&str, &str); 8] = [
    ("prepare", include_str!("scripts/prepare")),
    ("upgrade", include_str!("scripts/upgrade")),
    ("reboot", include_str!("scripts/reboot")),
    ("health", include_str!("scripts/health")),
    ("versions", include_str!("scripts/versions")),
    ("work", include_str!("scripts/work")),
    ("configure", include_str!("scripts/configure")),
    ("revoke", include_str!("scripts/revoke")),
];

/// A host. Its directory has `releases/VERSION/version`, the link `current` to one of the releases, `boot-id`,
/// `step-seconds`, `worker.pid`, `worker.log`, `scripts/`, `state/` for the worker, and `config/` with what providers
/// gave.
#[derive(Debug, Clone)]
pub(super) struct DemoHost {
    pub(super) name: String,
    /// The absolute path of its directory.
    pub(super) dir: PathBuf,
}

impl DemoHost {
    /// Creates `count` hosts in `data_dir/hosts`, which take the time `step` for each step of their work; hosts that exist
    /// keep their state.
    pub(super) fn create_all(data_dir: &Path, count: u16, step: Duration) -> anyhow::Result<Vec<Self>> {
        let parent = data_dir.join("hosts");
        (1..=count)
            .map(|number| {
                let name = format!("h{number:02}");
                let dir = parent.join(&name);
                Self::create(&name, &dir, step)
                    .with_context(|| format!("cannot create the host {}", dir.display()))
            })
            .collect()
    }

    fn create(name: &str, dir: &Path, step: Duration) -> anyhow::Result<Self> {
        fs::create_dir_all(dir)?;
        let dir = dir.canonicalize()?;
        let release = dir.join("releases").join(FIRST_RELEASE);
        if !dir.join("current").exists() {
            fs::create_dir_all(&release)?;
            fs::write(release.join("version"), format!("{FIRST_RELEASE}\n"))?;
            match symlink(Path::new("releases").join(FIRST_RELEASE), dir.join("current")) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
                _ => {}
            }
        }
        if !dir.join("boot-id").exists() {
            fs::write(dir.join("boot-id"), format!("{}\n", uuid::Uuid::now_v7()))?;
        }
        // Of an earlier version, with whatever the umask left.
        if let Ok(state) = fs::metadata(dir.join("state")) {
            fs::set_permissions(dir.join("state"), Permissions::from_mode(state.mode() & 0o755))?;
        }
        fs::write(dir.join("step-seconds"), format!("{}\n", step.as_secs_f64()))?;
        fs::create_dir_all(dir.join("scripts"))?;
        for (script, text) in SCRIPTS {
            let path = dir.join("scripts").join(script);
            fs::write(&path, text)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        Ok(Self { name: name.to_owned(), dir })
    }

    /// The directory of all hosts.
    pub(super) fn parent(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// The file that makes its upgrades fail while it exists.
    pub(super) fn failure_file(&self) -> PathBuf {
        self.dir.join("fail")
    }

    /// The release it runs, as its directory has it; `?` if that cannot be read.
    pub(super) fn release(&self) -> String {
        self.line("current/version")
    }

    /// The id of its last boot; `?` if that cannot be read.
    pub(super) fn boot_id(&self) -> String {
        self.line("boot-id")
    }

    fn line(&self, file: &str) -> String {
        fs::read_to_string(self.dir.join(file)).map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
    }
}
