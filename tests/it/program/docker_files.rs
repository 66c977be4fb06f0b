//! `docker/` by the tools that read it, without a container engine.

use std::collections::BTreeMap;

use harness::docker::{repository, tool};
use serde_json::{Value, json};

#[test]
fn dockerfile_passes_hadolint() {
    let output = tool("hadolint").arg(repository().join("docker/Dockerfile")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn compose_services_have_no_rights_they_do_not_need() {
    let home = tempfile::tempdir().unwrap();
    let mut command = tool("docker-compose");
    command.arg("--file").arg(repository().join("docker/compose.yaml"));
    command.args(["--profile", "*", "config", "--format", "json"]);
    let output = command.env_clear().env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it warns of nothing");

    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut services: BTreeMap<String, Value> = serde_json::from_value(found["services"].clone()).unwrap();
    // It has no network, and gives files to the users that read them.
    assert_eq!(services.remove("setup").unwrap()["network_mode"], "none");
    for (name, service) in services {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]), "{name}");
        // Who reaches these ports sends a token in the clear: nobody but this machine does.
        for port in service["ports"].as_array().into_iter().flatten() {
            assert_eq!((&port["host_ip"], &port["target"]), (&json!("127.0.0.1"), &json!(8646)), "{name}");
        }
    }
}
