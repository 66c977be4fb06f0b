//! A client of one cluster. Each request is sent once and bounded in time and size.

use std::fmt::Display;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::{Method, Request};
use kube::Config;
use kube::client::{AuthError, Body};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_tls::http_client::install_crypto_provider;
use serde_json::json;

use super::answer::Answer;
use super::error::Error;
use super::request_rate::{RequestRate, Turn};
pub use super::token_file::TokenError;
use super::token_file::TokenFile;
use crate::http_error::{find_cause, is_malformed};

/// How long a request may take, its answer included.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer about one object. An API server stores objects of 1.5 MiB.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The largest refusal.
const REFUSAL_BYTES_MAX: usize = 1 << 20;
/// Where a pod has what belongs to its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Where a pod has the address of the API server.
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// How the cluster is found, and who asks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// By a kubeconfig.
    Kubeconfig {
        file: PathBuf,
        /// The context; the file's current one if absent.
        context: Option<String>,
    },
    /// From within the cluster, as the service account of the pod.
    InCluster,
    /// As a service account, with its files.
    ServiceAccount {
        /// The URL of the API server.
        server: String,
        /// Where `token` and `ca.crt` are, as in a pod. Both are read again, since the cluster replaces them.
        folder: PathBuf,
    },
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {} cannot be used", .file.display())]
    Kubeconfig {
        file: PathBuf,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// This is no pod.
    #[error("there is no cluster around this process: the environment variable {variable} is missing")]
    NotInCluster { variable: &'static str },
    /// The server's address or the authority of a service account cannot be used.
    #[error("the service account in {} cannot be used", .folder.display())]
    ServiceAccount {
        /// Where its files are.
        folder: PathBuf,
        /// What is wrong.
        source: Box<KubeconfigError>,
    },
    /// The file of a token cannot be used.
    #[error("the token in {} cannot be used", .file.display())]
    Token {
        file: PathBuf,
        /// What is wrong with it.
        source: TokenError,
    },
    /// Credentials or certificates cannot be used.
    #[error("the client of the cluster cannot be set up")]
    Client(#[source] Box<kube::Error>),
}

/// A client of one cluster. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: kube::Client,
    timeout: Duration,
    rate: Option<RequestRate>,
    /// Where the token comes from, if it is in a file.
    token: Option<TokenFile>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// One request.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Outgoing {
    /// A request that changes nothing.
    pub(super) const fn get(path: String) -> Self {
        Self { method: Method::GET, path, content_type: "application/json", body: Vec::new() }
    }
}

impl Client {
    /// A client of this cluster.
    ///
    /// # Errors
    /// The cluster's address or the credentials cannot be read or used.
    pub async fn new(access: &Access) -> Result<Self, BuildError> {
        let mut config = match access {
            Access::Kubeconfig { file, context } => kubeconfig(file, context.clone())
                .await
                .map_err(|source| BuildError::Kubeconfig { file: file.clone(), source: Box::new(source) })?,
            Access::InCluster => {
                let server = server(&variable(HOST)?, &variable(PORT)?);
                service_account(&server, Path::new(SERVICE_ACCOUNT)).await?
            }
            Access::ServiceAccount { server, folder } => service_account(server, folder).await?,
        };
        // Its retries would repeat a budget's refusal for minutes, and send writes long after they were allowed.
        config.default_retry = false;
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        let token = token_file(&mut config)?;
        install_crypto_provider();
        let http = kube::Client::try_from(config).map_err(|error| BuildError::Client(Box::new(error)))?;
        Ok(Self { http, timeout: REQUEST_TIMEOUT, rate: None, token })
    }

    /// The same client with another limit for a request.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The same client with a limit of how often it asks; without, there is none.
    #[must_use]
    pub fn with_rate(self, rate: RequestRate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Waits until a request may be sent. Whoever writes asks afterwards whether that is still allowed.
    pub(super) async fn turn(&self) -> Turn {
        match &self.rate {
            Some(rate) => rate.turn().await,
            None => Turn::at_once(),
        }
    }

    /// Sends a request, and reads the answer whatever its status.
    pub(super) async fn send(&self, turn: Turn, outgoing: Outgoing) -> Result<Answer, Error> {
        self.send_up_to(turn, outgoing, ANSWER_BYTES_MAX).await
    }

    /// Sends a request, and reads an answer of at most so many bytes, whatever its status.
    pub(super) async fn send_up_to(
        &self,
        _turn: Turn,
        outgoing: Outgoing,
        bytes_max: usize,
    ) -> Result<Answer, Error> {
        let answer = tokio::time::timeout(self.timeout, self.exchange(outgoing, bytes_max)).await;
        answer.unwrap_or(Err(Error::TimedOut { limit: self.timeout }))
    }

    async fn exchange(&self, outgoing: Outgoing, bytes_max: usize) -> Result<Answer, Error> {
        let mut request = Request::builder()
            .method(outgoing.method)
            .uri(outgoing.path)
            .header(CONTENT_TYPE, outgoing.content_type)
            .header(ACCEPT, "application/json")
            .body(Body::from(outgoing.body))
            .map_err(|error| malformed(&error))?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.header());
        }
        let response = self.http.send(request).await.map_err(|error| unanswered(&error))?;
        let code = response.status().as_u16();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes_max =
            if response.status().is_success() { bytes_max } else { bytes_max.min(REFUSAL_BYTES_MAX) };
        let body = read(Limited::new(response.into_body(), bytes_max)).await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return Error::AnswerTooLarge { bytes_max };
            }
            Error::Unreachable { detail: bounded_message(&with_causes(&*error)) }
        })?;
        Ok(Answer { code, retry_after: retry_after.map(Duration::from_secs), body })
    }
}

/// Takes the file of the token out of a configuration: the library would send the new line at its end, too.
fn token_file(config: &mut Config) -> Result<Option<TokenFile>, BuildError> {
    let user = &mut config.auth_info;
    let has_other = user.token.is_some() || (user.username.is_some() && user.password.is_some());
    let Some(file) = user.token_file.take_if(|_| !has_other).map(PathBuf::from) else { return Ok(None) };
    TokenFile::open(file.clone()).map(Some).map_err(|source| BuildError::Token { file, source })
}

/// Reads a body, without a second copy.
async fn read(body: Limited<Body>) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        bytes.extend_from_slice(frame?.data_ref().map_or(&[][..], |data| data));
    }
    Ok(bytes)
}

async fn kubeconfig(file: &PathBuf, context: Option<String>) -> Result<Config, KubeconfigError> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await
}

fn variable(variable: &'static str) -> Result<String, BuildError> {
    std::env::var(variable).map_err(|_| BuildError::NotInCluster { variable })
}

/// The URL of a server.
fn server(host: &str, port: &str) -> String {
    let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
    if is_ipv6 { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

async fn service_account(server: &str, folder: &Path) -> Result<Config, BuildError> {
    let authority = folder.join("ca.crt");
    let config = json!({
        "clusters": [{ "name": "pod", "cluster": { "server": server, "certificate-authority": authority } }],
        "users": [{ "name": "pod", "user": { "tokenFile": folder.join("token") } }],
        "contexts": [{ "name": "pod", "context": { "cluster": "pod", "user": "pod" } }],
        "current-context": "pod",
    });
    let config = async {
        // JSON is YAML too.
        let config = Kubeconfig::from_yaml(&config.to_string())?;
        Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await
    };
    let mut config = config.await.map_err(|source| BuildError::ServiceAccount {
        folder: folder.to_owned(),
        source: Box::new(source),
    })?;
    // A kubeconfig's authority would be read once.
    config.root_cert_file = Some(authority);
    Ok(config)
}

/// Why there is no answer.
fn unanswered(error: &kube::Error) -> Error {
    let detail = bounded_message(&with_causes(error));
    if is_malformed(error) {
        Error::Malformed { detail }
    } else if find_cause::<AuthError>(error).is_some() {
        Error::NoCredentials { detail }
    } else {
        Error::Unreachable { detail }
    }
}

fn malformed(what: &impl Display) -> Error {
    Error::Malformed { detail: bounded_message(&what.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_pods_have_addresses_or_names() {
        assert_eq!(server("10.0.0.1", "443"), "https://10.0.0.1:443");
        assert_eq!(server("fd00::1", "6443"), "https://[fd00::1]:6443");
        assert_eq!(server("kubernetes.default.svc", "443"), "https://kubernetes.default.svc:443");
    }

    #[tokio::test]
    async fn process_outside_of_a_pod_is_told_so() {
        let error = Client::new(&Access::InCluster).await.unwrap_err();
        assert!(matches!(error, BuildError::NotInCluster { variable: HOST }), "{error:?}");
    }
}
