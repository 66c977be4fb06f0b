//! A client of one provider.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::{
    ANSWER_BYTES_MAX, Answer, Asked, Condition, ContentBytes, Failure, HostUrlError, Origin, Reply,
    UrlTemplate, Validator, names_html,
};
use os_upgrade_tls::http_client::{self, read_up_to};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, RequestBuilder, Response, StatusCode};
use zeroize::Zeroizing;

use super::credentials::Credentials;
use super::failure::{not_built, while_asking};

/// What is told of this program to servers.
const USER_AGENT: &str = concat!("os-upgrade/", env!("CARGO_PKG_VERSION"));
/// The media type of calls and their answers.
const JSON: &str = "application/json";

/// A provider, as far as asking it depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub url: UrlTemplate,
    /// The path of the file on the host, if it becomes one: a page of HTML is expected if its name says so.
    pub path: Option<String>,
    /// The client certificate that is presented to it.
    pub client_certificate: Option<Credentials>,
    /// The certificate authorities to trust instead of the system's, in PEM.
    pub ca: Option<String>,
    /// How long a request may take in total.
    pub timeout: Duration,
    /// Whether a connection is used for several requests. It must not be where a 304 has a body, as hooks do: HTTP knows of none, so what is
    /// left on the connection would be read as the next answer.
    pub reuses_connections: bool,
}

#[derive(Debug)]
pub(super) struct Client {
    definition: Definition,
    http: reqwest::Client,
    origin: Origin,
    /// Whether a page of HTML is a proper answer.
    html: bool,
}

impl Client {
    pub(super) fn new(definition: Definition) -> Result<Self, Failure> {
        let origin = definition.url.origin();
        let url = definition.url.example();
        let mut builder = http_client::builder(url)
            .https_only(url.scheme() == "https")
            .user_agent(USER_AGENT)
            .timeout(definition.timeout);
        if !definition.reuses_connections {
            builder = builder.pool_max_idle_per_host(0);
        }
        if let Some(certificate) = &definition.client_certificate {
            builder = builder.identity(certificate.identity_for(&origin)?);
        }
        if let Some(pem) = &definition.ca {
            let authorities =
                Certificate::from_pem_bundle(pem.as_bytes()).map_err(|error| not_built(&error, true))?;
            if authorities.is_empty() {
                return Err(Failure::TlsFailed { why: "`ca` holds no certificate in PEM".to_owned() });
            }
            builder = builder.tls_certs_only(authorities);
        }
        let http = builder.build().map_err(|error| not_built(&error, definition.ca.is_some()))?;
        let html = definition.url.names_html() || definition.path.as_deref().is_some_and(names_html);
        Ok(Self { definition, http, origin, html })
    }

    /// Whether it is the client of this definition.
    pub(super) fn is_of(&self, definition: &Definition) -> bool {
        self.definition == *definition
    }

    /// Asks for what `host` is to have, in one request.
    pub(super) async fn get(
        &self,
        host: &HostName,
        validator: Option<&Validator>,
        credentials: Option<&Credentials>,
    ) -> Reply {
        let url = match self.definition.url.for_host(host) {
            Ok(url) => url,
            Err(HostUrlError) => return Failure::HostNotInUrl.into(),
        };
        let asked = Asked { validator, html: self.html };
        let request = match asked.condition() {
            Some(Condition::ETag(value)) => self.http.get(url).header(header::IF_NONE_MATCH, value),
            Some(Condition::LastModified(value)) => {
                self.http.get(url).header(header::IF_MODIFIED_SINCE, value)
            }
            None => self.http.get(url),
        };
        match self.send(request, credentials).await {
            Ok(received) => interpret(received, asked),
            Err(failure) => failure.into(),
        }
    }

    /// Posts `body`, which is JSON, in one request.
    pub(super) async fn post(
        &self,
        body: Zeroizing<Vec<u8>>,
        credentials: Option<&Credentials>,
    ) -> Result<Received, Failure> {
        // The same for all hosts.
        let url = self.definition.url.example().clone();
        let request = self.http.post(url).header(header::CONTENT_TYPE, JSON).header(header::ACCEPT, JSON);
        // It is cleared from memory once it is sent.
        self.send(request.body(Bytes::from_owner(body)), credentials).await
    }

    /// Sends `request` with `credentials`, and reads the answer.
    async fn send(
        &self,
        request: RequestBuilder,
        credentials: Option<&Credentials>,
    ) -> Result<Received, Failure> {
        // A compressed answer of a few bytes can become one of gigabytes.
        let mut request = request.header(header::ACCEPT_ENCODING, "identity");
        if let Some(credentials) = credentials {
            request = request.header(header::AUTHORIZATION, credentials.header_for(&self.origin)?);
        }
        let response = request.send().await.map_err(|error| while_asking(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        // Only a content is read; other bodies need not even be complete.
        let body = match status {
            StatusCode::OK => read(response).await,
            _ => Ok(ContentBytes::new(Vec::new())),
        };
        Ok(Received { status, headers, body })
    }
}

/// An answer as it was received.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The body, or why it is not complete; it is there only for 200.
    pub(super) body: Result<ContentBytes, Failure>,
}

/// The value of the header `name`.
pub(super) fn named(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

/// What the answer to a GET means.
fn interpret(Received { status, headers, body }: Received, asked: Asked<'_>) -> Reply {
    let answer = Answer {
        status: status.as_u16(),
        etag: named(&headers, header::ETAG),
        last_modified: named(&headers, header::LAST_MODIFIED),
        date: named(&headers, header::DATE),
        retry_after: named(&headers, header::RETRY_AFTER),
        content_type: named(&headers, header::CONTENT_TYPE),
        content_encoding: named(&headers, header::CONTENT_ENCODING),
        body,
    };
    answer.interpret(asked, Utc::now())
}

/// The body, if it is neither too large nor cut.
async fn read(response: Response) -> Result<ContentBytes, Failure> {
    let too_large = Failure::TooLarge { limit: ANSWER_BYTES_MAX };
    let announced = response.content_length().unwrap_or_default();
    if usize::try_from(announced).is_ok_and(|bytes| bytes <= ANSWER_BYTES_MAX) {
        let bytes = read_up_to(response, ANSWER_BYTES_MAX).await.map_err(|error| while_asking(&error))?;
        let bytes = ContentBytes::new(bytes);
        if bytes.as_slice().len() <= ANSWER_BYTES_MAX { Ok(bytes) } else { Err(too_large) }
    } else {
        Err(too_large)
    }
}
