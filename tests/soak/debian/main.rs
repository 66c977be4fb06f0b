//! Upgrades of a Debian system to the next release, with Debian's own packages, killed at random moments:
//! `make test-debian ROUNDS=10`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and this is its output"
)]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use harness::debian::{CACHE, Tree, host};
use harness::nats_server::NatsServer;
use harness::random::Random;
use harness::rounds::Rounds;
use harness::worker::WorkerHost;

/// Upgrades a Debian system repeatedly, with its worker and all its processes killed at random moments, and compares the
/// result with an undisturbed upgrade. Differences are printed, and make the exit code 1.
///
/// It needs root, and the system that `make debian-tree` makes. `OS_UPGRADE_TEST_SEED` repeats the moments.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of upgrades with kills
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// The release to upgrade to
    #[arg(long, default_value = "trixie")]
    to: String,
}

/// The packages installed beside those of debootstrap: usual ones of servers, with services, users, alternatives and
/// triggers.
const PACKAGES: [&str; 8] =
    ["systemd", "openssh-server", "cron", "man-db", "python3", "ca-certificates", "rsyslog", "nginx-light"];
/// Kills of one upgrade. A worker that was killed ten times gives up.
const KILLS_MAX: u64 = 8;
/// How long an upgrade may take.
const PATIENCE: Duration = Duration::from_mins(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The result of an upgrade: a line for each package with its version and state, and for each file that differs from its
/// package's.
fn outcome(tree: &Tree) -> BTreeSet<String> {
    let format = "--showformat=${db:Status-Abbrev} ${binary:Package} ${Version}\\n";
    let packages = tree.must(&["dpkg-query", "--show", format]);
    // Its exit code is 1 where files differ.
    let verified = String::from_utf8(tree.run(&["dpkg", "--verify"]).stdout).unwrap();
    packages.lines().chain(verified.lines()).map(str::to_owned).collect()
}

/// The sources of a release: those that debootstrap used, with its updates.
fn sources(tree: &Tree, release: &str) -> String {
    let archive = tree.read("/etc/apt/archive");
    let archive = archive.split_whitespace().nth(1).unwrap();
    format!(
        "deb {archive} {release} main\ndeb {archive} {release}-updates main\n\
         deb {archive}-security {release}-security main\n"
    )
}

/// A system of the old release, prepared for the next one.
async fn prepared(to: &str) -> Tree {
    let mut tree = Tree::new();
    tree.mount_proc();
    tree.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
    tree.must(&["chmod", "755", "/usr/sbin/policy-rc.d"]);
    let archive = tree.read("/etc/apt/archive");
    tree.write("/etc/apt/sources.list", &archive);
    tree.must(&["apt-get", "--quiet=2", "update"]);
    let mut install = vec!["apt-get", "--quiet=2", "--assume-yes", "--no-install-recommends", "install"];
    install.extend(PACKAGES);
    tree.must(&install);
    tree.must(&["apt-get", "clean"]);
    tree.write("/etc/apt/sources.list", &sources(&tree, to));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &["--removals-max", "1000"]).await;
    host.start();
    let prepare = host.send("run-1", &host.prepare("")).await;
    let result = answer(&host, prepare).await;
    assert_eq!(result, "done", "prepare");
    drop(host);
    tree
}

async fn answer(host: &WorkerHost, command: u64) -> String {
    let start = Instant::now();
    loop {
        if let Some(result) = host.answered(command).await {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "no answer");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// dpkg's last step, as APT reports it.
fn last_step(host: &WorkerHost) -> String {
    let lines = host.lines("state/d1.upgrade.status");
    let mut steps = lines.iter().rev().filter(|line| line.starts_with("pmstatus:"));
    steps.find_map(|line| line.splitn(4, ':').nth(3)).unwrap_or("before the first package").to_owned()
}

/// Executes one upgrade with a kill after each of these times. Returns the system's result, the answer, and the steps at
/// which it was killed.
async fn upgrade(prepared: &Tree, kills: &[Duration]) -> (BTreeSet<String>, String, Vec<String>) {
    let mut tree = Tree::like(prepared);
    tree.mount_proc();
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &["--removals-max", "1000"]).await;
    host.start();
    let prepare = host.send("run-1", &host.prepare("")).await;
    assert_eq!(answer(&host, prepare).await, "done", "prepare");
    let upgrade = host.send("run-1", &host.upgrade()).await;
    let mut killed = Vec::new();
    for after in kills {
        // Timed from the first change of the system, which after a kill is dpkg --configure.
        let start = Instant::now();
        while !host.path("state/d1.upgrade").exists() && host.answered(upgrade).await.is_none() {
            assert!(start.elapsed() < PATIENCE, "nothing is begun: {}", host.log());
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        tokio::time::sleep(*after).await;
        if host.answered(upgrade).await.is_some() {
            break;
        }
        host.kill();
        tree.kill_all();
        killed.push(last_step(&host));
        host.start();
    }
    let result = answer(&host, upgrade).await;
    if result != "done" && result != "reboot-required" {
        println!("{}", host.log());
    }
    let audit = tree.audit();
    assert!(audit.is_empty(), "{audit}");
    (outcome(&tree), result, killed)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut random = Random::from_environment();
    let prepared = prepared(&arguments.to).await;
    let downloaded = std::fs::read_dir(prepared.path(CACHE).join("archives")).unwrap().count();
    println!("{downloaded} files downloaded");
    let start = Instant::now();
    let (reference, result, _) = upgrade(&prepared, &[]).await;
    let whole = u64::try_from(start.elapsed().as_millis()).unwrap();
    println!("left alone: {result} after {} s", whole / 1000);
    let mut kills = 0;
    let mut rounds = Rounds::default();
    for round in 1..=arguments.rounds {
        let planned = 3 + random.below(KILLS_MAX - 2);
        // Together they add up to the time of a whole upgrade, so that its end is reached about as often as its beginning.
        let moments: Vec<Duration> = (0..planned).map(|_| random.millis(20, 2 * whole / planned)).collect();
        let start = Instant::now();
        let (outcome, result, killed) = upgrade(&prepared, &moments).await;
        kills += killed.len();
        println!(
            "round {round}: {result} after {} s and {} kills ({})",
            start.elapsed().as_secs(),
            killed.len(),
            killed.join(", ")
        );
        let good = result == "done" || result == "reboot-required";
        let only = |when: &str, lines: Vec<&String>| -> Vec<String> {
            lines.into_iter().map(|line| format!("only when {when}: {line}")).collect()
        };
        let mut wrong = only("killed", outcome.difference(&reference).collect());
        wrong.extend(only("left alone", reference.difference(&outcome).collect()));
        wrong.extend((!good).then(|| "it failed".to_owned()));
        rounds.record(&wrong);
    }
    println!("{kills} kills");
    rounds.exit_code()
}
