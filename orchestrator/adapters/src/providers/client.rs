//! A client of one provider.

use std::time::Duration;

use chrono::Utc;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::{
    ANSWER_BYTES_MAX, Answer, Asked, Condition, ContentBytes, Failure, HostUrlError, Origin, Reply,
    UrlTemplate, Validator, names_html,
};
use os_upgrade_tls::http_client::{self, read_up_to};
use reqwest::header::{self, HeaderName, HeaderValue};
use reqwest::{Certificate, Response, StatusCode};

use super::credentials::Credentials;
use super::failure::{not_built, while_asking};

/// What is told of this program to servers.
const USER_AGENT: &str = concat!("os-upgrade/", env!("CARGO_PKG_VERSION"));

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
        if let Some(certificate) = &definition.client_certificate {
            let identity = certificate.identity_for(&origin);
            builder = builder.identity(identity.map_err(|problem| Failure::ClientCertificate { problem })?);
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

    /// Sends one request.
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
        // A compressed answer of a few bytes can become one of gigabytes.
        let mut request = self.http.get(url).header(header::ACCEPT_ENCODING, "identity");
        match credentials.map(|credentials| credentials.header_for(&self.origin)) {
            None => {}
            Some(Ok(value)) => request = request.header(header::AUTHORIZATION, value),
            Some(Err(problem)) => return Failure::Credentials { problem }.into(),
        }
        let asked = Asked { validator, html: self.html };
        request = match asked.condition() {
            Some(Condition::ETag(value)) => request.header(header::IF_NONE_MATCH, value),
            Some(Condition::LastModified(value)) => request.header(header::IF_MODIFIED_SINCE, value),
            None => request,
        };
        match request.send().await {
            Ok(response) => interpret(response, asked).await,
            Err(error) => while_asking(&error).into(),
        }
    }
}

/// What `response` means.
async fn interpret(response: Response, asked: Asked<'_>) -> Reply {
    let status = response.status();
    let headers = response.headers().clone();
    let named = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    // Only a content is read; other bodies need not even be complete.
    let body = match status {
        StatusCode::OK => read(response).await,
        _ => Ok(ContentBytes::new(Vec::new())),
    };
    let answer = Answer {
        status: status.as_u16(),
        etag: named(header::ETAG),
        last_modified: named(header::LAST_MODIFIED),
        date: named(header::DATE),
        retry_after: named(header::RETRY_AFTER),
        content_type: named(header::CONTENT_TYPE),
        content_encoding: named(header::CONTENT_ENCODING),
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
