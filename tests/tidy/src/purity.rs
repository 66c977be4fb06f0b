//! The crates that decide are pure: neither they nor their dependencies have a clock, randomness, I/O, logging or tasks.

use std::process::Command;

use crate::workspace;

/// The crates that decide, with their folders.
const PURE: [(&str, &str); 8] = [
    ("os-upgrade-calendar", "orchestrator/calendar"),
    ("os-upgrade-console", "orchestrator/console"),
    ("os-upgrade-kernel", "orchestrator/kernel"),
    ("os-upgrade-provider-rules", "orchestrator/provider-rules"),
    ("os-upgrade-scheduler", "orchestrator/scheduler"),
    ("os-upgrade-shell", "orchestrator/shell"),
    ("os-upgrade-systems", "worker-sdk/systems"),
    ("os-upgrade-worker-rules", "worker-sdk/rules"),
];

/// Crates that none of them may depend on, directly or indirectly.
const BANNED: [&str; 12] = [
    "async-nats",
    "async-std",
    "axum",
    "fastrand",
    "getrandom",
    "log",
    "rand",
    "reqwest",
    "smol",
    "sqlx",
    "tokio",
    "tracing",
];

/// Impure parts of the standard library, chrono and the language.
const BANNED_WORDS: [&str; 7] =
    ["::now()", ".await", "std::env::", "std::fs", "std::net", "std::process", "std::thread"];

/// The normal dependencies of `package`, direct and indirect, without procedural macros, which run at build time.
fn dependencies(package: &str) -> Vec<String> {
    // Offline: building this test has fetched everything needed.
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
        ])
        .arg(package)
        .current_dir(workspace::directory())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(ToOwned::to_owned).collect()
}

#[test]
fn no_dependency_has_effects() {
    for (package, _) in PURE {
        let dependencies = dependencies(package);
        assert!(dependencies.iter().any(|name| name == "serde"), "{package}: {dependencies:?}");
        let banned = |name: &&String| {
            BANNED.iter().any(|banned| *name == banned || name.starts_with(&format!("{banned}-")))
        };
        let found: Vec<&String> = dependencies.iter().filter(banned).collect();
        assert!(found.is_empty(), "{package} depends on {found:?}");
    }
}

#[test]
fn no_source_has_effects() {
    let sources = workspace::sources();
    for (package, folder) in PURE {
        let own = || sources.iter().filter(|(path, _)| path.starts_with(format!("{folder}/src")));
        assert!(own().next().is_some(), "{package} has no source");
        for (path, source) in own() {
            let found: Vec<&str> = BANNED_WORDS.into_iter().filter(|word| source.contains(word)).collect();
            assert!(found.is_empty(), "{package}: {} has {found:?}", path.display());
        }
    }
}
