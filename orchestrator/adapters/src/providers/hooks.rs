//! Tells providers of kind `hooks` of events, one POST for a batch of them, and keeps in memory what is not journaled: the tokens with which
//! they may call back, and, where there is no key to seal them with, the hashes of what they gave.
//!
//! What an answer means is [`os_upgrade_provider_rules::hooks::HookAnswer::interpret`]'s to say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use os_upgrade_kernel::CALLBACK_TOKENS_MAX;
use os_upgrade_platform::random::{self, RandomError};
use os_upgrade_protocol::{FileEntry, HostName, ItemId};
use os_upgrade_provider_rules::hooks::{
    AskedMember, CALLBACK_TOKEN_BYTES, Call, CallbackToken, GivenFile, HookAnswer, HookOutcome, HookReply,
    call_body,
};
use os_upgrade_provider_rules::{ContentBytes, Failure, ProviderName, Validator};
use reqwest::header;
use zeroize::Zeroizing;

use super::client::{Client, Received, named};
use super::credentials::Credentials;

/// How many hashes are kept of a host: that of the item which it has, and that of the next one, whose publish may fail.
const HASHES_MAX: usize = 2;

/// What is kept of providers in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct HookMemory(Arc<Mutex<BTreeMap<ProviderName, Kept>>>);

/// What is kept of one provider.
#[derive(Default)]
struct Kept {
    /// Tokens by their digests, the oldest first. As many as the state has.
    tokens: Vec<(String, CallbackToken)>,
    /// The hashes of items of each host that could not be sealed, [`HASHES_MAX`] at most, the one used last at the end.
    hashes: BTreeMap<HostName, Vec<(ItemId, Zeroizing<String>)>>,
    /// Whether its last answer had elements about no call of the request.
    has_foreign: bool,
}

/// The hashes are left out: that of a short secret tells it.
impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens, hashes of {} hosts", self.tokens.len(), self.hashes.len())
    }
}

impl HookMemory {
    /// Draws a token with which `provider` may call back. Returns its digest.
    pub(super) fn draw_token(&self, provider: &ProviderName) -> Result<String, RandomError> {
        let token = random_token()?;
        let digest = token.digest();
        let mut kept = self.lock();
        let tokens = &mut kept.entry(provider.clone()).or_default().tokens;
        tokens.push((digest.clone(), token));
        let surplus = tokens.len().saturating_sub(CALLBACK_TOKENS_MAX);
        tokens.drain(..surplus);
        Ok(digest)
    }

    /// The token that has this `digest`, if this process has drawn it.
    pub(super) fn token(&self, provider: &ProviderName, digest: &str) -> Option<CallbackToken> {
        let kept = self.lock();
        let mut tokens = kept.get(provider)?.tokens.iter();
        tokens.find(|(known, _)| known == digest).map(|(_, token)| token.clone())
    }

    /// Keeps the hash of an item of `host`, in place of the one that was used longest ago.
    pub(super) fn keep_hash(&self, provider: &ProviderName, host: &HostName, item: &ItemId, hash: &str) {
        let hash = Zeroizing::new(hash.to_owned());
        let mut kept = self.lock();
        let hashes = &mut kept.entry(provider.clone()).or_default().hashes;
        let hashes = hashes.entry(host.clone()).or_default();
        hashes.push((item.clone(), hash));
        let surplus = hashes.len().saturating_sub(HASHES_MAX);
        hashes.drain(..surplus);
    }

    /// The hash of `item` of `host`, if it is kept. It outlives others, so that failed publishes do not replace it.
    pub(super) fn hash(
        &self,
        provider: &ProviderName,
        host: &HostName,
        item: &ItemId,
    ) -> Option<Zeroizing<String>> {
        let mut kept = self.lock();
        let hashes = kept.get_mut(provider)?.hashes.get_mut(host)?;
        let index = hashes.iter().position(|(known, _)| known == item)?;
        let used = hashes.remove(index);
        let hash = used.1.clone();
        hashes.push(used);
        Some(hash)
    }

    /// Notes whether a `reply` of `provider` has elements about no call of the request. Returns whether it has, and the one before had none.
    /// A request that failed as a whole says nothing of that.
    pub(super) fn has_begun_foreign(&self, provider: &ProviderName, reply: &HookReply) -> bool {
        let mut kept = self.lock();
        if reply.foreign > 0 {
            let known = kept.entry(provider.clone()).or_default();
            return !std::mem::replace(&mut known.has_foreign, true);
        }
        let has_answer = reply.members.iter().any(|member| !matches!(member.outcome, HookOutcome::Failed(_)));
        if has_answer && let Some(known) = kept.get_mut(provider) {
            known.has_foreign = false;
        }
        false
    }

    /// Keeps nothing of the calls to `provider`.
    pub(super) fn forget_calls(&self, provider: &ProviderName) {
        let mut kept = self.lock();
        if let Some(known) = kept.get_mut(provider) {
            known.hashes.clear();
            known.has_foreign = false;
            if known.tokens.is_empty() {
                kept.remove(provider);
            }
        }
    }

    /// Keeps only providers that are configured, and only hashes of hosts that have a key.
    pub(super) fn retain(
        &self,
        is_configured: impl Fn(&ProviderName) -> bool,
        has_key: impl Fn(&HostName) -> bool,
    ) {
        let mut kept = self.lock();
        kept.retain(|name, _| is_configured(name));
        for known in kept.values_mut() {
            known.hashes.retain(|host, _| has_key(host));
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProviderName, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token that nobody else has.
fn random_token() -> Result<CallbackToken, RandomError> {
    let mut bytes = Zeroizing::new([0; CALLBACK_TOKEN_BYTES]);
    random::fill(&mut bytes[..])?;
    Ok(CallbackToken::from_bytes(&bytes))
}

/// Tells `provider` of the events of `calls`, in one request.
pub(super) async fn post(
    client: &Client,
    provider: &ProviderName,
    calls: &[Call<'_>],
    credentials: Option<&Credentials>,
) -> Result<HookReply, Failure> {
    let asked: Vec<AskedMember> = calls.iter().map(asked).collect();
    let Received { status, headers, body } = client.post(call_body(calls), credentials).await?;
    let answer = HookAnswer {
        status: status.as_u16(),
        date: named(&headers, header::DATE),
        retry_after: named(&headers, header::RETRY_AFTER),
        content_encoding: named(&headers, header::CONTENT_ENCODING),
        body,
    };
    Ok(answer.interpret(provider, &asked, Utc::now()))
}

fn asked(call: &Call<'_>) -> AskedMember {
    let (event, uuid, host) = (call.event, call.event_uuid, call.device_metadata.name.clone());
    AskedMember { event, uuid, host }
}

/// By what it is known that a provider gives the same again: `target`, which describes the files and the hash, and the contents. It is for this
/// process alone: the provider is told the hash instead.
pub(super) fn validator(target: &str, bytes: &ContentBytes) -> Validator {
    // No target has a line feed.
    let all = Zeroizing::new([target.as_bytes(), b"\n", bytes.as_slice()].concat());
    Validator::new(&all, None, None, None)
}

/// A file of a configuration, as an item has it.
pub(super) fn entry(GivenFile { path, mode, user, group, bytes }: &GivenFile) -> FileEntry {
    FileEntry { path: path.clone(), mode: *mode, user: user.clone(), group: group.clone(), bytes: *bytes }
}
