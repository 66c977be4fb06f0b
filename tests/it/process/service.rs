//! The units that are shipped: systemd understands all of them, and they start the programs as those want to be.

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
const USER_MADE: &str = include_str!("../../../config/deb/os-upgrade/postinst");
const WORKER_SETTINGS: &str = include_str!("../../../config/os-upgrade-worker.env");

struct Unit {
    name: &'static str,
    text: &'static str,
    program: &'static str,
}

/// Every line that says something, at its `=`.
fn settings(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    lines.map(|line| line.split_once('=').unwrap())
}

impl Unit {
    /// What its key in `[Service]` is, the last one counting.
    fn service(&self, key: &str) -> &'static str {
        let (_, service) = self.text.split_once("[Service]\n").unwrap();
        let (service, _) = service.split_once("\n[").unwrap();
        settings(service).filter(|(name, _)| *name == key).last().unwrap_or_else(|| panic!("{key}")).1
    }

    /// The arguments that it starts its program with, which it names as systemd looks for it.
    fn arguments(&self) -> Vec<&'static str> {
        let mut words = self.service("ExecStart").split(' ');
        assert_eq!(words.next(), Some(self.program));
        words.collect()
    }

    /// As on a machine where the program is where it was built.
    fn here(&self) -> String {
        let path = programs::path(self.program);
        let started = format!("ExecStart={} ", self.program);
        assert!(self.text.contains(&started));
        self.text.replace(&started, &format!("ExecStart={} ", path.display()))
    }

    fn is_understood(&self) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(self.name);
        fs::write(&path, self.here()).unwrap();
        let verify = |path: &Path| Command::new("systemd-analyze").arg("verify").arg(path).output();
        let Ok(verified) = verify(&path) else {
            // Without systemd there is nobody to ask; the keys are looked at all the same.
            return;
        };
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about_it: Vec<_> = said.lines().filter(|line| line.contains(self.name)).collect();
        assert_eq!((verified.status.success(), about_it), (true, Vec::<&str>::new()), "{said}");
        // It would say so otherwise.
        fs::write(&path, self.here().replace("TimeoutStopSec", "TimeoutStopSecs")).unwrap();
        let said = String::from_utf8(verify(&path).unwrap().stderr).unwrap();
        assert!(said.contains("Unknown key 'TimeoutStopSecs'"), "{said}");
    }
}

#[test]
fn the_orchestrators_fits_the_program() {
    let service = |key| ORCHESTRATOR.service(key);
    // It says that it is ready, that it is alive, and it ends its nats-server itself; see `process::stop`.
    assert_eq!([service("Type"), service("WatchdogSec"), service("KillMode")], ["notify", "30", "mixed"]);
    assert!(service("TimeoutStopSec").parse::<u32>().unwrap() > 5);
    // The exit code of an unusable configuration.
    assert_eq!(service("RestartPreventExitStatus"), "2");
    assert_eq!(service("WorkingDirectory"), "%S/os-upgrade");
    // The most connections that may be set, and more.
    assert!(service("LimitNOFILE").parse::<u32>().unwrap() > 10_000 + 256);
    // A user that files can be given to, and that has the data directory for its home.
    assert_eq!((service("User"), service("StateDirectory")), ("os-upgrade", "os-upgrade"));
    assert!(!ORCHESTRATOR.text.contains("DynamicUser"));
    let user = USER_MADE.replace("\\\n", "");
    let user = user.lines().map(str::trim).find(|line| line.starts_with("useradd ")).unwrap();
    assert!(user.contains(" --home-dir /var/lib/os-upgrade ") && user.ends_with(" os-upgrade"), "{user}");
    let program = programs::path(ORCHESTRATOR.program);
    let parsed = Command::new(program).args(ORCHESTRATOR.arguments()).arg("--help").output().unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}

#[test]
fn the_workers_fits_the_program() {
    let service = |key| WORKER.service(key);
    // dpkg goes on without it; and see `tests/system/debian.rs`.
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
        // It would be started otherwise, and wait for its server.
        command.arg("--help").output().unwrap()
    };
    assert!(start("nats://bus.example").status.success());
    // The directories that systemd makes are where the worker looks by itself.
    let help = String::from_utf8(start("nats://bus.example").stdout).unwrap();
    for directory in [service("StateDirectory"), service("CacheDirectory")] {
        assert_eq!(directory, "os-upgrade-worker");
    }
    for default in ["/var/lib/os-upgrade-worker", "/var/cache/os-upgrade-worker"] {
        assert!(help.contains(&format!("[default: {default}]")), "{default} in {help}");
    }
}

#[test]
fn systemd_understands_all_of_them() {
    for unit in [ORCHESTRATOR, WORKER] {
        unit.is_understood();
    }
}
