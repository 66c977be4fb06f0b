//! Configuration providers: asks a plain file server what a host is to have, and seals it to the host.
//!
//! Each question is one GET, sent once; retries are up to [`os_upgrade_provider_rules::Schedule`]. What an answer means is
//! [`os_upgrade_provider_rules::Answer::interpret`]'s to say. [`Providers`] opens the secret that a provider wants, and does not seal anew
//! what the host is to have anyway.

mod client;
mod credentials;
mod failure;
mod seal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use os_upgrade_kernel::{ConfigProvider, FileMode, SecretName, State};
use os_upgrade_protocol::{HostName, ItemKind};
use os_upgrade_provider_rules::{
    ContentBytes, CredentialsProblem, Failure, Outcome, ProviderName, Reply, Validator,
};
use os_upgrade_sealing::SealedFor;
use os_upgrade_shell::delivery::ProviderQuestion;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_site::strongbox::Strongbox;

use self::client::Client;
pub use self::client::Definition;
pub use self::credentials::Credentials;
pub use self::seal::{FileTarget, SealItemError, SealedItem, seal};

/// All providers, with the secrets that they want.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    http: HttpProviders,
    strongbox: Strongbox,
    published: Arc<ArcSwap<PublishedState>>,
}

/// What was made of what a provider gave.
#[derive(Debug)]
pub struct Made {
    pub item: SealedItem,
    /// A value that is the same for the same content, file and key of the host; absent without the key of the strongbox.
    pub fingerprint: Option<String>,
}

impl Providers {
    /// The secrets are those in `published`, opened with the key of `strongbox`.
    pub fn new(strongbox: Strongbox, published: Arc<ArcSwap<PublishedState>>) -> Self {
        Self { http: HttpProviders::default(), strongbox, published }
    }

    /// The same providers, with connections of their own.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self { http: HttpProviders::default(), ..self.clone() }
    }

    /// Asks `question`, and seals what is given, unless that is what the host is to have anyway.
    pub async fn ask(&self, question: &ProviderQuestion) -> Reply<Option<Made>> {
        let Reply { outcome, retry_after } =
            self.get(&question.provider, &question.host, question.validator.as_ref()).await;
        let outcome = match outcome {
            Outcome::Content { content, validator } => match self.make(question, &content) {
                Ok(content) => Outcome::Content { content, validator },
                Err(error) => {
                    tracing::warn!(provider = %question.provider.name, host = %question.host, %error, "cannot seal");
                    Outcome::Failed(error.into())
                }
            },
            Outcome::Unchanged { validator } => Outcome::Unchanged { validator },
            Outcome::Removed => Outcome::Removed,
            Outcome::Failed(failure) => Outcome::Failed(failure),
        };
        Reply { outcome, retry_after }
    }

    /// Asks `provider` about `host`. `validator` is that of the content received last.
    pub async fn get(
        &self,
        provider: &ConfigProvider,
        host: &HostName,
        validator: Option<&Validator>,
    ) -> Reply {
        let credentials = match self.open(provider.credentials.as_ref()) {
            Ok(credentials) => credentials,
            Err(problem) => return Failure::Credentials { problem }.into(),
        };
        let client_certificate = match self.open(provider.client_certificate.as_ref()) {
            Ok(certificate) => certificate,
            Err(problem) => return Failure::ClientCertificate { problem }.into(),
        };
        let definition = Definition {
            url: provider.url.clone(),
            path: provider.path.clone(),
            client_certificate,
            ca: provider.ca.clone(),
            timeout: Duration::from_secs(provider.timeout.as_secs()),
        };
        self.http.ask(&provider.name, &definition, host, validator, credentials.as_ref()).await
    }

    /// Drops the clients of providers that `state` does not have, with their connections and client certificates.
    pub fn retain_configured(&self, state: &State) {
        let config = state.config.as_ref();
        self.http.retain(|name| config.is_some_and(|config| config.provider(name).is_some()));
    }

    fn open(&self, name: Option<&SecretName>) -> Result<Option<Credentials>, CredentialsProblem> {
        let Some(name) = name else { return Ok(None) };
        let published = self.published.load();
        let opened = self.strongbox.open_with_origin(&published.state.strongbox, name);
        let (secret, origin) = opened.map_err(|_| CredentialsProblem::Sealed)?;
        let origin = origin.ok_or(CredentialsProblem::OtherOrigin)?;
        Ok(Some(Credentials::new(secret, origin)))
    }

    fn make(&self, question: &ProviderQuestion, bytes: &ContentBytes) -> Result<Option<Made>, SealItemError> {
        let ConfigProvider { name, path, mode, user, group, .. } = &*question.provider;
        let file = path.as_ref().map(|path| FileTarget {
            path: path.clone(),
            mode: mode.map(FileMode::bits),
            user: user.clone(),
            group: group.clone(),
        });
        let fingerprint = {
            let target = format!("{file:?}");
            let parts: [&[u8]; 5] = [
                question.host.as_str().as_bytes(),
                name.as_str().as_bytes(),
                question.key.as_bytes(),
                target.as_bytes(),
                bytes.as_slice(),
            ];
            self.strongbox.fingerprint(&self.published.load().state.strongbox, &parts)
        };
        if fingerprint.is_some() && fingerprint == question.fingerprint {
            return Ok(None);
        }
        let sealed_for = SealedFor {
            host: &question.host,
            kind: ItemKind::Configuration,
            name: name.as_str(),
            revision: question.sealed,
        };
        let item = seal(&question.key, &sealed_for, file.as_ref(), bytes)?;
        Ok(Some(Made { item, fingerprint }))
    }
}

/// The clients of all providers. Cheap to clone; clones share connections.
#[derive(Debug, Clone, Default)]
pub struct HttpProviders {
    clients: Arc<Mutex<BTreeMap<ProviderName, Arc<Client>>>>,
}

impl HttpProviders {
    /// Asks the provider `name` what `host` is to have. `validator` is that of the content received last. Credentials are sent only to their
    /// own origin; if they are for another one, nothing is sent.
    pub async fn ask(
        &self,
        name: &ProviderName,
        definition: &Definition,
        host: &HostName,
        validator: Option<&Validator>,
        credentials: Option<&Credentials>,
    ) -> Reply {
        match self.client(name, definition) {
            Ok(client) => client.get(host, validator, credentials).await,
            Err(failure) => failure.into(),
        }
    }

    fn retain(&self, is_configured: impl Fn(&ProviderName) -> bool) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|name, _| is_configured(name));
    }

    /// The client of this definition, which replaces that of an earlier one.
    fn client(&self, name: &ProviderName, definition: &Definition) -> Result<Arc<Client>, Failure> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(name).filter(|client| client.is_of(definition)) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client::new(definition.clone())?);
        clients.insert(name.clone(), Arc::clone(&client));
        Ok(client)
    }
}

#[cfg(test)]
mod tests;
