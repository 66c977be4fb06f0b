//! The client of an instance's API: one request, and its response or the reason that there is none.

mod server;
pub(crate) mod stream;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use os_upgrade_api_types::dot_segment::segment;
use os_upgrade_api_types::headers::{OUTCOME, REPRESENTATION};
use os_upgrade_api_types::route::{Call, JSON};
use os_upgrade_protocol::tls_error::TlsFailure;
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::{self, causes, read_up_to};
use reqwest::header::{CONTENT_TYPE, ETAG};
use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use self::server::TOKEN_VARIABLE;
pub(crate) use self::server::{
    Authorities, CaOrigin, Server, Target, URL_VARIABLE, UrlOrigin, check_writers,
};
use crate::Failure;
use crate::failure::Refused;

/// For how long a connection is tried: nothing has been sent yet, so that the next instance may be asked.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// How long a request may take, in total.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The largest response that is read, in bytes: far more than the state of a large site needs.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The header that asks for the result of a change, RFC 7240.
pub(crate) fn prefer_result() -> (&'static str, String) {
    ("prefer", REPRESENTATION.to_owned())
}

/// A read got no response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unread(String);

/// The error of a read that got no response.
fn unread(why: String) -> anyhow::Error {
    Unread(why).into()
}

/// Whether a read that failed may succeed later: there was no answer, or the instance, or a proxy before it, is not ready.
pub(crate) fn may_pass(error: &anyhow::Error) -> bool {
    let is_unready = |refused: &Refused| {
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT]
            .contains(&refused.status)
    };
    error.is::<Unread>() || error.downcast_ref().is_some_and(is_unready)
}

/// What is sent with a request, besides its route and the credentials.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    /// Headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The media type of the body, and the body.
    pub(crate) body: Option<(&'static str, Vec<u8>)>,
}

/// The answer to a request that was not refused.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The status, 200, 201 or 204.
    pub(crate) status: StatusCode,
    /// The tag of what the body shows.
    pub(crate) etag: Option<String>,
    body: Vec<u8>,
}

impl Reply {
    /// The body, from JSON; an absent one is null.
    ///
    /// # Errors
    /// It is not a `T`.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        let body: &[u8] = if self.body.is_empty() { b"null" } else { &self.body };
        serde_json::from_slice(body).context("unexpected response")
    }
}

/// A client of the API of a site: of one instance, or of several that are tried in order.
#[derive(Debug)]
pub(crate) struct Client {
    /// One at least.
    instances: Vec<Instance>,
    /// The index of the instance that answered last; at first the first one.
    answering: AtomicUsize,
    token: Option<String>,
}

/// An instance, and the HTTP client for it.
#[derive(Debug)]
struct Instance {
    base: HttpUrl,
    http: reqwest::Client,
}

/// Why an instance did not give an answer.
enum Unanswered {
    /// The request had no effect: another instance may be asked.
    AskAnother(String),
    /// It refused, because it can do nothing now, and the request had no effect: another instance may.
    NotReady(anyhow::Error),
    /// It may have had one, or the answer is a refusal.
    Final(anyhow::Error),
}

/// The URL of `call`. The API is at the server's root, even if `base` has a path, as URLs for FleetLock clients may.
pub fn url<B>(base: &Url, call: &Call<B>) -> anyhow::Result<Url> {
    let mut url = base.join("/")?;
    let mut path = url.path_segments_mut().ok().context("an http:// or https:// URL is expected")?;
    path.clear().extend(call.segments().iter().map(|name| segment(name)));
    drop(path);
    if !call.query().is_empty() {
        url.query_pairs_mut().extend_pairs(call.query());
    }
    Ok(url)
}

impl Client {
    /// A client of the instance that `server` selects.
    ///
    /// # Errors
    /// It is not clear which instance is meant, or the token or a certificate cannot be read.
    pub(crate) fn new(server: &Server) -> Result<Self, Failure> {
        let target = server.target()?;
        Self::of(&target).map_err(|error| Failure::unusable(&error))
    }

    /// A client of the instance at `url`, without a token.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn without_token(url: &HttpUrl) -> anyhow::Result<Self> {
        Self::of(&Target::without_token(url.clone()))
    }

    /// A client of the instance at `target`.
    ///
    /// # Errors
    /// The token or a certificate cannot be read.
    pub(crate) fn of(target: &Target) -> anyhow::Result<Self> {
        let Target { urls, ca, .. } = target;
        let role = ca.as_ref().map_or(CaOrigin::Option, |ca| ca.origin).role();
        if let Some(ca) = ca {
            check_writers(role, &ca.file)?;
        }
        let instance = |base: &HttpUrl| {
            if let Some(ca) = ca
                && base.url().scheme() != "https"
            {
                bail!("{base}: the {role} {} needs a URL that begins with https://", ca.file.display());
            }
            let roles = [role, "certificate", "key"];
            let ca = ca.as_ref().map(|ca| ca.file.clone());
            let tls = TlsFiles { ca, certificate: None, key: None, roles, pipes: urls.len() == 1 };
            let http = tls
                .apply_to(
                    http_client::builder(base.url()).connect_timeout(CONNECT_WITHIN).timeout(ANSWER_WITHIN),
                )?
                .build()?;
            Ok(Instance { base: base.clone(), http })
        };
        let instances = urls.iter().map(instance).collect::<anyhow::Result<_>>()?;
        Ok(Self { instances, answering: AtomicUsize::new(0), token: target.token()? })
    }

    /// Asks the instance that answered last, and then the others in order, until one gives an answer. If none does, the first refusal
    /// counts.
    async fn ask<'a, T>(
        &'a self,
        ask: impl AsyncFn(&'a Instance) -> Result<T, Unanswered>,
    ) -> Result<T, Unanswered> {
        let (first, count) = (self.answering.load(Ordering::Relaxed), self.instances.len());
        let mut reasons = Vec::new();
        let mut refusal = None;
        for at in (first..count).chain(0..first) {
            match ask(&self.instances[at]).await {
                Err(Unanswered::AskAnother(why)) => reasons.push(why),
                Err(Unanswered::NotReady(refused)) => refusal = refusal.or(Some(refused)),
                answer => {
                    self.answering.store(at, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(refusal.map_or_else(|| Unanswered::AskAnother(reasons.join("; ")), Unanswered::Final))
    }

    /// Calls a route without a request body. Returns the JSON of the response, or null if there is none.
    pub(crate) async fn call(&self, call: impl Into<Call>) -> anyhow::Result<Value> {
        self.request(&call.into(), None::<&()>, Vec::new()).await
    }

    /// Calls a route without a request body, and reads the response as a `T`.
    pub(crate) async fn read<T: DeserializeOwned>(&self, call: impl Into<Call>) -> anyhow::Result<T> {
        T::deserialize(self.call(call).await?).context("unexpected response")
    }

    /// Calls a route with `body`.
    pub(crate) async fn call_with_body<B: Serialize>(
        &self,
        call: impl Into<Call<B>>,
        body: &B,
    ) -> anyhow::Result<Value> {
        self.request(&call.into(), Some(body), Vec::new()).await
    }

    /// Calls a route with `body`, and returns what the change has made.
    pub(crate) async fn call_for_result<B: Serialize>(
        &self,
        call: impl Into<Call<B>>,
        body: &B,
    ) -> anyhow::Result<Value> {
        self.request(&call.into(), Some(body), vec![prefer_result()]).await
    }

    async fn request<B: Serialize>(
        &self,
        call: &Call<B>,
        body: Option<&B>,
        headers: Vec<(&'static str, String)>,
    ) -> anyhow::Result<Value> {
        let body = body.map(|body| serde_json::to_vec(body).map(|json| (JSON, json))).transpose()?;
        let read = self.exchange(call, Sent { headers, body }).await?.json();
        read.map_err(|error| {
            let is_change =
                Method::from_bytes(call.method().as_str().as_bytes()).is_ok_and(|method| !method.is_safe());
            if is_change { NotDone::unknown(format!("{error:#}")).into() } else { error }
        })
    }

    /// Sends a request to `call`.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal: a [`NotDone`], or a [`Refused`].
    pub(crate) async fn exchange<B>(&self, call: &Call<B>, sent: Sent) -> anyhow::Result<Reply> {
        let method = Method::from_bytes(call.method().as_str().as_bytes())?;
        let is_change = !method.is_safe();
        let asked = self.ask(async |instance| self.exchange_with(instance, &method, call, &sent).await);
        asked.await.map_err(|unanswered| match unanswered {
            Unanswered::Final(error) | Unanswered::NotReady(error) => error,
            Unanswered::AskAnother(why) if is_change => NotDone::unchanged(why).into(),
            Unanswered::AskAnother(why) => Unread(why).into(),
        })
    }

    async fn exchange_with<B>(
        &self,
        instance: &Instance,
        method: &Method,
        call: &Call<B>,
        sent: &Sent,
    ) -> Result<Reply, Unanswered> {
        let base = &instance.base;
        let url = url(base.url(), call).map_err(Unanswered::Final)?;
        let is_change = !method.is_safe();
        let request = instance.http.request(method.clone(), url);
        let request = self.token.iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        let request =
            sent.headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let request = match &sent.body {
            Some((media_type, body)) => request.header(CONTENT_TYPE, *media_type).body(body.clone()),
            None => request,
        };
        let unanswered = |error: reqwest::Error| {
            let why = instance.unanswered(&error);
            if is_change && is_sent(&error) {
                Unanswered::Final(NotDone::unknown(why).into())
            } else {
                Unanswered::AskAnother(why)
            }
        };
        let response = request.send().await.map_err(unanswered)?;
        let status = response.status();
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (etag, outcome) = (header(ETAG.as_str()), header(OUTCOME));
        let answer = read_up_to(response, ANSWER_BYTES_MAX).await.map_err(unanswered)?;
        if answer.len() > ANSWER_BYTES_MAX {
            let why = format!("{base} answers with more than {ANSWER_BYTES_MAX} bytes");
            let error = if is_change { NotDone::unknown(why).into() } else { anyhow!(why) };
            return Err(Unanswered::Final(error));
        }
        match status {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => {
                Ok(Reply { status, etag, body: answer })
            }
            _ => Err(unmet(status, refusal((status, outcome.as_deref()), &answer, is_change))),
        }
    }
}

impl Instance {
    /// Why there is no response.
    fn unanswered(&self, error: &reqwest::Error) -> String {
        let base = &self.base;
        let what =
            if is_sent(error) { format!("{base} has not answered") } else { format!("cannot reach {base}") };
        let text = causes(error);
        format!("{what}: {text}{}", advice(&text))
    }
}

/// Whether the request may have reached the server.
fn is_sent(error: &reqwest::Error) -> bool {
    !error.is_connect() && !error.is_builder()
}

/// What to do about an API that cannot be reached. The HTTP client's errors can only be told apart by their text.
fn advice(error: &str) -> &'static str {
    match TlsFailure::told_in(error) {
        Some(TlsFailure::UntrustedIssuer) => ": give the certificate of that authority with --ca",
        Some(TlsFailure::OtherName) => ": give a --url with a name that it is for",
        Some(TlsFailure::NoName | TlsFailure::AuthorityShown) => "; docs/security.md has a command for it",
        Some(TlsFailure::NoTls) => "; give a --url that begins with http://",
        Some(
            TlsFailure::Expired
            | TlsFailure::NotYetValid
            | TlsFailure::InvalidCertificate
            | TlsFailure::CertificateRequired
            | TlsFailure::CertificateRefused
            | TlsFailure::NoAgreement,
        ) => "",
        None if error.contains("Connection refused") => ": is it running? --url says where it listens",
        None => "",
    }
}

/// What a refusal with `status` means for the other instances: one that can do nothing now has certainly not done what it refused,
/// unless it says that the outcome is unknown.
fn unmet(status: StatusCode, refused: anyhow::Error) -> Unanswered {
    let is_known = match (refused.downcast_ref::<NotDone>(), refused.downcast_ref::<Refused>()) {
        (Some(NotDone::Unknown { .. }), _) => false,
        (Some(NotDone::Unchanged { .. }), _) => true,
        (None, refusal) => refusal.is_some_and(|refusal| !refusal.of_change),
    };
    if status == StatusCode::SERVICE_UNAVAILABLE && is_known {
        Unanswered::NotReady(refused)
    } else {
        Unanswered::Final(refused)
    }
}

/// The API's error message, or at least the status. For a change it is a [`NotDone`] if the API returns one, in fleet's dialects with the
/// `outcome` in a header, or if a server error leaves the outcome open.
fn refusal((status, outcome): (StatusCode, Option<&str>), answer: &[u8], is_change: bool) -> anyhow::Error {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let error = &answer["errors"][0];
    // Fleet's dialects have an error entity of their own.
    let message = error["error-message"].as_str().or_else(|| answer["error"]["message"].as_str());
    let advice = match status {
        StatusCode::UNAUTHORIZED => format!("; give it with --token-file or in {TOKEN_VARIABLE}"),
        _ => String::new(),
    };
    let message = message.map_or_else(|| format!("the server returned {status}"), str::to_owned) + &advice;
    let of_fleet = outcome.and_then(|outcome| not_done(outcome, &message));
    match of_fleet.map_or_else(|| NotDone::deserialize(&error["error-info"]), Ok) {
        Ok(not_done) if is_change => not_done.into(),
        Err(_) if is_change && status.is_server_error() && error["error-info"].is_null() => {
            NotDone::unknown(message).into()
        }
        Ok(_) | Err(_) => Refused { status, message, of_change: is_change }.into(),
    }
}

/// What `outcome` and the whole sentence of a [`NotDone`] say; absent for an outcome of a newer version.
fn not_done(outcome: &str, sentence: &str) -> Option<NotDone> {
    let with = |why: &str| NotDone::deserialize(json!({ "outcome": outcome, "why": why })).ok();
    // The sentence for operators ends with what it makes of the outcome.
    let end = with("")?.to_string();
    with(sentence.strip_suffix(&end).unwrap_or(sentence))
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::routes::runs::{self, Cancel};
    use os_upgrade_api_types::routes::{hosts, slots, state};

    use super::*;

    #[test]
    fn refusals_carry_the_api_message() {
        let body = br#"{"errors":[{"error-message":"there is no group x"}]}"#;
        assert_eq!(refusal((StatusCode::NOT_FOUND, None), body, true).to_string(), "there is no group x");
        let of_fleet = br#"{"error":{"code":409,"message":"the unit has other contents"}}"#;
        let conflict = refusal((StatusCode::CONFLICT, None), of_fleet, true);
        assert_eq!(conflict.to_string(), "the unit has other contents");
        let gateway = |is_change| refusal((StatusCode::BAD_GATEWAY, None), b"<html>", is_change);
        assert_eq!(gateway(false).to_string(), "the server returned 502 Bad Gateway");
        assert_eq!(
            gateway(true).downcast_ref(),
            Some(&NotDone::unknown("the server returned 502 Bad Gateway"))
        );
        let not_done = NotDone::unknown("NATS is unreachable");
        let body = json!({ "errors": [{ "error-message": "x", "error-info": not_done }] }).to_string();
        let unavailable = (StatusCode::SERVICE_UNAVAILABLE, None);
        let refused = |is_change| refusal(unavailable, body.as_bytes(), is_change);
        assert_eq!(refused(true).downcast_ref(), Some(&not_done));
        assert_eq!(refused(false).to_string(), "x");
        // Fleet's dialects.
        for (outcome, not_done) in
            [("unchanged", NotDone::unchanged("x")), ("unknown", NotDone::unknown("x"))]
        {
            let body = json!({ "error": { "code": 503, "message": not_done.to_string() } }).to_string();
            let refused = refusal((StatusCode::SERVICE_UNAVAILABLE, Some(outcome)), body.as_bytes(), true);
            assert_eq!(refused.downcast_ref(), Some(&not_done));
        }
    }

    fn client(url: &str) -> Client {
        Client::new(&Server::at(url)).unwrap()
    }

    /// The error message when the API at `url` is called.
    async fn error_of(url: String) -> String {
        format!("{:#}", client(&url).call(&state::READ).await.unwrap_err())
    }

    #[tokio::test]
    async fn unanswered_change_has_an_outcome() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = client(&url);
        let change = async || {
            let error = client.call_with_body(&runs::CANCEL, &Cancel { reason: None }).await.unwrap_err();
            error.downcast::<NotDone>().unwrap()
        };
        let (sent, ()) = tokio::join!(change(), async { drop(listener.accept().await.unwrap()) });
        assert!(matches!(sent, NotDone::Unknown { .. }), "{sent}");
        drop(listener);
        let not_sent = change().await;
        assert!(matches!(not_sent, NotDone::Unchanged { .. }), "{not_sent}");
    }

    #[tokio::test]
    async fn instances_are_tried_in_order() {
        let dead = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = |listener: &tokio::net::TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let urls = [at(&dead), at(&listener)].map(|url| url.parse().unwrap()).into();
        drop(dead);
        let mut target = Target::without_token("http://h/".parse().unwrap());
        target.urls = urls;
        let client = Client::of(&target).unwrap();
        let (read, ()) = tokio::join!(client.call(&state::READ), answer_with(&listener, "200 OK", "{}"));
        assert_eq!(read.unwrap(), json!({}));
        // A change that reached an instance is not sent to another.
        let lost = async { drop(listener.accept().await.unwrap()) };
        let cancel = Cancel { reason: None };
        let (changed, ()) = tokio::join!(client.call_with_body(&runs::CANCEL, &cancel), lost);
        assert!(matches!(changed.unwrap_err().downcast(), Ok(NotDone::Unknown { .. })));
        drop(listener);
        let said = format!("{:#}", client.call(&state::READ).await.unwrap_err());
        assert_eq!(said.matches("cannot reach http://").count(), 2, "{said}");
    }

    /// Answers one request at `listener` with `status` and `body`.
    async fn answer_with(listener: &tokio::net::TcpListener, status: &str, body: &str) {
        answer_with_outcome(listener, status, None, body).await;
    }

    /// As [`answer_with`], with this outcome in the header of fleet's dialects.
    async fn answer_with_outcome(
        listener: &tokio::net::TcpListener,
        status: &str,
        outcome: Option<&str>,
        body: &str,
    ) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 1]).await.unwrap();
        let length = body.len();
        let outcome = outcome.map(|outcome| format!("{OUTCOME}: {outcome}\r\n")).unwrap_or_default();
        let head =
            format!("HTTP/1.1 {status}\r\nconnection: close\r\n{outcome}content-length: {length}\r\n\r\n");
        stream.write_all((head + body).as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.ok();
    }

    #[tokio::test]
    async fn instance_that_can_do_nothing_now_is_passed_over() {
        const UNAVAILABLE: &str = "503 Service Unavailable";
        let [first, second] = [
            tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
            tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
        ];
        let client = || {
            let at =
                |listener: &tokio::net::TcpListener| format!("http://{}", listener.local_addr().unwrap());
            let mut target = Target::without_token("http://h/".parse().unwrap());
            target.urls = [&first, &second].map(|listener| at(listener).parse().unwrap()).into();
            Client::of(&target).unwrap()
        };
        let refused = |not_done: NotDone| {
            json!({ "errors": [{ "error-message": not_done.to_string(), "error-info": not_done }] })
                .to_string()
        };
        let nobody_leads = r#"{"errors":[{"error-message":"no instance leads"}]}"#;
        let cancel = Cancel { reason: None };
        let asking = client();
        let (read, (), ()) = tokio::join!(
            asking.call(&state::READ),
            answer_with(&first, UNAVAILABLE, nobody_leads),
            answer_with(&second, "200 OK", "{}"),
        );
        assert_eq!(read.unwrap(), json!({}));
        let asking = client();
        let unchanged = refused(NotDone::unchanged("no instance leads"));
        let (changed, (), ()) = tokio::join!(
            asking.call_with_body(&runs::CANCEL, &cancel),
            answer_with(&first, UNAVAILABLE, &unchanged),
            answer_with(&second, "204 No Content", ""),
        );
        assert_eq!(changed.unwrap(), Value::Null);
        // The same in fleet's dialects.
        let of_fleet = |not_done: &NotDone| {
            json!({ "error": { "code": 503, "message": not_done.to_string() } }).to_string()
        };
        let asking = client();
        let unchanged = of_fleet(&NotDone::unchanged("no instance leads"));
        let (changed, (), ()) = tokio::join!(
            asking.call_with_body(&runs::CANCEL, &cancel),
            answer_with_outcome(&first, UNAVAILABLE, Some("unchanged"), &unchanged),
            answer_with(&second, "204 No Content", ""),
        );
        assert_eq!(changed.unwrap(), Value::Null);
        let asking = client();
        let unknown = of_fleet(&NotDone::unknown("no answer"));
        let (changed, ()) = tokio::join!(
            asking.call_with_body(&runs::CANCEL, &cancel),
            answer_with_outcome(&first, UNAVAILABLE, Some("unknown"), &unknown),
        );
        assert_eq!(changed.unwrap_err().downcast_ref(), Some(&NotDone::unknown("no answer")));
        // What may have been done is not requested twice.
        let asking = client();
        let unknown = refused(NotDone::unknown("no answer"));
        let (changed, ()) = tokio::join!(
            asking.call_with_body(&runs::CANCEL, &cancel),
            answer_with(&first, UNAVAILABLE, &unknown),
        );
        assert_eq!(changed.unwrap_err().downcast_ref(), Some(&NotDone::unknown("no answer")));
        // The refusal says more than that the others cannot be reached.
        let asking = client();
        drop(second);
        let (read, ()) =
            tokio::join!(asking.call(&state::READ), answer_with(&first, UNAVAILABLE, nobody_leads));
        assert_eq!(read.unwrap_err().to_string(), "no instance leads");
    }

    #[tokio::test]
    async fn unreachable_api_errors_carry_advice() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 1]).await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.ok();
        });
        let said = error_of(format!("https://{address}")).await;
        assert!(said.ends_with("it does not speak TLS; give a --url that begins with http://"), "{said}");
        answering.await.unwrap();
        let said = error_of(format!("http://{address}")).await;
        assert!(said.starts_with(&format!("cannot reach http://{address}")), "{said}");
        assert!(said.ends_with("is it running? --url says where it listens"), "{said}");
    }

    #[test]
    fn the_api_is_at_the_root() {
        let base: HttpUrl = "http://h:1/fleetlock/?x".parse().unwrap();
        let url = |call: Call| url(base.url(), &call).map(String::from);
        assert_eq!(url(slots::READ.call()).unwrap(), "http://h:1/v1/state/fleet-lock");
        let reclaim = slots::RECLAIM.named(["default", "a/b c"]);
        assert_eq!(url(reclaim).unwrap(), "http://h:1/v1/state/fleet-lock/default/a%2Fb%20c");
        let list = hosts::LIST.call().with("pending", "true").with("after", "a&b");
        assert_eq!(url(list).unwrap(), "http://h:1/v1/state/os-upgrade/hosts?pending=true&after=a%26b");
        let host = |name| url(hosts::READ.named([name])).unwrap();
        assert_eq!(host(".."), "http://h:1/v1/state/os-upgrade/hosts/%7F..");
        assert_eq!(host("%2E"), "http://h:1/v1/state/os-upgrade/hosts/%252E");
    }
}
