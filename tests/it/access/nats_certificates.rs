//! A NATS that lets nobody in who shows no certificate of its authority: the orchestrator and its workers do.

use std::collections::BTreeMap;

use harness::authority::Authority;
use harness::host::{APPLICATION, Host};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use os_upgrade_credentials::Access;

#[tokio::test]
async fn orchestrator_and_workers_show_their_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (authority, stranger) = (Authority::new("site"), Authority::new("stranger"));
    let ca = authority.write(at, "ca");
    let [certificate, key] = authority.certify("127.0.0.1", at, "server");
    let nats = NatsServer::start_with(&format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        certificate.display(),
        key.display(),
        ca.display()
    ))
    .await;
    let url = nats.url().replace("nats://", "tls://");

    let is_let_in = async |shown: Option<[std::path::PathBuf; 2]>| {
        let (certificate, key) = shown.map(<(_, _)>::from).unzip();
        let access = Access { credentials: None, ca: Some(ca.clone()), certificate, key };
        access.options(&[]).unwrap().connect(&url).await.is_ok()
    };
    assert!(!is_let_in(None).await);
    assert!(!is_let_in(Some(stranger.certify("stranger", at, "stranger"))).await);
    assert!(is_let_in(Some(authority.certify("test", at, "test"))).await);

    let [certificate, key] = authority.certify("orchestrator", at, "orchestrator");
    let more = format!("ca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}");
    let mut orchestrator = Orchestrator::new(&url, &more);
    orchestrator.start_ready().await;
    let rest = orchestrator.rest.clone();
    rest.configure(APPLICATION).await;

    let [certificate, key] = authority.certify("h01", at, "h01");
    let files = [&ca, &certificate, &key].map(|path| path.display().to_string());
    let shown = ["--tls-ca", &files[0], "--tls-cert", &files[1], "--tls-key", &files[2]];
    let log = at.join("said");
    let mut host = Host::new(&url, &log, "h01").with_arguments(&shown);
    let mut nobody = Host::new(&url, &log, "h02").with_arguments(&shown[..2]);
    host.start();
    nobody.start();
    rest.await_scheduled(&["h01"]).await;
    let run = rest.ended(&rest.started().await).await;
    assert_eq!((run.result(), run.statuses()), (Some("completed"), BTreeMap::from([("h01", "upgraded")])));
    eventually("the other worker to say that it is not let in", async || {
        nobody.log().contains("NATS: ").then_some(())
    })
    .await;
    assert!(!nobody.log().contains("connected to NATS"), "{}", nobody.log());
}
