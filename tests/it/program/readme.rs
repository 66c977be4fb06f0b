//! The commands in the documentation work.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use harness::programs;
use harness::site::Site;
use tokio::io::AsyncWriteExt as _;

const README: &str = include_str!("../../../README.md");
const USAGE: &str = include_str!("../../../docs/usage.md");
const NIGHT: &str = include_str!("../../../docs/careful-night.md");
const CONTRIBUTING: &str = include_str!("../../../CONTRIBUTING.md");
const RELIABILITY: &str = include_str!("../../../docs/reliability.md");
const DOCUMENTS: [&str; 7] = [
    README,
    USAGE,
    CONTRIBUTING,
    RELIABILITY,
    include_str!("../../../ARCHITECTURE.md"),
    include_str!("../../../docs/benchmarks.md"),
    include_str!("../../../docs/debian.md"),
];
const SOAK: &str = include_str!("../../../.ci/soak");
const MAKEFILE: &str = include_str!("../../../Makefile");

/// The begin and end markers of a command's here-document.
const HERE_DOCUMENT: (&str, &str) = ("<<EOF", "EOF");

/// The commands in the `sh` blocks of `text`, with continued lines joined. A here-document is the last word of its command.
fn commands(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n"));
    let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let mut lines = joined.iter().flat_map(|block| block.lines());
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        let mut words = shlex::split(line).unwrap_or_default();
        if words.last().is_some_and(|word| word == HERE_DOCUMENT.0) {
            let given: Vec<&str> = lines.by_ref().take_while(|line| *line != HERE_DOCUMENT.1).collect();
            words.push(given.join("\n"));
        }
        commands.extend((!words.is_empty()).then_some(words));
    }
    commands
}

#[tokio::test]
async fn usage_commands_work_for_operators() {
    let site = Site::start().await;
    site.announce_rebooting("os-upgrade-debian", "h01").await;
    let rest = site.rest();
    harness::wait::eventually("the host is seen", async || rest.try_host("h01").await.map(drop)).await;

    let directory = tempfile::tempdir().unwrap();
    let url = format!("http://{}", site.orchestrator.address());
    let mut done = 0;
    for words in commands(USAGE).iter().filter(|words| words[0] == "os-upgrade") {
        // What comes after is the shell's.
        let is_argument = |word: &&String| ![">", HERE_DOCUMENT.0].contains(&word.as_str());
        let arguments: Vec<&String> = words[1..].iter().take_while(is_argument).collect();
        let given =
            words.get(arguments.len() + 2).filter(|_| words.iter().any(|word| word == HERE_DOCUMENT.0));
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        command.args(arguments).current_dir(directory.path()).stdin(Stdio::piped());
        command.env("OS_UPGRADE_URL", &url).env("XDG_CONFIG_HOME", directory.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A command that reads nothing may have ended.
        let _ = input.write_all(given.map_or("", |given| given).as_bytes()).await;
        drop(input);
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        done += 1;
    }
    assert_eq!(done, 18);
}

/// What the guide says to apply is applied, and what it says of `failed` holds: `config apply` warns of nothing else.
#[tokio::test]
async fn careful_night_is_applied() {
    let block = |language: &str| {
        let mut blocks = NIGHT.split("```").skip(1).step_by(2);
        blocks.find_map(|block| block.strip_prefix(language)).unwrap().to_owned()
    };
    let settings = format!("[site]\nauto-approve = true\n{}", block("toml\n"));
    let site = Site::start_with(&settings).await;
    for number in 1..=60 {
        site.announce_rebooting("os-upgrade-debian", &format!("h{number:02}")).await;
    }
    let rest = site.rest();
    harness::wait::eventually("the hosts are seen", async || rest.try_host("h60").await.map(drop)).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("night.yaml");
    std::fs::write(&file, block("yaml\n")).unwrap();
    let output = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR))
        .args(["config", "apply", "--yes", "-f"])
        .arg(&file)
        .env("OS_UPGRADE_URL", format!("http://{}", site.orchestrator.address()))
        .env("XDG_CONFIG_HOME", directory.path())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("keeps its slot until somebody has looked"), "{said}");
    let (_, config) = rest.get("/v1/config/os-upgrade").await;
    assert_eq!(config["rollout"]["max-failures"], "10%", "{config}");
}

#[test]
fn shown_arguments_are_known() {
    let mut commands = commands(USAGE);
    commands.extend(self::commands(NIGHT));
    let mut seen = BTreeSet::new();
    for words in &commands {
        let (name, arguments) = match words[0].rsplit('/').next().unwrap() {
            name @ ("os-upgrade" | "os-upgrade-worker") => (name, &words[1..]),
            _ => continue,
        };
        let named = arguments.iter().take_while(|word| !word.starts_with(['-', '>']));
        let help = Command::new(programs::path(name)).args(named).arg("--help").output().unwrap();
        assert!(help.status.success(), "{words:?}");
        let help = String::from_utf8(help.stdout).unwrap();
        for argument in arguments.iter().filter(|argument| argument.starts_with("--")) {
            assert!(help.contains(argument.as_str()), "{name} {} does not know {argument}", arguments[0]);
        }
        seen.insert(format!("{name} {}", arguments[0]));
    }
    assert_eq!(seen.len(), 16, "{seen:?}");
}

#[test]
fn named_make_targets_exist() {
    let is_target = |word: &str| MAKEFILE.lines().any(|line| line.starts_with(&format!("{word}:")));
    let mut named = BTreeSet::new();
    for text in DOCUMENTS {
        // In code: inline, or a line of a block.
        for code in text.split("`make ").skip(1).chain(text.split("\nmake ").skip(1)) {
            named.extend(code.split(|c: char| c != '-' && !c.is_ascii_lowercase()).next());
        }
    }
    named.extend(SOAK.split("make --no-print-directory ").skip(1).filter_map(|rest| rest.split(' ').next()));
    let unknown: Vec<&str> = named.iter().copied().filter(|word| !is_target(word)).collect();
    assert_eq!(unknown, [""; 0]);
    for target in ["demo", "lint", "test", "test-system", "soak"] {
        assert!(named.contains(target), "{named:?}");
    }
}
