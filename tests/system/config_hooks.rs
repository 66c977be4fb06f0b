//! What is said between the site and providers of kind `hooks`, read by programs of others: flightctl's own model of a device, and Ignition.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::hook_server::{Given, HookServer, Script};
use harness::host::APPLICATION;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const FLIGHTCTL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/flightctl-client");

/// Reads a device's metadata from standard input as flightctl's client does, and prints what it has understood.
const READ_METADATA: &str = "
import json, sys
from flightctl.models.object_meta import ObjectMeta
print(json.dumps(ObjectMeta.from_json(sys.stdin.read()).to_dict(), default=str))
";

/// What a program prints that reads `input`. It must succeed.
fn output_of(command: &mut Command, input: &str) -> String {
    let shown = format!("{command:?}");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{shown}: {error}: run `make test-system`"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}: {stderr}\n{input}");
    String::from_utf8(output.stdout).unwrap()
}

/// The metadata as flightctl's client reads them.
fn read_by_flightctl(metadata: &Value) -> Value {
    assert!(
        Path::new(FLIGHTCTL).join("flightctl").is_dir(),
        "flightctl-client is missing: run `make test-system`"
    );
    let mut python = Command::new("python3");
    python.args(["-c", READ_METADATA]).env("PYTHONPATH", FLIGHTCTL);
    serde_json::from_str(&output_of(&mut python, &metadata.to_string())).unwrap()
}

#[tokio::test]
async fn devices_and_configurations_are_what_others_read() {
    let (site, server, root) = (Site::start().await, HookServer::start().await, tempfile::tempdir().unwrap());
    let path = root.path().join("app.conf");
    let Given::Configuration(ignition) = Given::ignition(path.to_str().unwrap(), 0o640, "password=secret\n")
    else {
        unreachable!("it is a configuration");
    };
    output_of(Command::new("ignition-validate").arg("-"), &ignition.to_string());
    server.usually(Script::of(Given::Configuration(ignition)));
    let config = json!({
        "worker-applications": [{ "name": APPLICATION }],
        "config-providers": [{ "name": "app", "kind": "hooks", "url": server.url() }],
    });
    let (status, answer) = site.rest().call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
    assert!(status < 300, "{answer}");
    let root = root.path().to_str().unwrap();
    let mut host = site.host("h01").with_arguments(&["--config-root", root, "--label", "hall=1"]);
    host.start();
    let told = server.await_told("ON_FLEET_JOIN", "h01", 0).await;
    let metadata = &told["device_metadata"];
    let mut read = read_by_flightctl(metadata);
    // It prints times in another form.
    read["creationTimestamp"].clone_from(&metadata["creationTimestamp"]);
    assert_eq!(read, *metadata, "a member is unknown to flightctl, or has another type");
    assert_eq!(metadata["labels"], json!({ "hall": "1" }));
    eventually("the file", async || {
        (std::fs::read_to_string(&path).ok().as_deref() == Some("password=secret\n")).then_some(())
    })
    .await;
}
