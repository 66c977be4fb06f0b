//! What keeps an instance from starting, or from going on: said in one line, or never passed over.

use std::fs;

use os_upgrade_tests::nats_server::NatsServer;
use os_upgrade_tests::orchestrator::Orchestrator;
use os_upgrade_tests::site::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Starts an instance that cannot start: its exit code and what it says, without its log.
async fn failed(mut orchestrator: Orchestrator) -> (Option<i32>, Vec<String>) {
    orchestrator.start();
    let (code, output) = orchestrator.exited().await;
    let is_logged = |line: &str| line.starts_with(|first: char| first.is_ascii_digit());
    let said = output.lines().filter(|line| !is_logged(line)).map(str::to_owned).collect();
    (code, said)
}

fn line(text: String) -> (Option<i32>, Vec<String>) {
    (Some(1), vec![text])
}

#[tokio::test]
async fn every_error_of_a_configuration_is_said_at_once_and_nothing_is_made() {
    let more = "[site]\nname = \"\"\ntimezon = \"UTC\"\n[fleet-lock]\non-failure = \"keep\"\n[bus]\n";
    let mut orchestrator = Orchestrator::new("nats://127.0.0.1:4222", more);
    orchestrator.start();
    let (code, said) = orchestrator.exited().await;
    let expected = r#"error: os-upgrade.toml:6:8: site.name: expected a name, found "": a name must not be empty
error: os-upgrade.toml:7:1: unknown key "timezon" in [site]; did you mean "timezone"?
error: os-upgrade.toml:9:14: fleet-lock.on-failure: expected "hold" or "release", found "keep"
error: os-upgrade.toml:10:2: unknown section [bus]; there are [site], [api], [api.tls], [api.oidc], [nats], [strongbox], [store], [fleet-lock]
"#;
    assert_eq!((code, said.as_str()), (Some(2), expected));
    let entries = fs::read_dir(orchestrator.directory()).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["log", "os-upgrade.toml"]);
}

#[tokio::test]
async fn a_taken_port_is_one_line() {
    let nats = NatsServer::start().await;
    let orchestrator = Orchestrator::new(&nats.url(), "");
    let address = orchestrator.address();
    let _taken = TcpListener::bind(address).await.expect("a free port");
    let text = format!("error: cannot listen on {address}: Address already in use (os error 98)");
    assert_eq!(failed(orchestrator).await, (Some(2), vec![text]));
}

#[tokio::test]
async fn a_file_for_the_lock_server_that_is_not_there_is_one_line() {
    let nats = NatsServer::start().await;
    let more = "[fleet-lock]\nurl = \"https://u:secret@h\"\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    let text = "error: cannot use the lock server: cannot read c.pem, the `certificate` of [fleet-lock]: \
                No such file or directory (os error 2)";
    assert_eq!(failed(Orchestrator::new(&nats.url(), more)).await, (Some(2), vec![text.to_owned()]));
}

#[tokio::test]
async fn a_store_that_is_a_file_is_one_line() {
    let nats = NatsServer::start().await;
    let orchestrator = Orchestrator::new(&nats.url(), "");
    fs::write(orchestrator.directory().join("data"), "mine").expect("written");
    let text = "error: cannot use the data directory data: File exists (os error 17)";
    assert_eq!(failed(orchestrator).await, line(text.to_owned()));
}

#[tokio::test]
async fn a_store_that_is_something_else_is_one_line_and_is_left_alone() {
    let nats = NatsServer::start().await;
    for content in ["not a database, but longer than the header of one would be".repeat(20), String::new()] {
        let orchestrator = Orchestrator::new(&nats.url(), "");
        let data = orchestrator.directory().join("data");
        let store = orchestrator.store_file();
        if content.is_empty() {
            fs::create_dir_all(&store).expect("made");
        } else {
            fs::create_dir(&data).expect("made");
            fs::write(&store, &content).expect("written");
        }
        let (code, said) = failed(orchestrator).await;
        assert_eq!((code, said.len()), (Some(1), 1), "{said:?}");
        assert!(said[0].starts_with("error: "), "{said:?}");
        assert!(said[0].contains("data/"), "it names the file: {said:?}");
    }
}

#[tokio::test]
async fn a_data_directory_in_use_is_one_line() {
    let site = Site::start().await;
    let second = Orchestrator::new(&site.nats.url(), "");
    let data = site.orchestrator.directory().join("data");
    std::os::unix::fs::symlink(&data, second.directory().join("data")).expect("linked");
    let text = "error: the data directory data is in use by another orchestrator";
    assert_eq!(failed(second).await, line(text.to_owned()));
    // The one that has it is not disturbed.
    site.orchestrator.ready().await;
}

#[tokio::test]
async fn a_bus_that_is_not_there_is_one_line() {
    let mut nats = NatsServer::start().await;
    let url = nats.url();
    nats.kill();
    let (code, said) = failed(Orchestrator::new(&url, "")).await;
    assert_eq!((code, said.len()), (Some(1), 1), "{said:?}");
    assert!(said[0].starts_with(&format!("error: cannot connect to NATS at {url}: ")), "{said:?}");
}

/// A server that says it is this version, and answers every ping.
async fn fake_nats(version: &str) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let info = format!(
        "INFO {{\"server_id\":\"S\",\"server_name\":\"old\",\"version\":\"{version}\",\"go\":\"go\",\"host\":\"{}\",\
         \"port\":{},\"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}}\r\n",
        address.ip(),
        address.port(),
    );
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let _ = stream.write_all(info.as_bytes()).await;
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                if buffer[..read].windows(4).any(|word| word == b"PING") {
                    let _ = stream.write_all(b"PONG\r\n").await;
                }
            }
        }
    });
    (format!("nats://{address}"), task)
}

#[tokio::test]
async fn a_bus_that_is_too_old_is_one_line() {
    let (url, server) = fake_nats("2.9.0").await;
    let text = format!("error: the nats-server at {url} has version 2.9.0; at least 2.11 is needed");
    assert_eq!(failed(Orchestrator::new(&url, "")).await, line(text));
    server.abort();
}

#[tokio::test]
async fn the_store_of_another_site_is_one_line() {
    let mut site = Site::start().await;
    site.orchestrator.terminate().await;
    let second = Orchestrator::new(&site.nats.url(), "[site]\nname = \"other\"");
    let data = site.orchestrator.directory().join("data");
    std::os::unix::fs::symlink(&data, second.directory().join("data")).expect("linked");
    let (code, said) = failed(second).await;
    assert_eq!((code, said.len()), (Some(1), 1), "{said:?}");
    assert!(said[0].contains("other"), "{said:?}");
}
