//! Configuration providers: asks a plain file server what a host is to have, or tells a server with hooks of events of hosts, and seals
//! what is given to the host.
//!
//! Each question to a file server is one GET, and each batch of events one POST, sent once; retries are up to
//! [`os_upgrade_provider_rules::Schedule`]. What an answer means is [`os_upgrade_provider_rules::Answer::interpret`]'s to say.
//! [`Providers`] opens the secret that a provider wants, and does not seal anew what the host is to have anyway.

mod client;
mod credentials;
mod failure;
mod hooks;
mod seal;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::Utc;
use os_upgrade_kernel::{ConfigProvider, FileMode, Sealed, SecretName, State};
use os_upgrade_platform::random::RandomError;
use os_upgrade_protocol::{FileEntry, HostName, ItemKind};
use os_upgrade_provider_rules::hooks::{
    Call, CallbackToken, Given, HookEvent, HookOutcome, HookReply, MemberReply, event_uuid,
};
use os_upgrade_provider_rules::{
    ContentBytes, CredentialsProblem, Failure, Outcome, ProviderName, Reply, Validator,
};
use os_upgrade_sealing::SealedFor;
use os_upgrade_shell::delivery::{HookQuestion, ProviderQuestion};
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_site::strongbox::Strongbox;
use zeroize::Zeroizing;

use self::client::Client;
pub use self::client::Definition;
pub use self::credentials::Credentials;
use self::credentials::{certificate_failure, credentials_failure};
use self::hooks::HookMemory;
pub use self::seal::{FileTarget, SealItemError, SealedItem, seal};

/// All providers, with the secrets that they want.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    http: HttpProviders,
    hooks: HookMemory,
    strongbox: Strongbox,
    published: Arc<ArcSwap<PublishedState>>,
    /// The URL to which providers post call-backs.
    callback_endpoint: String,
}

/// What was made of what a provider gave.
#[derive(Debug)]
pub struct Made {
    pub item: SealedItem,
    /// A value that is the same for the same content, file, key of the host and, of kind `hooks`, hash of the provider; absent without the
    /// key of the strongbox.
    pub fingerprint: Option<String>,
    /// The hash that a provider of kind `hooks` is told once the host has it, sealed; absent without the key of the strongbox.
    pub hash: Option<String>,
}

/// What an item is made of.
struct Ingredients<'a> {
    files: Vec<FileEntry>,
    /// What the fingerprint covers besides the bytes and the key: the files and, of kind `hooks`, the hash.
    target: String,
    bytes: &'a ContentBytes,
    /// The provider's hash of it, if it is told that.
    hash: Option<&'a str>,
}

impl Providers {
    /// The secrets are those in `published`, opened with the key of `strongbox`. Providers post call-backs to `callback_endpoint`.
    pub fn new(
        strongbox: Strongbox,
        published: Arc<ArcSwap<PublishedState>>,
        callback_endpoint: String,
    ) -> Self {
        let (http, hooks) = (HttpProviders::default(), HookMemory::default());
        Self { http, hooks, strongbox, published, callback_endpoint }
    }

    /// The same providers, with connections of their own.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self { http: HttpProviders::default(), ..self.clone() }
    }

    /// Asks `question`, and seals what is given, unless that is what the host is to have anyway.
    pub async fn ask(&self, question: &ProviderQuestion) -> Reply<Option<Made>> {
        let Reply { outcome, retry_after, poll_interval } =
            self.get(&question.provider, &question.host, question.validator.as_ref()).await;
        let outcome = match outcome {
            Outcome::Content { content, validator } => {
                let file = configured_file(&question.provider);
                let target = format!("{file:?}");
                let files = file.map(|file| file.entry(content.as_slice().len())).into_iter().collect();
                let ingredients = Ingredients { files, target, bytes: &content, hash: None };
                self.seal(question, validator, &ingredients)
            }
            Outcome::Unchanged { validator } => Outcome::Unchanged { validator },
            Outcome::Removed => Outcome::Removed,
            Outcome::Failed(failure) => Outcome::Failed(failure),
        };
        self.forget_if_gone(&question.provider.name);
        Reply { outcome, retry_after, poll_interval }
    }

    /// Draws a token with which the provider `name` may call back, and keeps it in memory. Returns its SHA-256, in hex.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn draw_token(&self, name: &ProviderName) -> Result<String, RandomError> {
        self.hooks.draw_token(name)
    }

    /// Tells a provider of kind `hooks` of the events of `questions`, which are all to the same provider, in one request. What it gives is
    /// sealed, unless that is what the host is to have anyway. There is a reply to each question, in this order.
    pub async fn call(&self, questions: &[ProviderQuestion]) -> Vec<Reply<Option<Made>>> {
        let replies = match self.tell(questions).await {
            Ok(HookReply { members, retry_after, foreign: _ }) => {
                let answered = questions.iter().zip(members);
                let replies = answered.map(|(question, MemberReply { outcome, poll_interval })| Reply {
                    outcome: self.read(question, outcome),
                    retry_after,
                    poll_interval,
                });
                replies.collect()
            }
            Err(failure) => questions.iter().map(|_| failure.clone().into()).collect(),
        };
        if let Some(question) = questions.first() {
            self.forget_if_gone(&question.provider.name);
        }
        replies
    }

    /// Tells `provider`, which is of kind `hooks`, of a poll of `host` that is none of its polls. It gets the token that it has from this
    /// process, so that it does not take another one for its last; if it has none from here, it gets none. Nothing is kept of what it gives.
    pub async fn poll_once(&self, provider: &ConfigProvider, host: &HostName) -> HookOutcome {
        let token = self.last_token(&provider.name).unwrap_or_else(CallbackToken::none);
        let call = {
            let published = self.published.load();
            let PublishedState { state, view, .. } = &**published;
            // Polls have seconds as their cause, so none has this one.
            let cause = u64::try_from(Utc::now().timestamp_micros()).unwrap_or_default();
            let event = HookEvent::DevicePoll;
            Call {
                event,
                event_uuid: event_uuid(&provider.name, host, event, state.epoch(), cause),
                config_name: &provider.name,
                device_metadata: state.hook_device_metadata(view, provider, host),
                callback_endpoint: &self.callback_endpoint,
                callback_token: &token,
                last_config_hash: "",
            }
        };
        let posted = self.post(provider, &[call]).await;
        self.forget_if_gone(&provider.name);
        match posted {
            Ok(reply) => {
                let member = reply.members.into_iter().next();
                member.map_or(HookOutcome::Failed(Failure::NotAnswered), |member| member.outcome)
            }
            Err(failure) => HookOutcome::Failed(failure),
        }
    }

    /// The newest token that counts of those that this process has drawn for the provider `name`.
    fn last_token(&self, name: &ProviderName) -> Option<CallbackToken> {
        let published = self.published.load();
        let tokens = &published.state.desired.hooks.get(name)?.tokens;
        tokens.iter().rev().find_map(|digest| self.hooks.token(name, digest))
    }

    /// Asks `provider` about `host`. `validator` is that of the content received last.
    pub async fn get(
        &self,
        provider: &ConfigProvider,
        host: &HostName,
        validator: Option<&Validator>,
    ) -> Reply {
        match self.prepare(provider) {
            Ok((definition, credentials)) => {
                self.http.ask(&provider.name, &definition, host, validator, credentials.as_ref()).await
            }
            Err(failure) => failure.into(),
        }
    }

    /// The state was `before` and is `state` now: keeps nothing that is no longer needed, if that may have changed.
    pub fn follow(&self, before: &State, state: &State) {
        let is_same_config =
            before.config.as_ref().map(Arc::as_ptr) == state.config.as_ref().map(Arc::as_ptr);
        if !is_same_config || !before.enrolment.keys.ptr_eq(&state.enrolment.keys) {
            self.retain_configured(state);
        }
    }

    /// Drops what a call has kept of the provider `name`, if that was removed meanwhile, when [`Self::follow`] could not find it. Its tokens
    /// were dropped then: they are drawn where that is called, so none is kept later.
    fn forget_if_gone(&self, name: &ProviderName) {
        let published = self.published.load();
        let config = published.state.config.as_ref();
        if config.is_none_or(|config| config.provider(name).is_none()) {
            self.http.retain(|known| known != name);
            self.hooks.forget_calls(name);
        }
    }

    /// Drops what is kept of providers that `state` does not have: their clients, with their connections and client certificates, and their
    /// tokens. Drops hashes of hosts that have no approved key as well.
    fn retain_configured(&self, state: &State) {
        let config = state.config.as_ref();
        let is_configured =
            |name: &ProviderName| config.is_some_and(|config| config.provider(name).is_some());
        self.http.retain(is_configured);
        self.hooks.retain(is_configured, |host| state.enrolment.keys.contains_key(host));
    }

    /// How `provider` is asked, and with which credentials.
    fn prepare(&self, provider: &ConfigProvider) -> Result<(Definition, Option<Credentials>), Failure> {
        let credentials = self.open(provider.credentials.as_ref(), credentials_failure)?;
        let client_certificate = self.open(provider.client_certificate.as_ref(), certificate_failure)?;
        let definition = Definition {
            url: provider.url.clone(),
            path: provider.path.clone(),
            client_certificate,
            ca: provider.ca.clone(),
            timeout: Duration::from_secs(provider.timeout.as_secs()),
            reuses_connections: !provider.is_hooks(),
        };
        Ok((definition, credentials))
    }

    /// Tells `provider` of the events of `calls`.
    async fn post(&self, provider: &ConfigProvider, calls: &[Call<'_>]) -> Result<HookReply, Failure> {
        let (definition, credentials) = self.prepare(provider)?;
        let name = &provider.name;
        let client = self.http.client(name, &definition)?;
        let reply = hooks::post(&client, name, calls, credentials.as_ref()).await?;
        let elements = reply.foreign;
        if self.hooks.has_begun_foreign(name, &reply) {
            tracing::warn!(provider = %name, elements, "a provider answers to what it was not told");
        } else if elements > 0 {
            tracing::debug!(provider = %name, elements, "a provider still answers to what it was not told");
        }
        Ok(reply)
    }

    /// Tells the provider of `questions` of their events.
    async fn tell(&self, questions: &[ProviderQuestion]) -> Result<HookReply, Failure> {
        let Some(ProviderQuestion { provider, .. }) = questions.first() else {
            return Ok(HookReply { members: Vec::new(), foreign: 0, retry_after: None });
        };
        let mut told = Vec::with_capacity(questions.len());
        for question in questions {
            // Neither happens: a leader asks with a token that this process has drawn.
            let hook = question.hook.as_ref().ok_or(Failure::NotSealed)?;
            let token = self.hooks.token(&provider.name, &hook.token).ok_or(Failure::NotSealed)?;
            told.push((hook, token, self.last_hash(question, hook)));
        }
        let calls = told.iter().map(|(hook, token, hash)| Call {
            event: hook.event,
            event_uuid: hook.uuid,
            config_name: &provider.name,
            device_metadata: hook.metadata.clone(),
            callback_endpoint: &self.callback_endpoint,
            callback_token: token,
            last_config_hash: hash,
        });
        let calls: Vec<Call<'_>> = calls.collect();
        self.post(provider, &calls).await
    }

    /// The provider's hash of what the host has; empty if that is nothing, or is not known.
    fn last_hash(&self, question: &ProviderQuestion, hook: &HookQuestion) -> Zeroizing<String> {
        let Some(applied) = &hook.applied else { return Zeroizing::default() };
        let provider = &question.provider.name;
        let host = &question.host;
        let item = applied.item.to_string();
        let kept = self.published.load();
        let sealed = applied.hash.as_ref();
        let opened = sealed.and_then(|sealed| {
            let parts = [host.as_str(), provider.as_str(), item.as_str()];
            self.strongbox.open_text(&kept.state.strongbox, &parts, sealed)
        });
        opened.or_else(|| self.hooks.hash(provider, host, &applied.item)).unwrap_or_default()
    }

    /// Makes of what a provider of kind `hooks` says about a host what is to become of it.
    fn read(&self, question: &ProviderQuestion, outcome: HookOutcome) -> Outcome<Option<Made>> {
        match outcome {
            HookOutcome::Unchanged => {
                let last = question.validator.clone();
                let validator = last.unwrap_or_else(|| hooks::validator("", &ContentBytes::new(Vec::new())));
                Outcome::Unchanged { validator }
            }
            HookOutcome::Revoked => Outcome::Removed,
            HookOutcome::Failed(failure) => Outcome::Failed(failure),
            HookOutcome::Content(Given { files, bytes, hash }) => {
                let mut files: Vec<FileEntry> = files.iter().map(hooks::entry).collect();
                if files.is_empty() {
                    let file = configured_file(&question.provider);
                    files.extend(file.map(|file| file.entry(bytes.as_slice().len())));
                }
                // Other JSON may give the same files. It is delivered, since the provider is told its hash only once the host has it.
                let target = format!("{files:?} {hash}");
                let validator = hooks::validator(&target, &bytes);
                // The host that waits for approval has no key yet to which it could be sealed.
                let event = question.hook.as_ref().map(|hook| hook.event);
                if event == Some(HookEvent::EnrollmentRequest) {
                    return Outcome::Content { content: None, validator };
                }
                if question.validator.as_ref() == Some(&validator) {
                    return Outcome::Unchanged { validator };
                }
                let ingredients = Ingredients { files, target, bytes: &bytes, hash: Some(&hash) };
                self.seal(question, validator, &ingredients)
            }
        }
    }

    /// The secret `name`, if there is one to open. `failure` is that of a provider that cannot be asked without it.
    fn open(
        &self,
        name: Option<&SecretName>,
        failure: fn(&SecretName, CredentialsProblem) -> Failure,
    ) -> Result<Option<Credentials>, Failure> {
        let Some(name) = name else { return Ok(None) };
        let published = self.published.load();
        let kept = &published.state.strongbox;
        // That it is missing is known even without the key of the strongbox.
        if !kept.secrets.contains_key(name) {
            return Err(failure(name, CredentialsProblem::Missing));
        }
        let opened = self.strongbox.open_with_origin(kept, name).map_err(|sealed| unopened(&sealed));
        let (secret, origin) = opened.map_err(|problem| failure(name, problem))?;
        let origin = origin.ok_or_else(|| failure(name, CredentialsProblem::OtherOrigin))?;
        Ok(Some(Credentials::new(name.clone(), secret, origin)))
    }

    /// An item of the `ingredients` as the outcome of `question`.
    fn seal(
        &self,
        question: &ProviderQuestion,
        validator: Validator,
        ingredients: &Ingredients<'_>,
    ) -> Outcome<Option<Made>> {
        match self.make(question, ingredients) {
            Ok(content) => Outcome::Content { content, validator },
            Err(error) => {
                tracing::warn!(provider = %question.provider.name, host = %question.host, %error, "cannot seal");
                Outcome::Failed(error.into())
            }
        }
    }

    fn make(
        &self,
        question: &ProviderQuestion,
        ingredients: &Ingredients<'_>,
    ) -> Result<Option<Made>, SealItemError> {
        let Ingredients { files, target, bytes, hash } = ingredients;
        let host = &question.host;
        let name = &question.provider.name;
        let published = self.published.load();
        let kept = &published.state.strongbox;
        let parts: [&[u8]; 5] = [
            host.as_str().as_bytes(),
            name.as_str().as_bytes(),
            question.key.as_bytes(),
            target.as_bytes(),
            bytes.as_slice(),
        ];
        let fingerprint = self.strongbox.fingerprint(kept, &parts);
        if fingerprint.is_some() && fingerprint == question.fingerprint {
            return Ok(None);
        }
        let (kind, revision) = (ItemKind::Configuration, question.sealed);
        let sealed_for = SealedFor { host, kind, name: name.as_str(), revision };
        let item = seal(&question.key, &sealed_for, files, bytes)?;
        let sealed_hash = hash.and_then(|hash| {
            let id = item.id.to_string();
            let sealed = self.strongbox.seal_text(kept, &[host.as_str(), name.as_str(), id.as_str()], hash);
            if sealed.is_none() {
                self.hooks.keep_hash(name, host, &item.id, hash);
            }
            sealed
        });
        Ok(Some(Made { item, fingerprint, hash: sealed_hash }))
    }
}

/// Why a secret that is there was not opened.
const fn unopened(sealed: &Sealed) -> CredentialsProblem {
    match sealed {
        Sealed::NoKey | Sealed::NoKeyYet | Sealed::OtherKey => CredentialsProblem::Sealed,
        Sealed::NoSecret { .. } => CredentialsProblem::Missing,
        Sealed::Damaged { .. } => CredentialsProblem::Damaged,
    }
}

/// The file that a content of `provider` becomes that names none itself.
fn configured_file(provider: &ConfigProvider) -> Option<FileTarget> {
    let ConfigProvider { path, mode, user, group, .. } = provider;
    let mode = mode.map(FileMode::bits);
    Some(FileTarget { path: path.clone()?, mode, user: user.clone(), group: group.clone() })
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
mod hooks_tests;
#[cfg(test)]
mod tests;
