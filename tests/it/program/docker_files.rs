//! Checks of `docker/` without a container engine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use harness::docker::{repository, tool};
use harness::programs;
use os_upgrade_settings as settings;
use serde_json::{Value, json};

#[test]
fn dockerfile_passes_hadolint() {
    let output = tool("hadolint").arg(repository().join("docker/Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn dockerfile_copies_existing_files() {
    let text = fs::read_to_string(repository().join("docker/Dockerfile")).unwrap();
    let ignored = fs::read_to_string(repository().join(".dockerignore")).unwrap();
    let copies = text.lines().filter_map(|line| line.strip_prefix("COPY "));
    let from_repository = copies.filter(|words| !words.starts_with("--from="));
    let sources: Vec<&str> =
        from_repository.filter_map(|words| words.split(' ').find(|word| !word.starts_with("--"))).collect();
    assert!(!sources.is_empty());
    for source in sources {
        assert!(repository().join(source).exists(), "{source}");
        assert!(!ignored.lines().any(|line| source.starts_with(line)), "{source}");
    }
    for script in [".ci/worker-static", "docker/setup", "docker/demo-host"] {
        let mode = fs::metadata(repository().join(script)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{script} can be run");
    }
}

fn compose_services() -> BTreeMap<String, Value> {
    let home = tempfile::tempdir().unwrap();
    let mut command = tool("docker-compose");
    command.arg("--file").arg(repository().join("docker/compose.yaml"));
    command.args(["--profile", "*", "config", "--format", "json"]);
    let output = command.env_clear().env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it warns of nothing");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(found["services"].clone()).unwrap()
}

/// An unknown variable would be silently ignored.
#[test]
fn compose_sets_known_variables() {
    let help = |program: &str, command: &str| {
        let output = Command::new(programs::path(program)).args([command, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let worker = help(programs::WORKER, "exec");
    let settings: Vec<String> =
        settings::SECTIONS.iter().flat_map(|section| section.keys).map(settings::Key::variable).collect();
    let mut seen = 0;
    for (name, service) in compose_services() {
        let image = service["image"].as_str().unwrap();
        for variable in service["environment"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let known = match image {
                "os-upgrade" => settings.contains(variable),
                _ => worker.contains(&format!("[env: {variable}")),
            };
            assert!(known, "{name}: {variable}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn compose_services_have_minimal_rights() {
    let mut services = compose_services();
    // It has no network, and may change owners, because it gives files to the users that read them.
    assert_eq!(services.remove("setup").unwrap()["network_mode"], "none");
    for (name, service) in services {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]), "{name}");
        // Tokens are sent to these ports in the clear, so only this machine may reach them.
        for port in service["ports"].as_array().into_iter().flatten() {
            assert_eq!((&port["host_ip"], &port["target"]), (&json!("127.0.0.1"), &json!(8646)), "{name}");
        }
    }
}
