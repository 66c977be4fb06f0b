//! A NATS that demands client certificates of its authority, which the orchestrator and its workers present.

use std::collections::BTreeMap;

use harness::authority::Authority;
use harness::host::{APPLICATION, Host};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use os_upgrade_credentials::Access;

#[tokio::test]
async fn client_certificates_admit_orchestrator_and_workers() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let (authority, stranger) = (Authority::new("site"), Authority::new("stranger"));
    let ca = authority.write(at, "ca");
    let [certificate, key] = authority.certify_into("127.0.0.1", at, "server");
    let nats = NatsServer::start_with(&format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        certificate.display(),
        key.display(),
        ca.display()
    ))
    .await;
    let url = nats.url().replace("nats://", "tls://");

    let is_admitted = async |shown: Option<[std::path::PathBuf; 2]>| {
        let (certificate, key) = shown.map(<(_, _)>::from).unzip();
        let access = Access { credentials: None, ca: Some(ca.clone()), certificate, key };
        access.options(&[]).unwrap().connect(&url).await.is_ok()
    };
    assert!(!is_admitted(None).await);
    assert!(!is_admitted(Some(stranger.certify_into("stranger", at, "stranger"))).await);
    assert!(is_admitted(Some(authority.certify_into("test", at, "test"))).await);

    let [certificate, key] = authority.certify_into("orchestrator", at, "orchestrator");
    let more = format!("ca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}");
    let mut orchestrator = Orchestrator::new(&url, &more);
    orchestrator.start_ready().await;
    let rest = orchestrator.rest.clone();
    rest.configure(APPLICATION).await;

    let [certificate, key] = authority.certify_into("h01", at, "h01");
    let files = [&ca, &certificate, &key].map(|path| path.display().to_string());
    let shown = ["--tls-ca", &files[0], "--tls-cert", &files[1], "--tls-key", &files[2]];
    let log = at.join("said");
    let mut host = Host::new(&url, &log, "h01").with_arguments(&shown);
    let mut without_certificate = Host::new(&url, &log, "h02").with_arguments(&shown[..2]);
    host.start();
    without_certificate.start();
    rest.await_scheduled(&["h01"]).await;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!((run.result(), run.statuses()), (Some("completed"), BTreeMap::from([("h01", "upgraded")])));
    eventually("the other worker to report that it was rejected", async || {
        without_certificate.log().contains("NATS: ").then_some(())
    })
    .await;
    assert!(!without_certificate.log().contains("connected to NATS"), "{}", without_certificate.log());
}
