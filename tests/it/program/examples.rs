//! Every example in the help of `os-upgrade` is run, in the order of the help, against a site with two hosts.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use harness::host::APPLICATION;
use harness::orchestrator::Orchestrator;
use harness::programs;
use harness::site::Site;
use harness::wait::{PATIENCE, eventually};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Commands whose examples other tests run, with other arguments.
const ELSEWHERE: [(&str, &str); 5] = [
    ("serve", "by each test"),
    ("dev", "by those of `dev`"),
    ("nats-config revoke", "by those of the rights in NATS"),
    ("nats-config push", "by those of the rights in NATS"),
    ("restore", "by those of recovery"),
];

/// Examples that are refused in this site: how they end, and why.
const REFUSED: [(&str, i32, &str); 23] = [
    ("run start --failed", 5, "no host that can take part has failed or timed out"),
    ("run start web", 5, "none of the hosts that match takes part now"),
    ("run logs last h01", 1, "its commands printed nothing"),
    ("run cancel", 5, "no run is active"),
    ("run give-up", 5, "no run is active"),
    ("config edit", 5, "the file was left as it was"),
    ("hosts remove h01", 5, "h01 is running"),
    ("hosts uncordon", 5, "the node of h01 is not cordoned by this site"),
    ("drain --dry-run", 1, "h01 is not a node of a Kubernetes cluster"),
    ("reboot-queue show", 1, "has no entry"),
    ("reboot-queue cancel 7", 5, "no entry 7"),
    ("reboot-queue give-up", 5, "no entry 7"),
    ("reboot-queue add h01 h02", 5, "h01 is not approved, or was withdrawn"),
    ("reboot-queue add nodes.txt", 5, "h99 has announced no worker"),
    ("reboot-queue add - ", 5, "a, secret have announced no worker"),
    ("reboot-queue add --file", 5, "h99 has announced no worker"),
    ("providers show app", 1, "there is no provider app"),
    ("providers poll app", 5, "there is no provider app"),
    ("providers test app", 5, "there is no provider app"),
    ("providers rotate-token app", 5, "there is no provider app"),
    ("desired resume h01", 5, "h01 neither is to have any configuration"),
    ("units start ping.service --wait", 1, "no machine can have ping.service now"),
    ("lock forget", 5, "are not reclaimed"),
];

/// Arguments that these commands need where nobody answers, or where the API is not at its usual address.
const MORE: [(&str, &str); 8] = [
    ("config set rollout", "--yes"),
    ("config set worker", "--yes"),
    ("config set maintenance", "--yes"),
    ("config rollback", "--yes"),
    ("config edit", "--yes"),
    ("hosts approve web-*", "--yes"),
    ("lock run --group", "--url=URL"),
    ("lock unlock", "--url=URL"),
];

/// The examples in the help of the command `words` and of those below it.
async fn examples(program: &Orchestrator, words: &[String]) -> Vec<String> {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let (code, help, _) = program.run(&arguments, "").await;
    assert_eq!(code, Some(0), "{words:?}");
    let section = |head: &str| -> Vec<String> {
        let lines = help.lines().skip_while(|line| *line != head).skip(1);
        lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim_start().to_owned()).collect()
    };
    let mut found = section("Examples:");
    for line in section("Commands:") {
        let name = line.split_whitespace().next().unwrap().to_owned();
        if name != "help" {
            found.extend(Box::pin(examples(program, &[words, &[name]].concat())).await);
        }
    }
    found
}

/// Waits until no run is active.
async fn await_idle(site: &Site) {
    let idle = async || {
        let (_, state) = site.rest().get("/v1/state/os-upgrade?fields=status").await;
        (state["status"] == "idle").then_some(())
    };
    eventually("the run to end", idle).await;
}

/// Starts one run after the other, for a while.
async fn keep_running(site: &Site) {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        site.rest().trigger("").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a command that goes on until it is stopped, up to its first line.
async fn first_line(arguments: &[String], program: &Orchestrator, url: &str) {
    let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(arguments).env("OS_UPGRADE_URL", url).current_dir(program.directory());
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await;
    assert!(!line.unwrap().unwrap_or_default().is_empty(), "{arguments:?}");
}

#[tokio::test]
async fn every_example_does_what_it_shows() {
    let mut site = Site::start_with("[fleet-lock.groups]\ndefault = 1\nworkers = 1").await;
    let _hosts = site.hosts(2).await;
    site.announce("os-upgrade-other", "web-1").await;
    let first = site.rest().start_run().await;
    site.rest().await_end(&first).await;
    let url = format!("http://{}", site.orchestrator.address());

    let directory = site.orchestrator.directory().to_owned();
    for name in ["backup", "apt-get"] {
        let file = directory.join(name);
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    fs::write(directory.join("nodes.txt"), "h99\n").unwrap();
    for unit in ["ping.service", "pong.service", "web@.service"] {
        fs::write(directory.join(unit), "[Service]\nExecStart=/bin/sleep inf\n").unwrap();
    }
    for (name, value) in [
        ("OS_UPGRADE_URL", url.as_str()),
        ("XDG_CONFIG_HOME", directory.to_str().unwrap()),
        ("PATH", &path),
        ("VISUAL", "true"),
    ] {
        site.orchestrator.set_environment(name, value);
    }
    let program = &site.orchestrator;
    let (_, history, _) = program.run(&["config", "history", "-o", "json"], "").await;
    let history: Value = serde_json::from_str(&history).unwrap();
    let revision = history["items"][0]["sequence"].to_string();

    let mut failed = Vec::new();
    let mut key = String::new();
    let mut found = examples(program, &[]).await;
    let mut known = BTreeSet::new();
    found.retain(|example| known.insert(example.clone()));
    assert!(found.len() > 100, "{found:?}");
    for example in found {
        let line = example.strip_prefix("os-upgrade ").unwrap();
        if ELSEWHERE.iter().any(|(command, _)| line.starts_with(command)) {
            continue;
        }
        await_idle(&site).await;
        let (line, file) = line.split_once(" > ").unwrap_or((line, ""));
        let mut arguments = shlex::split(line).unwrap();
        let plain = arguments.join(" ");
        let more = MORE.iter().filter(|(command, _)| plain.starts_with(command)).map(|(_, more)| *more);
        let at = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
        arguments.splice(at..at, more.map(ToOwned::to_owned).collect::<Vec<_>>());
        let hosts = ["https://upgrade.example:8646", "https://b.example:8646", "http://lock.example:8080"];
        for word in &mut arguments {
            *word = word.replace("http://127.0.0.1:8646", &url).replace("=URL", &format!("={url}"));
            *word = hosts.iter().fold(word.clone(), |word, host| word.replace(host, &url));
            *word = word.replace("/etc/os-upgrade/os-upgrade.toml", "os-upgrade.toml");
            *word = word.replace("019aa3f0-0000", &first[..13]).replace("os-upgrade-debian", APPLICATION);
            if word == "12" {
                word.clone_from(&revision);
            }
        }
        // The site has no TLS.
        arguments.retain(|word| !["--ca", "ca.pem"].contains(&word.as_str()));
        if arguments.iter().any(|word| ["--watch", "--follow"].contains(&word.as_str()))
            && !line.starts_with("run start")
        {
            tokio::select! {
                () = first_line(&arguments, program, &url) => {}
                () = keep_running(&site) => panic!("`{example}` prints nothing"),
            }
            continue;
        }
        let input = if line == "strongbox unseal" { key.clone() } else { "a secret\n".to_owned() };
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = tokio::time::timeout(PATIENCE, program.run(&words, &input)).await;
        let (code, printed, stderr) = ran.unwrap_or_else(|_| panic!("`{example}` does not end"));
        let unquoted = line.replace('\'', "");
        let refused = REFUSED.iter().find(|(command, ..)| unquoted.starts_with(command));
        let (expected, why) = refused.map_or((0, ""), |(_, code, why)| (*code, *why));
        if code != Some(expected) || !stderr.contains(why) {
            failed.push(format!("{example}: {code:?} and not {expected}: {printed} {stderr}"));
        }
        if line == "strongbox key" {
            key.clone_from(&printed);
        }
        if !file.is_empty() && !file.contains('/') {
            fs::write(directory.join(file), printed).unwrap();
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let commands = ELSEWHERE.iter().map(|(command, _)| *command);
    let commands = commands.chain(REFUSED.iter().map(|(command, ..)| *command));
    for command in commands.chain(MORE.iter().map(|(command, _)| *command)) {
        let is_used =
            |example: &String| example.replace('\'', "").starts_with(&format!("os-upgrade {command}"));
        assert!(known.iter().any(is_used), "no example begins with {command:?}");
    }
}
