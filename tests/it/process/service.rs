//! The shipped systemd units: systemd accepts them, and they fit the programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use harness::programs;

const ORCHESTRATOR: Unit = Unit {
    name: "os-upgrade.service",
    text: include_str!("../../../config/os-upgrade.service"),
    program: programs::ORCHESTRATOR,
};
const WORKER: Unit = Unit {
    name: "os-upgrade-worker.service",
    text: include_str!("../../../config/os-upgrade-worker.service"),
    program: programs::WORKER,
};
const CONFIGURATION: &str = include_str!("../../../config/os-upgrade.toml");
const USER_MADE: &str = include_str!("../../../config/deb/os-upgrade/postinst");
const WORKER_SETTINGS: &str = include_str!("../../../config/os-upgrade-worker.env");

struct Unit {
    name: &'static str,
    text: &'static str,
    program: &'static str,
}

/// All settings: key and value.
fn settings(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    lines.map(|line| line.split_once('=').unwrap())
}

impl Unit {
    /// The value of a key in `[Service]`; the last one counts.
    fn service(&self, key: &str) -> &'static str {
        let (_, service) = self.text.split_once("[Service]\n").unwrap();
        let (service, _) = service.split_once("\n[").unwrap();
        settings(service).filter(|(name, _)| *name == key).last().unwrap_or_else(|| panic!("{key}")).1
    }

    /// The arguments of its program, whose path must be one that systemd finds.
    fn arguments(&self) -> Vec<&'static str> {
        let mut words = self.service("ExecStart").split(' ');
        assert_eq!(words.next(), Some(self.program));
        words.collect()
    }

    /// The unit with the path of the built program.
    fn here(&self) -> String {
        let path = programs::path(self.program);
        let started = format!("ExecStart={} ", self.program);
        assert!(self.text.contains(&started));
        self.text.replace(&started, &format!("ExecStart={} ", path.display()))
    }

    fn assert_accepted(&self) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(self.name);
        fs::write(&path, self.here()).unwrap();
        let verify = |path: &Path| Command::new("systemd-analyze").arg("verify").arg(path).output();
        let Ok(verified) = verify(&path) else {
            // Without systemd only the keys are checked.
            return;
        };
        let stderr = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about_it: Vec<_> = stderr.lines().filter(|line| line.contains(self.name)).collect();
        assert_eq!((verified.status.success(), about_it), (true, Vec::<&str>::new()), "{stderr}");
        // systemd would print a warning otherwise.
        fs::write(&path, self.here().replace("TimeoutStopSec", "TimeoutStopSecs")).unwrap();
        let stderr = String::from_utf8(verify(&path).unwrap().stderr).unwrap();
        assert!(stderr.contains("Unknown key 'TimeoutStopSecs'"), "{stderr}");
    }
}

#[test]
fn orchestrator_unit_fits_program() {
    let service = |key| ORCHESTRATOR.service(key);
    // It reports that it is ready and alive, and stops its nats-server itself; see `process::stop`.
    assert_eq!([service("Type"), service("WatchdogSec"), service("KillMode")], ["notify", "30", "mixed"]);
    assert!(service("TimeoutStopSec").parse::<u32>().unwrap() > 5);
    // The exit code of an unusable configuration.
    assert_eq!(service("RestartPreventExitStatus"), "2");
    assert_eq!(service("WorkingDirectory"), "%S/os-upgrade");
    // More than the largest number of connections that can be set.
    assert!(service("LimitNOFILE").parse::<u32>().unwrap() > 10_000 + 256);
    // A user that can own files, with the data directory as home.
    assert_eq!((service("User"), service("StateDirectory")), ("os-upgrade", "os-upgrade"));
    // The directory of the socket in the shipped configuration, which others than the user may pass through.
    assert_eq!(service("RuntimeDirectory"), "os-upgrade");
    assert!(CONFIGURATION.contains("\n# fleet-socket = \"/run/os-upgrade/fleet.sock\"\n"));
    assert!(!ORCHESTRATOR.text.contains("RuntimeDirectoryMode"));
    assert!(!ORCHESTRATOR.text.contains("DynamicUser"));
    let user = USER_MADE.replace("\\\n", "");
    let user = user.lines().map(str::trim).find(|line| line.starts_with("useradd ")).unwrap();
    assert!(user.contains(" --home-dir /var/lib/os-upgrade ") && user.ends_with(" os-upgrade"), "{user}");
    let program = programs::path(ORCHESTRATOR.program);
    let parsed = Command::new(program).args(ORCHESTRATOR.arguments()).arg("--help").output().unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}

#[test]
fn worker_unit_fits_program() {
    let service = |key| WORKER.service(key);
    // dpkg continues without the worker; see `tests/system/debian.rs`.
    assert_eq!((service("KillMode"), service("OOMPolicy")), ("process", "continue"));
    assert_eq!(service("RestartPreventExitStatus"), "2");
    let settings: BTreeMap<_, _> = settings(WORKER_SETTINGS).collect();
    assert_eq!(
        settings.keys().copied().collect::<Vec<_>>(),
        ["APPLICATION", "OPTIONS", "OS_UPGRADE_NATS_URL"]
    );
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().to_str().unwrap();
    let arguments = WORKER.arguments().into_iter().filter(|word| *word != "$OPTIONS");
    let arguments: Vec<_> =
        arguments.map(|word| if word == "${APPLICATION}" { settings["APPLICATION"] } else { word }).collect();
    let start = |url: &str| {
        let mut command = Command::new(programs::path(WORKER.program));
        command.args(&arguments).args(["--state-dir", state]).env("OS_UPGRADE_NATS_URL", url);
        // With these the worker would start, and wait for its server.
        command.arg("--help").output().unwrap()
    };
    assert!(start("nats://bus.example").status.success());
    // The directories that systemd creates are the worker's defaults.
    let help = String::from_utf8(start("nats://bus.example").stdout).unwrap();
    for directory in [service("StateDirectory"), service("CacheDirectory")] {
        assert_eq!(directory, "os-upgrade-worker");
    }
    for default in ["/var/lib/os-upgrade-worker", "/var/cache/os-upgrade-worker"] {
        assert!(help.contains(&format!("[default: {default}]")), "{default} in {help}");
    }
}

#[test]
fn systemd_accepts_all_units() {
    for unit in [ORCHESTRATOR, WORKER] {
        unit.assert_accepted();
    }
}
