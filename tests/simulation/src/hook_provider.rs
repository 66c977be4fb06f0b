//! Configuration providers of kind `hooks`: what they know besides their words, and how they answer, or lie.

use std::collections::BTreeMap;

use fastrand::Rng;
use os_upgrade_kernel::ConfigProvider;
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::{CALLBACK_TOKEN_BYTES, CallbackToken};
use os_upgrade_shell::delivery::HookQuestion;
use os_upgrade_shell::forward::{Answered, Outcome};
use os_upgrade_shell::instance::CallId;
use serde_json::{Value, json};

/// The content that no provider has: contents are counted from 1.
const NEVER_GIVEN: u64 = 0;

/// Devices of a provider, each with the number of its last change.
pub(crate) type Changes = BTreeMap<HostName, u64>;

/// What all providers of kind `hooks` know.
#[derive(Debug, Default)]
pub(crate) struct HookProviders {
    /// The digests of the tokens that each was given, the oldest first.
    tokens: BTreeMap<ProviderName, Vec<String>>,
    /// The devices for which something has changed since a call-back about them was accepted.
    untold: BTreeMap<ProviderName, Changes>,
    /// The call-backs that are not answered yet.
    calling: BTreeMap<CallId, (ProviderName, Changes)>,
    /// Counts changes.
    changes: u64,
}

impl HookProviders {
    /// Draws a token. Returns its digest, by which it is known here.
    pub(crate) fn draw(rng: &mut Rng) -> String {
        let mut bytes = [0; CALLBACK_TOKEN_BYTES];
        rng.fill(&mut bytes);
        CallbackToken::from_bytes(&bytes).digest()
    }

    /// `provider` is given the token with this digest.
    pub(crate) fn gets(&mut self, provider: &ProviderName, token: &str) {
        let tokens = self.tokens.entry(provider.clone()).or_default();
        if tokens.last().is_none_or(|last| last != token) {
            tokens.push(token.to_owned());
        }
    }

    /// The tokens of `provider`, the oldest first.
    pub(crate) fn tokens(&self, provider: &ProviderName) -> &[String] {
        self.tokens.get(provider).map(Vec::as_slice).unwrap_or_default()
    }

    /// `provider` has something else for `host`.
    pub(crate) fn changed(&mut self, provider: &ProviderName, host: &HostName) {
        self.changes += 1;
        self.untold.entry(provider.clone()).or_default().insert(host.clone(), self.changes);
    }

    /// What `provider` has changed, and no accepted call-back was about.
    pub(crate) fn untold(&self, provider: &ProviderName) -> Changes {
        self.untold.get(provider).cloned().unwrap_or_default()
    }

    /// `provider` calls back about `changes`; the call has this number.
    pub(crate) fn calls_back(&mut self, call: CallId, provider: &ProviderName, changes: Changes) {
        self.calling.insert(call, (provider.clone(), changes));
    }

    /// A call is answered. If it is an accepted call-back, the provider relies on being asked about what it had changed by then.
    pub(crate) fn answered(&mut self, call: CallId, outcome: &Outcome) {
        let Some((provider, told)) = self.calling.remove(&call) else { return };
        let is_accepted = matches!(outcome, Ok(Answered { answer: Ok(_), .. }));
        if let Some(untold) = self.untold.get_mut(&provider).filter(|_| is_accepted) {
            untold.retain(|host, change| told.get(host) != Some(change));
        }
    }
}

/// A process of an instance: the number of the instance, and its own.
pub(crate) type Caller = (usize, u32);

/// What planted bugs remember of calls.
#[derive(Debug, Default)]
pub(crate) struct SabotagedCalls {
    /// The last poll of each pair, and who made it.
    pub(crate) polls: BTreeMap<(ProviderName, HostName), (Caller, HookQuestion)>,
    /// The cause of the first `ON_FLEET_JOIN` that a process told of each pair.
    pub(crate) joins: BTreeMap<(Caller, ProviderName, HostName), u64>,
}

/// A device that a provider is told of, and what that has for it.
#[derive(Debug)]
pub(crate) struct Device<'a> {
    pub(crate) host: &'a HostName,
    pub(crate) hook: &'a HookQuestion,
    /// The number of the content.
    pub(crate) word: Option<u64>,
}

/// A provider's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The seconds of `Retry-After`, if it has that.
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// The text that stands for the hash of a content.
pub(crate) fn hash(content: u64) -> String {
    format!("hash of {content}")
}

/// What a provider says about devices, in any order. It says that nothing has changed where it can see that.
pub(crate) fn members(
    rng: &mut Rng,
    provider: &ConfigProvider,
    devices: &[Device<'_>],
    has_intervals: bool,
) -> Vec<Value> {
    let mut members: Vec<Value> = devices
        .iter()
        .map(|device| {
            let mut member = member(provider, device);
            let last = device.hook.applied.as_ref().and_then(|applied| applied.hash.as_deref());
            let is_last = device.word.map(hash).as_deref() == last && last.is_some();
            if !is_last || rng.u32(..4) == 0 {
                member["configuration"] = device.word.map_or(Value::Null, content);
            }
            if has_intervals && rng.u32(..3) == 0 {
                let intervals = [json!(60), json!(600), json!("2h"), json!(0), json!(u64::MAX), Value::Null];
                member["poll_interval"] = rng.choice(intervals).expect("not empty");
            }
            member
        })
        .collect();
    rng.shuffle(&mut members);
    members
}

/// What is said about a device, but for what it is to have.
fn member(provider: &ConfigProvider, device: &Device<'_>) -> Value {
    json!({
        "event": device.hook.event,
        "event_uuid": device.hook.uuid,
        "device_name": device.host,
        "config_name": provider.name,
    })
}

fn content(content: u64) -> Value {
    json!(format!("content {content}"))
}

/// What a provider of kind `hooks` answers that is out of order, or lies: nothing of it may become what a host has, unless it is true.
pub(crate) fn lie(rng: &mut Rng, mut members: Vec<Value>, others: &[HostName]) -> Answer {
    let with_status = |status, retry_after| Answer { status, retry_after, body: Vec::new() };
    let index = rng.usize(..members.len());
    let mut changed = members[index].clone();
    changed["configuration"] = content(NEVER_GIVEN);
    let others: Vec<&HostName> =
        others.iter().filter(|host| changed["device_name"] != host.as_str()).collect();
    let other = rng.choice(&others).map_or("nobody", |host| host.as_str()).to_owned();
    match rng.u32(..9) {
        0 => return with_status(503, rng.bool().then(|| rng.u64(..60).to_string())),
        1 => return with_status(429, Some(rng.u64(..60).to_string())),
        2 => return with_status(rng.choice([302, 401, 404, 500]).expect("not empty"), None),
        3 => return Answer { status: 200, retry_after: None, body: b"<p>Please sign in".to_vec() },
        // It leaves a device out.
        4 => {
            members.remove(index);
        }
        // It says two things about a device.
        5 => members.push(changed),
        // It gives a device what is in the name of another.
        6 => {
            changed["device_name"] = json!(other);
            members[index] = changed;
        }
        // It says something about a device of which it was not told.
        7 => {
            changed["event_uuid"] = json!("315f4c68-6ab6-49e7-b742-9c033bd11b80");
            changed["device_name"] = json!(other);
            members.push(changed);
        }
        // It takes the site for another.
        _ => {
            changed["config_name"] = json!("another");
            members[index] = changed;
        }
    }
    let body = serde_json::to_vec(&members).expect("it is JSON");
    Answer { status: 200, retry_after: None, body }
}
