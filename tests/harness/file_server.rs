//! A plain file server, as a provider of configuration: it answers as the test wants, and counts.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::authority::Authority;
use crate::orchestrator::own_address;

/// How the server answers every request, whatever files it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answers {
    /// With its files, and `304` where the `ETag` says so.
    Files,
    /// With this status and no file.
    Status(u16),
    /// With a page of HTML and 200, as portals do.
    Page,
    /// Never.
    Nothing,
}

#[derive(Debug)]
struct Shared {
    answers: Answers,
    files: BTreeMap<String, Vec<u8>>,
    /// The `authorization` header that every request must have, if any.
    required: Option<String>,
    /// How long each answer takes.
    answer_time: Duration,
    /// When each request arrived.
    arrivals: Vec<Instant>,
    /// How many requests are being answered, and the most there were at once.
    under_way: usize,
    under_way_max: usize,
    /// Each answered request: its path and the status of its answer.
    requests: Vec<(String, u16)>,
}

/// The server, which ends when it is dropped.
#[derive(Debug)]
pub struct FileServer {
    scheme: &'static str,
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

impl FileServer {
    /// A server without files.
    pub async fn start() -> Self {
        let tcp = TcpListener::bind(own_address()).await.unwrap();
        let address = tcp.local_addr().unwrap();
        Self::new("http", address, |router| {
            tokio::spawn(async move { axum::serve(tcp, router).await.unwrap() })
        })
    }

    /// One that speaks TLS with a certificate of `authority`. If `clients` is given, it requires client certificates from that authority.
    pub async fn start_with_tls(authority: &Authority, clients: Option<&Authority>) -> Self {
        let tcp = TcpListener::bind(own_address()).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let config = authority.server_config(&address.ip().to_string(), clients);
        let tls = TlsListener { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) };
        Self::new("https", address, |router| {
            tokio::spawn(async move { axum::serve(tls, router).await.unwrap() })
        })
    }

    fn new(scheme: &'static str, address: SocketAddr, serve: impl FnOnce(Router) -> JoinHandle<()>) -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            answers: Answers::Files,
            files: BTreeMap::new(),
            required: None,
            answer_time: Duration::ZERO,
            arrivals: Vec::new(),
            under_way: 0,
            under_way_max: 0,
            requests: Vec::new(),
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        Self { scheme, address, shared, task: serve(router) }
    }

    /// The URL of what is at `path`, which may have `{host}`.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Its scheme, host and port.
    pub fn origin(&self) -> String {
        self.url("")
    }

    /// `path` has this content from now on.
    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.shared().files.insert(path.to_owned(), content.into());
    }

    /// There is nothing at `path` any more.
    pub fn remove(&self, path: &str) {
        self.shared().files.remove(path);
    }

    /// Answers like that from now on.
    pub fn answer(&self, answers: Answers) {
        self.shared().answers = answers;
    }

    /// Takes this long for each answer from now on.
    pub fn slow_down(&self, answer_time: Duration) {
        self.shared().answer_time = answer_time;
    }

    /// Refuses requests without this `authorization` header.
    pub fn require(&self, authorization: &str) {
        self.shared().required = Some(authorization.to_owned());
    }

    /// How many requests there were, and how many of them were answered with `status`.
    pub fn count(&self, status: u16) -> (usize, usize) {
        let shared = self.shared();
        (shared.requests.len(), shared.requests.iter().filter(|(_, given)| *given == status).count())
    }

    /// When each request arrived.
    pub fn arrivals(&self) -> Vec<Instant> {
        self.shared().arrivals.clone()
    }

    /// The most requests that were answered at once.
    pub fn most_at_once(&self) -> usize {
        self.shared().under_way_max
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections whose handshake has succeeded.
struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = self.tcp.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let (answer_time, response) = {
        let mut shared = shared.lock().unwrap();
        shared.arrivals.push(Instant::now());
        shared.under_way += 1;
        shared.under_way_max = shared.under_way_max.max(shared.under_way);
        let is_silent = shared.answers == Answers::Nothing;
        let answer_time = if is_silent { Duration::from_hours(1) } else { shared.answer_time };
        (answer_time, respond(&shared, &path, request.headers()))
    };
    if !answer_time.is_zero() {
        tokio::time::sleep(answer_time).await;
    }
    let mut shared = shared.lock().unwrap();
    shared.under_way -= 1;
    shared.requests.push((path, response.status().as_u16()));
    response
}

fn respond(shared: &Shared, path: &str, headers: &HeaderMap) -> Response {
    let sent = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if shared.required.is_some() && shared.required.as_deref() != sent(header::AUTHORIZATION) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.answers {
        Answers::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answers::Page => ([(header::CONTENT_TYPE, "text/html")], "<p>Please sign in").into_response(),
        Answers::Files | Answers::Nothing => {
            let Some(content) = shared.files.get(path) else {
                return StatusCode::NOT_FOUND.into_response();
            };
            let sum =
                content.iter().fold(content.len(), |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
            let tag = format!("\"{sum:x}\"");
            if sent(header::IF_NONE_MATCH) == Some(&tag) {
                return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
            }
            ([(header::ETAG, tag)], content.clone()).into_response()
        }
    }
}
