//! The client against a real TLS server on loopback, with certificate authorities made for each test.

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use os_upgrade_conformance as conformance;
use os_upgrade_kernel::{LockOutcome, NoAnswer};
use os_upgrade_protocol::GroupName;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::Settings;
use os_upgrade_test_site::authority::Authority;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::test_server::{TlsServer, serve_tls};

/// A lock server that grants everything and records the credentials that clients send.
struct Server {
    server: TlsServer,
    shown: Arc<Mutex<Vec<Option<String>>>>,
}

impl Server {
    /// Its certificate is from `authority`. If `clients` is given, it requires client certificates from that authority.
    async fn start(authority: &Authority, clients: Option<&Authority>) -> Self {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let router = Router::new().fallback(grant).with_state(Arc::clone(&shown));
        let server = serve_tls(router, authority, clients).await;
        Self { server, shown }
    }
}

async fn grant(State(shown): State<Arc<Mutex<Vec<Option<String>>>>>, headers: HeaderMap) {
    let authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    shown.lock().unwrap().push(authorization);
}

/// Settings for a server, with files of these contents.
fn settings(
    directory: &TempDir,
    url: &str,
    ca: Option<&str>,
    certificate: Option<(&str, &str)>,
) -> FleetLock {
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let mut settings = Settings::default().fleet_lock;
    settings.url = Some(url.parse().unwrap());
    settings.ca = ca.map(|pem| file("ca.pem", pem));
    settings.certificate = certificate.map(|(pem, _)| file("client.pem", pem));
    settings.key = certificate.map(|(_, key)| file("client.key", key));
    settings
}

async fn ask(settings: &FleetLock) -> LockOutcome {
    let client = FleetLockClient::from_settings(settings).unwrap().unwrap();
    client.lock(&GroupName::new("default").unwrap(), "h01").await
}

fn unreachable(outcome: &LockOutcome) -> &str {
    let LockOutcome::Unreachable { why: NoAnswer::NotSent { detail } | NoAnswer::Failed { detail } } =
        outcome
    else {
        panic!("{outcome:?}")
    };
    detail
}

#[tokio::test]
async fn untrusted_servers_get_no_credentials() {
    let (ours, other) = (Authority::new("one"), Authority::new("other"));
    let server = Server::start(&ours, None).await;
    let directory = tempfile::tempdir().unwrap();
    let url = format!("https://user:pa%3Ass@{}/base/", server.server.address);
    let both = other.pem.clone() + &ours.pem;
    for ca in [&ours.pem, &both] {
        assert_eq!(ask(&settings(&directory, &url, Some(ca), None)).await, LockOutcome::Granted);
    }
    assert_eq!(*server.shown.lock().unwrap(), vec![Some("Basic dXNlcjpwYTpzcw==".to_owned()); 2]);
    for ca in [Some(other.pem.as_str()), None] {
        // Without `ca` the system's authorities are trusted, if there are any.
        let settings = settings(&directory, &url, ca, None);
        let Ok(client) = FleetLockClient::from_settings(&settings) else {
            assert_eq!(ca, None);
            continue;
        };
        let outcome = client.unwrap().lock(&GroupName::new("default").unwrap(), "h01").await;
        let detail = unreachable(&outcome);
        assert!(detail.ends_with("its certificate is from an authority that is not trusted"), "{detail}");
        assert!(!detail.contains("user") && !detail.contains("pa%3Ass"), "{detail}");
        assert!(!format!("{settings:?}").contains("pa%3Ass"), "{settings:?}");
    }
    // Nothing was sent while the server was not trusted.
    assert_eq!(server.shown.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn client_certificate_is_presented() {
    let (servers, clients) = (Authority::new("one"), Authority::new("other"));
    let server = Server::start(&servers, Some(&clients)).await;
    let directory = tempfile::tempdir().unwrap();
    let url = format!("https://{}", server.server.address);
    let (certificate, key) = clients.certify("orchestrator");
    let shown = settings(&directory, &url, Some(&servers.pem), Some((&certificate, &key)));
    assert_eq!(ask(&shown).await, LockOutcome::Granted);

    let none = ask(&settings(&directory, &url, Some(&servers.pem), None)).await;
    assert!(unreachable(&none).ends_with("it requires a certificate"), "{none:?}");
    let (certificate, key) = servers.certify("orchestrator");
    let another = settings(&directory, &url, Some(&servers.pem), Some((&certificate, &key)));
    let another = ask(&another).await;
    assert!(unreachable(&another).ends_with("it does not accept the certificate"), "{another:?}");
    assert_eq!(server.shown.lock().unwrap().len(), 1);

    // One file for both, with a chain: no certificate is presented twice.
    let (certificate, key) = clients.certify("orchestrator");
    let whole = format!("{certificate}{key}{}", clients.pem);
    let both = settings(&directory, &url, Some(&servers.pem), Some((&whole, &whole)));
    assert_eq!(ask(&both).await, LockOutcome::Granted);
    assert_eq!(*server.server.chains.lock().unwrap(), [1, 2]);
}

#[test]
fn unusable_files_are_named_with_their_setting() {
    let authority = Authority::new("one");
    let (certificate, key) = authority.certify("orchestrator");
    let (_, other_key) = authority.certify("orchestrator");
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let (ca, certificate, key) = (authority.pem.as_str(), certificate.as_str(), key.as_str());
    for (ca, certificate, expected) in [
        (Some("no PEM"), None, "ca.pem, the `ca` of [fleet-lock], holds no certificate in PEM"),
        (Some(key), None, "ca.pem, the `ca` of [fleet-lock], holds no certificate in PEM"),
        (Some(damaged), None, "ca.pem, the `ca` of [fleet-lock], holds no usable authority: "),
        (Some("-----BEGIN CERTIFICATE-----\nAAAA"), None, "ca.pem, the `ca` of [fleet-lock], is not PEM: "),
        (
            Some(ca),
            Some((key, key)),
            "client.pem, the `certificate` of [fleet-lock], holds no certificate in PEM",
        ),
        (
            Some(ca),
            Some((certificate, certificate)),
            "client.key, the `key` of [fleet-lock], holds no private key in PEM",
        ),
        (
            Some(ca),
            Some((certificate, &other_key)),
            "client.key, the `key` of [fleet-lock], does not go with the certificate: ",
        ),
        (
            Some(ca),
            Some((certificate, &format!("{key}{other_key}"))),
            "client.key, the `key` of [fleet-lock], holds more than one private key",
        ),
        (
            Some(ca),
            Some((damaged, key)),
            "client.key, the `key` of [fleet-lock], does not go with the certificate: ",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory, "https://h", ca, certificate);
        let error = with_causes(&FleetLockClient::from_settings(&settings).unwrap_err());
        assert!(error.contains(expected), "{error}\n{expected}");
        assert!(!error.contains("PRIVATE KEY"), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(&directory, "https://h", None, Some((certificate, key)));
    let large = directory.path().join("large");
    fs::File::create(&large).unwrap().set_len(5_000_000).unwrap();
    for (path, expected) in [
        ("/dev/zero", "it is not a file"),
        (large.to_str().unwrap(), "more than 4194304 bytes"),
        ("/nowhere/k", "No such file or directory (os error 2)"),
    ] {
        settings.key = Some(path.into());
        let error = with_causes(&FleetLockClient::from_settings(&settings).unwrap_err());
        assert_eq!(error, format!("cannot read {path}, the `key` of [fleet-lock]: {expected}"));
    }
}

#[tokio::test]
async fn conformance_uses_the_tls_files() {
    let authority = Authority::new("one");
    let server = Server::start(&authority, Some(&authority)).await;
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.certify("examiner");
    let url = format!("https://{}", server.server.address);
    let settings =
        settings(&directory, &url, Some(&authority.pem), Some((certificate.as_str(), key.as_str())));
    let examine = async |tls| {
        let options = conformance::Options {
            url: url.parse().unwrap(),
            tls: Some(tls),
            group: "default".to_owned(),
            level: conformance::Level::Protocol,
            slots: None,
            slots_max: 1,
        };
        conformance::run(&options, &CancellationToken::new(), |_| ()).await
    };
    let files = files(&settings);
    // It grants everything, with an empty body.
    let report = examine(files.clone()).await.unwrap();
    assert_eq!(report.rows[0].got, "200, no body");
    let nobody = TlsFiles { certificate: None, key: None, ..files.clone() };
    let refused = examine(nobody).await.unwrap_err();
    assert!(matches!(refused, conformance::Error::Unreachable { .. }), "{refused}");
    let roles = ["file of --ca", "b", "c"];
    let missing = TlsFiles { ca: Some("/nowhere/ca".into()), roles, ..files };
    let error = with_causes(&examine(missing).await.unwrap_err());
    assert_eq!(error, "cannot read /nowhere/ca, the file of --ca: No such file or directory (os error 2)");
}
