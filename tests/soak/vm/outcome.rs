//! What a guest is like, and what is wrong with that after an upgrade.

use harness::vm::guest::Guest;

/// What the worker's log must not hold: its unit would have kept a package's script from its work.
const FORBIDDEN: &str = "Operation not permitted|Permission denied|Read-only file system";

/// What an upgrade would still do, after the lists of packages are read anew.
pub(crate) async fn upgradable(guest: &Guest) -> String {
    guest.agent.must("apt-get -qq update && apt-get --simulate dist-upgrade | grep ^Inst || true").await
}

/// What a guest is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) name: String,
    /// The id of its boot.
    pub(crate) boot_id: String,
    /// The kernel that runs.
    pub(crate) kernel: String,
    /// Every package with its version and state, and every file that differs from what its package holds.
    pub(crate) packages: String,
    /// What dpkg finds wrong.
    audit: String,
    /// How systemd is, and which units have failed.
    system: String,
    /// The worker's unit: its state, and how often it was started again since the boot.
    unit: String,
    /// What the worker, or what it runs, was forbidden.
    forbidden: String,
    /// When dpkg was first and last at work in the run.
    pub(crate) work: (String, String),
}

impl Outcome {
    /// Looks at a guest.
    pub(crate) async fn of(guest: &Guest) -> Self {
        let ask = async |line: &str| guest.agent.must(line).await.trim().to_owned();
        let format = "--showformat='${db:Status-Abbrev} ${binary:Package} ${Version}\\n'";
        let show = "systemctl show --property=ActiveState,NRestarts os-upgrade-worker | sort | paste -sd ' '";
        Self {
            name: guest.name().to_owned(),
            boot_id: guest.boot_id().await,
            kernel: ask("uname -r").await,
            packages: ask(&format!("dpkg-query --show {format}; dpkg --verify | sort")).await,
            audit: ask("dpkg --audit").await,
            system: ask("systemctl is-system-running || systemctl --failed --no-legend --plain").await,
            unit: ask(show).await,
            forbidden: ask(&format!(
                "journalctl --unit=os-upgrade-worker --output=cat --no-pager --grep='{FORBIDDEN}' || true"
            ))
            .await,
            work: (
                ask("head -n 1 /var/log/dpkg.log | cut -c 1-19").await,
                ask("tail -n 1 /var/log/dpkg.log | cut -c 1-19").await,
            ),
        }
    }

    /// What is wrong with it, where it was like `before`.
    pub(crate) fn wrong(&self, before: &Self) -> Vec<String> {
        let wrong = [
            (self.boot_id == before.boot_id, "it was not rebooted".to_owned()),
            (self.kernel == before.kernel, format!("it still runs {}", self.kernel)),
            (!self.audit.is_empty(), format!("dpkg --audit: {}", self.audit)),
            (self.system != "running", format!("systemd: {}", self.system)),
            (self.unit != "ActiveState=active NRestarts=0", format!("the worker's unit: {}", self.unit)),
            (!self.forbidden.is_empty(), format!("forbidden: {}", self.forbidden)),
        ];
        let wrong = wrong.into_iter().filter(|(is_so, _)| *is_so);
        wrong.map(|(_, what)| format!("{}: {what}", self.name)).collect()
    }

    /// How many packages have another version or state than before.
    pub(crate) fn changed(&self, before: &Self) -> usize {
        self.packages.lines().filter(|line| !before.packages.lines().any(|other| other == *line)).count()
    }
}
