//! Sends requests with exact control of what is on the wire, and reads the answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use hyper::body::Frame;
use os_upgrade_api_types::routes::fleet_lock::{LOCK, UNLOCK};
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::fleet_lock::{HttpAnswer, read_retry_after};
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::{self, BuildError, causes, read_up_to};
use reqwest::header::{ALLOW, DATE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url};

use super::answer::{Answer, Reply};
use super::case::{Join, Operation, Sent};

/// How long a request may take, in total.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an answer's body is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The server that is examined.
#[derive(Debug)]
pub(super) struct Server {
    http: Client,
    base: HttpUrl,
}

impl Server {
    pub(super) fn new(base: &HttpUrl, tls: Option<&TlsFiles>) -> Result<Self, BuildError> {
        let mut builder = http_client::builder(base.url());
        if let Some(files) = tls {
            builder = files.apply_to(builder)?;
        }
        // Each request has its own connection: a server may close one after a bad request, and that must not affect the
        // next case.
        let http = builder.timeout(ANSWER_TIMEOUT).pool_max_idle_per_host(0).build();
        let http = http.map_err(|source| BuildError::Other { url: base.clone(), source })?;
        Ok(Self { http, base: base.clone() })
    }

    /// Sends `sent` with this body.
    pub(super) async fn ask(&self, sent: &Sent, body: Vec<u8>) -> Answer {
        let method = Method::from_bytes(sent.method.as_bytes()).expect("a method of the table");
        let mut request = self.http.request(method, self.url(sent.operation, sent.join));
        for (name, value) in sent.headers {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if sent.chunked {
            request = request.body(reqwest::Body::wrap(Chunks(body)));
        } else if !body.is_empty() {
            request = request.body(body);
        }
        let read = async { read(request.send().await?).await };
        match read.await {
            Ok(reply) => Answer::Http(reply),
            Err(error) => Answer::None(causes(&error)),
        }
    }

    fn url(&self, operation: Operation, join: Join) -> Url {
        let mut url = self.base.url().clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let (joint, end) = match join {
            Join::Slash | Join::Query => ("/", ""),
            Join::TwoSlashes => ("//", ""),
            Join::SlashAtEnd => ("/", "/"),
        };
        let path = match operation {
            Operation::Lock => LOCK.path(),
            Operation::Unlock => UNLOCK.path(),
        };
        url.set_path(&format!("{base}{joint}{}{end}", path.trim_start_matches('/')));
        url.set_query((join == Join::Query).then_some("x=1&group=other"));
        url.set_fragment(None);
        url
    }
}

async fn read(response: Response) -> Result<Reply, reqwest::Error> {
    let header = |name| {
        let value = response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let status = response.status().as_u16();
    let (location, allow) = (header(LOCATION), header(ALLOW));
    let named = |name| response.headers().get(name).map(HeaderValue::as_bytes);
    let head =
        HttpAnswer { status, retry_after: named(RETRY_AFTER), date: named(DATE), ..HttpAnswer::default() };
    let retry_after = read_retry_after(&head, Utc::now());
    let body = read_up_to(response, ANSWER_BYTES_MAX).await?;
    Ok(Reply { status, location, allow, retry_after, body })
}

/// A body sent in two chunks, without its length.
struct Chunks(Vec<u8>);

impl hyper::body::Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let half = self.0.len().div_ceil(2);
        let rest = self.0.split_off(half);
        let chunk = std::mem::replace(&mut self.0, rest);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined() {
        for base in ["http://h/base", "http://h/base/", "http://h/base//?q=1#f"] {
            let server = Server::new(&base.parse().unwrap(), None).unwrap();
            for (join, expected) in [
                (Join::Slash, "http://h/base/v1/pre-reboot"),
                (Join::TwoSlashes, "http://h/base//v1/pre-reboot"),
                (Join::SlashAtEnd, "http://h/base/v1/pre-reboot/"),
                (Join::Query, "http://h/base/v1/pre-reboot?x=1&group=other"),
            ] {
                assert_eq!(server.url(Operation::Lock, join).as_str(), expected);
            }
        }
        let server = Server::new(&"http://h".parse().unwrap(), None).unwrap();
        assert_eq!(server.url(Operation::Unlock, Join::TwoSlashes).as_str(), "http://h//v1/steady-state");
    }
}
