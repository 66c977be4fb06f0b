//! The system's time zone data: an instance works out windows by them, says which they are, and notices that they were
//! replaced.

use std::fs;
use std::path::Path;

use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const WINDOWS: &str = "/v1/state/os-upgrade/windows?count=1&from=2026-11-25T00:00:00Z";

/// Puts zone data of a release into `directory`, in which Vancouver is always this many hours behind UTC.
fn install(directory: &Path, version: &str, hours: i32) {
    let header = |version: u8| [b"TZif", &[version][..], &[0; 34], &[1, 0, 0, 0, 1]].concat();
    let kind = [&(-3_600 * hours).to_be_bytes()[..], &[0, 0], b"\0"].concat();
    let footer = format!("\n<-{hours:02}>{hours}\n");
    let data = [&header(b'2'), &kind, &header(b'2'), &kind, footer.as_bytes()].concat();
    fs::create_dir_all(directory.join("America")).expect("made");
    // As a package manager replaces files.
    for (name, data) in
        [("America/Vancouver", data), ("tzdata.zi", format!("# version {version}\n").into_bytes())]
    {
        let new = directory.join("new");
        fs::write(&new, data).expect("written");
        fs::rename(&new, directory.join(name)).expect("replaced");
    }
}

#[tokio::test]
async fn replaced_zone_data_move_windows() {
    let nats = NatsServer::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    install(directory.path(), "2998a", 8);
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.set_environment("TZDIR", directory.path().to_str().expect("text"));
    orchestrator.start_ready().await;
    orchestrator.await_leading().await;
    let config = json!({
        "worker-applications": [{"name": "a"}],
        "maintenance-windows": [
            {"days-of-week": "Saturday", "start-time": "01:30", "timezone": "America/Vancouver", "duration": "2h"}
        ],
    });
    let rest = &orchestrator.rest;
    let put = rest.call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
    assert_eq!(put.0, 201, "{put:?}");
    let opens = async || rest.get(WINDOWS).await.1["windows"][0]["start"].clone();
    assert_eq!(opens().await, json!("2026-11-28T09:30:00Z"));
    let zone_data = async || rest.get("/readyz").await.1["zone-data"].clone();
    assert_eq!(zone_data().await, json!({"version": "2998a", "source": "system"}));
    let cluster = async || rest.get("/v1/state/cluster").await.1;
    assert_eq!(cluster().await["instances"][0]["zone-data"], json!("2998a"));
    assert_eq!(cluster().await.get("warnings"), None::<&Value>);
    let (_, version, _) = orchestrator.run(&["version"], "").await;
    let from = format!("2998a, from {}", directory.path().display());
    assert!(version.contains(&format!("time zone data {from}")), "{version}");
    let (_, doctor, _) = orchestrator.command(&["doctor"]).await;
    // Of other zones there are no files.
    assert!(doctor.contains(&format!("warning  time zone data: {from}; ")), "{doctor}");

    // Older than what is compiled in, and old.
    install(directory.path(), "2019b", 9);
    let old =
        eventually("the older zone data", async || zone_data().await["old"].as_str().map(str::to_owned))
            .await;
    assert_eq!(zone_data().await["source"], json!("built-in"));
    assert_ne!(opens().await, json!("2026-11-28T10:30:00Z"));
    // Windows are right.
    assert_eq!(cluster().await.get("warnings"), None::<&Value>);
    eventually("a line in the log", async || orchestrator.log().contains(&old).then_some(())).await;
    let (_, doctor, _) = orchestrator.command(&["doctor"]).await;
    assert!(
        doctor.contains("warning  time zone data: ") && doctor.contains("has 2019b, which is older"),
        "{doctor}"
    );

    install(directory.path(), "2999f", 6);
    eventually("the new zone data", async || (opens().await == json!("2026-11-28T07:30:00Z")).then_some(()))
        .await;
    assert_eq!(zone_data().await, json!({"version": "2999f", "source": "system"}));
    assert_eq!(cluster().await.get("warnings"), None::<&Value>);
}
