//! The state of a guest, and its problems after an upgrade.

use harness::vm::guest::Guest;

/// A pattern that the worker's log must not match: its unit would have denied something to a package's script.
const FORBIDDEN: &str = "Operation not permitted|Permission denied|Read-only file system";

/// The changes that another upgrade would make, after an update of the package lists.
pub(crate) async fn upgradable(guest: &Guest) -> String {
    guest.agent.must("apt-get -qq update && apt-get --simulate dist-upgrade | grep ^Inst || true").await
}

/// The state of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) name: String,
    /// The id of its boot.
    pub(crate) boot_id: String,
    /// The running kernel.
    pub(crate) kernel: String,
    /// Every package with its version and state, and every file that differs from its package's.
    pub(crate) packages: String,
    /// The problems that dpkg finds.
    audit: String,
    /// The state of systemd, and the failed units.
    system: String,
    /// The worker's unit: its state, and its restarts since the boot.
    unit: String,
    /// Denied actions of the worker or its child processes.
    forbidden: String,
    /// The times of dpkg's first and last action in the run.
    pub(crate) work: (String, String),
}

impl Outcome {
    /// Reads the state of a guest.
    pub(crate) async fn of(guest: &Guest) -> Self {
        let output = async |line: &str| guest.agent.must(line).await.trim().to_owned();
        let format = "--showformat='${db:Status-Abbrev} ${binary:Package} ${Version}\\n'";
        let show = "systemctl show --property=ActiveState,NRestarts os-upgrade-worker | sort | paste -sd ' '";
        Self {
            name: guest.name().to_owned(),
            boot_id: guest.boot_id().await,
            kernel: output("uname -r").await,
            packages: output(&format!("dpkg-query --show {format}; dpkg --verify | sort")).await,
            audit: output("dpkg --audit").await,
            system: output("systemctl is-system-running || systemctl --failed --no-legend --plain").await,
            unit: output(show).await,
            forbidden: output(&format!(
                "journalctl --unit=os-upgrade-worker --output=cat --no-pager --grep='{FORBIDDEN}' || true"
            ))
            .await,
            work: (
                output("head -n 1 /var/log/dpkg.log | cut -c 1-19").await,
                output("tail -n 1 /var/log/dpkg.log | cut -c 1-19").await,
            ),
        }
    }

    /// The problems after an upgrade from `before`.
    pub(crate) fn problems(&self, before: &Self) -> Vec<String> {
        let problems = [
            (self.boot_id == before.boot_id, "it was not rebooted".to_owned()),
            (self.kernel == before.kernel, format!("it still runs {}", self.kernel)),
            (!self.audit.is_empty(), format!("dpkg --audit: {}", self.audit)),
            (self.system != "running", format!("systemd: {}", self.system)),
            (self.unit != "ActiveState=active NRestarts=0", format!("the worker's unit: {}", self.unit)),
            (!self.forbidden.is_empty(), format!("forbidden: {}", self.forbidden)),
        ];
        let problems = problems.into_iter().filter(|(is_so, _)| *is_so);
        problems.map(|(_, what)| format!("{}: {what}", self.name)).collect()
    }

    /// How many packages have another version or state than before.
    pub(crate) fn changed(&self, before: &Self) -> usize {
        self.packages.lines().filter(|line| !before.packages.lines().any(|other| other == *line)).count()
    }
}
