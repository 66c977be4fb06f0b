//! The listener with TLS, over real sockets.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Extension;
use axum::routing::get;
use os_upgrade_auth::PeerCertificate;
use os_upgrade_settings::ApiTls;
use os_upgrade_test_site::authority::Authority;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::served::exchange;
use super::*;
use crate::http::listener::Listener;

const GET: &str = "GET /whoami HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// A listener whose router answers with the client's certificate.
struct Served {
    address: SocketAddr,
    directory: TempDir,
    authority: Authority,
    _stop: DropGuard,
}

async fn whoami(peer: Option<Extension<PeerCertificate>>) -> String {
    let peer = peer.map(|Extension(peer)| format!("{:?} {:?}", peer.common_name(), peer.dns_names()));
    peer.unwrap_or_else(|| "nobody".to_owned())
}

impl Served {
    async fn start(client_ca: Option<&Authority>) -> Self {
        Self::start_within(Limits::default(), client_ca).await
    }

    async fn start_within(limits: Limits, client_ca: Option<&Authority>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let authority = Authority::new("servers");
        if let Some(clients) = client_ca {
            fs::write(path("ca.pem"), &clients.pem).unwrap();
        }
        let settings = ApiTls {
            cert: Some(path("api.pem")),
            key: Some(path("api.key")),
            client_ca: client_ca.map(|_| path("ca.pem")),
        };
        write_pair(&directory, &authority.certify("localhost"));
        let tls = Tls::from_settings(&settings).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/whoami", get(whoami));
        let listener = Listener::Tcp(listener);
        tokio::spawn(listener::serve_router(listener, router, limits, tls, shutdown.clone()));
        Self { address, directory, authority, _stop: shutdown.drop_guard() }
    }

    async fn connect(&self, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        connect(self.address, config).await
    }

    /// The answer to [`GET`], or the error.
    async fn ask(&self, config: ClientConfig) -> Result<String, String> {
        ask(self.address, config).await
    }
}

async fn connect(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

async fn ask(address: SocketAddr, config: ClientConfig) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = connect(address, config).await.map_err(text)?;
    stream.write_all(GET.as_bytes()).await.map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(text)?;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    Ok(answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

fn write_pair(directory: &TempDir, (cert, key): &(String, String)) {
    fs::write(directory.path().join("api.pem"), cert).unwrap();
    fs::write(directory.path().join("api.key"), key).unwrap();
}

fn client(
    roots: &Arc<RootCertStore>,
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<&(String, String)>,
) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(Arc::clone(roots));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()];
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                .unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

#[tokio::test]
async fn both_tls_versions_use_http_1() {
    let served = Served::start(None).await;
    let roots = served.authority.roots();
    for (version, expected) in
        [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        let stream = served.connect(client(&roots, &[version], None)).await.unwrap();
        let connection = stream.get_ref().1;
        assert_eq!(connection.protocol_version(), Some(expected));
        assert_eq!(connection.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(served.ask(client(&roots, &[version], None)).await.unwrap(), "nobody");
    }
}

#[tokio::test]
async fn client_certificates_are_optional_but_checked() {
    let (clients, others) = (Authority::new("clients"), Authority::new("others"));
    let served = Served::start(Some(&clients)).await;
    let roots = served.authority.roots();
    for version in [&version::TLS12, &version::TLS13] {
        let ask = async |identity: Option<(String, String)>| {
            served.ask(client(&roots, &[version], identity.as_ref())).await
        };
        assert_eq!(ask(None).await.unwrap(), "nobody");
        let known = ask(Some(clients.certify("h01.example"))).await.unwrap();
        assert_eq!(known, r#"Some("h01.example") ["h01.example"]"#);
        let unknown = ask(Some(others.certify("h01.example"))).await.unwrap_err();
        assert!(unknown.contains("UnknownCA"), "{unknown}");
        let expired = ask(Some(clients.certify_until("h01.example", 2020))).await.unwrap_err();
        assert!(expired.contains("CertificateExpired"), "{expired}");
    }
    // Without a client CA, certificates are not requested.
    let served = Served::start(None).await;
    let config = client(&served.authority.roots(), &[&version::TLS13], Some(&clients.certify("h01")));
    assert_eq!(served.ask(config).await.unwrap(), "nobody");
}

#[tokio::test]
async fn plain_http_gets_advice() {
    let served = Served::start(None).await;
    let message = "this port accepts HTTPS only: begin the URL with https://";
    for (path, expected) in [
        ("/v1/state/os-upgrade", error(message)),
        ("//v1/pre-reboot", json!({ "kind": "https_only", "value": message })),
        ("/v1-alpha/units", fleet_error(400, message)),
        ("/fleet/v1/units", fleet_error(400, message)),
    ] {
        let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}");
        let answer = exchange(served.address, &request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(head.contains("\r\nx-content-type-options: nosniff\r\n"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    }
    // Other protocols get at most a TLS alert, and are disconnected.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(b"\0\0\0\0\0\0\0\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn missing_handshake_times_out() {
    let served = Served::start(None).await;
    // One client sends nothing, the other only the beginning.
    for beginning in [&b""[..], &[22, 3, 1]] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty());
        assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn handshakes_need_permits() {
    let limits = Limits::default();
    let served = Served::start_within(limits.clone(), None).await;
    let roots = served.authority.roots();
    let config = || client(&roots, &[&version::TLS13], None);
    // Clients that stop after the beginning hold no permit.
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&[22, 3, 1]).await.unwrap();
        silent.push(stream);
    }
    assert_eq!(served.ask(config()).await.unwrap(), "nobody");

    let permits = limits.handshakes();
    let all = permits.acquire_many(permits.available_permits().try_into().unwrap()).await.unwrap();
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    served.ask(config()).await.unwrap_err();
    let waited = begun.elapsed();
    assert!(
        (9..12).contains(&waited.as_secs()),
        "the handshake timeout includes the wait for a permit: {waited:?}"
    );
    tokio::time::resume();
    drop(all);
    assert_eq!(served.ask(config()).await.unwrap(), "nobody");
}

/// Every request is answered while the certificate changes. New connections get the new one, and open ones continue.
#[tokio::test]
async fn certificate_is_replaced_under_traffic() {
    let served = Served::start(None).await;
    let (first, second) = (served.authority.roots(), Authority::new("next"));
    let mut both = (*first).clone();
    both.roots.extend(second.roots().roots.iter().cloned());
    let both = Arc::new(both);

    let (end, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let traffic = {
        let (end, requests, both, address) = (end.clone(), requests.clone(), both.clone(), served.address);
        tokio::spawn(async move {
            while !end.load(Ordering::Relaxed) {
                ask(address, client(&both, &[&version::TLS13], None)).await.unwrap();
                requests.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let mut open = served.connect(client(&both, &[&version::TLS13], None)).await.unwrap();

    write_pair(&served.directory, &second.certify("localhost"));
    let renewed = async {
        let config = || client(&second.roots(), &[&version::TLS13], None);
        while served.ask(config()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), renewed).await.expect("the new certificate is served");
    assert!(served.ask(client(&first, &[&version::TLS13], None)).await.is_err());

    end.store(true, Ordering::Relaxed);
    traffic.await.unwrap();
    assert!(requests.load(Ordering::Relaxed) > 0);
    open.write_all(GET.as_bytes()).await.unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("nobody"), "{answer}");
}
