//! The unit that is shipped: systemd understands all of it, and it starts the program as the program wants to be.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use os_upgrade_tests::programs;

const UNIT: &str = include_str!("../../config/os-upgrade.service");
const USERS: &str = include_str!("../../config/os-upgrade.sysusers");
const PROGRAM: &str = "/usr/local/bin/os-upgrade";

/// Every key with its section and its last value.
fn keys() -> BTreeMap<(&'static str, &'static str), &'static str> {
    let mut section = "";
    let mut keys = BTreeMap::new();
    for line in UNIT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.strip_suffix(']').unwrap();
        } else {
            let (key, value) = line.split_once('=').unwrap();
            keys.insert((section, key), value);
        }
    }
    keys
}

#[test]
fn it_fits_the_program() {
    let keys = keys();
    let service = |key| keys[&("Service", key)];
    // It says that it is ready, that it is alive, and it ends its nats-server itself; see the suite `stop`.
    assert_eq!([service("Type"), service("WatchdogSec"), service("KillMode")], ["notify", "30", "mixed"]);
    assert!(service("TimeoutStopSec").parse::<u32>().unwrap() > 5);
    // The exit code of an unusable configuration.
    assert_eq!(service("RestartPreventExitStatus"), "2");
    assert_eq!(service("WorkingDirectory"), "%S/os-upgrade");
    // The most connections that may be set, and more.
    assert!(service("LimitNOFILE").parse::<u32>().unwrap() > 10_000 + 256);
    // A user that files can be given to, and that has the data directory for its home.
    assert_eq!((service("User"), service("StateDirectory")), ("os-upgrade", "os-upgrade"));
    assert!(!keys.contains_key(&("Service", "DynamicUser")));
    let user = USERS.lines().find(|line| !line.starts_with('#')).unwrap();
    assert!(user.starts_with("u os-upgrade - ") && user.ends_with(" /var/lib/os-upgrade"), "{user}");
    let mut words = service("ExecStart").split(' ');
    assert_eq!(words.next(), Some(PROGRAM));
    let parsed =
        Command::new(programs::path(programs::ORCHESTRATOR)).args(words).arg("--help").output().unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}

#[test]
fn systemd_understands_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("os-upgrade.service");
    let program = programs::path(programs::ORCHESTRATOR);
    fs::write(&path, UNIT.replace(PROGRAM, program.to_str().unwrap())).unwrap();
    let verify = |path: &Path| Command::new("systemd-analyze").arg("verify").arg(path).output();
    let Ok(verified) = verify(&path) else {
        // Without systemd there is nobody to ask; the keys are looked at above all the same.
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let about_it: Vec<_> = said.lines().filter(|line| line.contains("os-upgrade.service")).collect();
    assert_eq!((verified.status.success(), about_it), (true, Vec::<&str>::new()), "{said}");
    // It would say so otherwise.
    fs::write(&path, UNIT.replace("WatchdogSec", "WatchdogSecs")).unwrap();
    let said = String::from_utf8(verify(&path).unwrap().stderr).unwrap();
    assert!(said.contains("Unknown key 'WatchdogSecs'"), "{said}");
}
