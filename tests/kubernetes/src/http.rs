//! Connections, and what a request passes before it is carried out.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderValue, StatusCode, header, request::Parts};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use os_upgrade_test_site::authority::Authority;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::access::{self, Call};
use crate::discovery;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::request::{self, Path, Request};
use crate::resource::{NAMESPACES, REVIEWS};
use crate::state::Shared;
use crate::watches;

/// The largest body, as at a real server.
const BODY_BYTES_MAX: usize = 3 << 20;
/// The pause between renewals of leases: 10 s in a real cluster, which is long for a test.
const LEASE_INTERVAL: Duration = Duration::from_secs(1);

/// Why a request is not answered with what it asks for.
enum Unanswered {
    /// It is refused.
    Refused(Failure),
    /// Its connection ends.
    Cut,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

/// Presents the certificate of the authority's `127.0.0.1`.
pub(crate) fn acceptor(authority: &Authority) -> TlsAcceptor {
    TlsAcceptor::from(Arc::new(authority.server_config("127.0.0.1", None)))
}

/// Serves one connection. One that ends early is nothing to report: some faults are just that.
async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(move |request| answer(Arc::clone(&shared), request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Serves connections, with TLS if there is a certificate, until it is dropped, and them with it.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    shared: Arc<Shared>,
) -> Infallible {
    let mut connections = JoinSet::new();
    let mut renewal = tokio::time::interval(LEASE_INTERVAL);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                stream.set_nodelay(true).unwrap();
                let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
                connections.spawn(async move {
                    let Some(acceptor) = acceptor else { return serve_connection(stream, shared).await };
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve_connection(stream, shared).await;
                    }
                });
            }
            _ = renewal.tick() => shared.change(|state| {
                let now = state.now();
                state.controllers.renew_leases(&mut state.store, now);
            }),
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(shared: Arc<Shared>, request: hyper::Request<Incoming>) -> Result<Response, &'static str> {
    const CUT: &str = "the connection is cut";
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), BODY_BYTES_MAX).await.map_err(|_| CUT)?;
    let mut response = match handle(&shared, &parts, body).await {
        Ok(response) => response,
        Err(Unanswered::Refused(failure)) => failure.into_response(),
        Err(Unanswered::Cut) => return Err(CUT),
    };
    let date = shared.read(|state| state.now()).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    response.headers_mut().insert(header::DATE, HeaderValue::from_str(&date).unwrap());
    Ok(response)
}

async fn handle(shared: &Arc<Shared>, parts: &Parts, body: Bytes) -> Result<Response, Unanswered> {
    let path = parts.uri.path();
    let authorization =
        parts.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    let user = shared.read(|state| state.access.authenticate(authorization))?;
    match request::path(path) {
        None => {
            access::authorize_path(&user, path)?;
            let failure =
                if request::is_known(path) { Failure::no_such_path() } else { Failure::no_such_page() };
            Err(failure.into())
        }
        Some(Path::Public) if path.contains("version") => {
            Ok(axum::Json(discovery::version()).into_response())
        }
        Some(Path::Public) => Ok("ok".into_response()),
        Some(Path::Discovery) => {
            access::authorize_path(&user, path)?;
            Ok(axum::Json(discovery::describe(path)).into_response())
        }
        Some(Path::Objects(target)) => objects(shared, user, Request::read(parts, target, body)?).await,
    }
}

fn call(user: String, request: &Request) -> Call {
    let target = &request.target;
    Call {
        user,
        verb: request.verb,
        group: target.resource.group,
        resource: target.resource.plural,
        subresource: target.subresource.clone(),
        // RBAC sees a namespace within itself.
        namespace: target
            .namespace
            .clone()
            .or_else(|| target.name.clone().filter(|_| target.resource == NAMESPACES)),
        name: target.name.clone(),
        is_dry_run: request.is_dry_run(),
        field_selector: request.parameter("fieldSelector").to_owned(),
    }
}

async fn objects(shared: &Arc<Shared>, user: String, request: Request) -> Result<Response, Unanswered> {
    let call = call(user, &request);
    let fault = shared.read(|state| {
        state.access.authorize(&call, &request.target.resource)?;
        Ok::<_, Failure>(state.faults.take(&call))
    })?;
    if let Some(failure) = fault.and_then(|fault| fault.failure(&call)) {
        return Err(failure.into());
    }
    match fault {
        Some(Fault::CutBefore) => return Err(Unanswered::Cut),
        Some(Fault::Slow(pause)) => tokio::time::sleep(pause).await,
        _ => {}
    }
    let outcome = if request.verb == "create" && request.target.resource == REVIEWS {
        let review = request.json()?;
        let reviewed = shared.read(|state| state.access.review(&call.user, review));
        Ok((StatusCode::CREATED, axum::Json(reviewed)).into_response())
    } else if request.verb == "watch" {
        let json = [(header::CONTENT_TYPE, "application/json")];
        watches::body(shared, &request).map(|body| (json, body).into_response())
    } else {
        let executed = shared.write(|state| state.execute(&request));
        executed.map(|(status, mut body)| {
            if matches!(fault, Some(Fault::WrongVersion)) {
                body["metadata"]["resourceVersion"] = json!("1");
            }
            (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
        })
    };
    match fault {
        Some(Fault::CutAfter) => return Err(Unanswered::Cut),
        Some(Fault::LateAnswer(pause)) => tokio::time::sleep(pause).await,
        _ => {}
    }
    Ok(outcome?)
}
