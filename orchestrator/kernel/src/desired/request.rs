//! What operators ask for: that a provider is asked at once, that hosts are told again what they are to have, and that a provider gets
//! another token. And what providers ask for that call back.

use std::collections::BTreeSet;

use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::ProviderName;
use serde::{Deserialize, Serialize};

use super::fact::DesiredFact;
use crate::answer::{Granted, RefusalClass};
use crate::fact::Fact;
use crate::state::State;
use crate::view::View;

/// An operation on what hosts are to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum DesiredOperation {
    /// Ask a provider at once what hosts are to have.
    Poll {
        provider: ProviderName,
        /// About which host; absent for all that it selects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostName>,
    },
    /// Tell hosts again what they are to have, after a restoration, or a host that has something newer. Where that is done anyway, nothing
    /// changes.
    Resume {
        /// The host; absent for all. A host that has something newer must be named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<HostName>,
    },
    /// Let a provider no longer call back with the tokens that it has. The leader draws another one.
    RotateToken { provider: ProviderName },
    /// A provider calls back: it has something new for hosts. Those that it does not select are left out.
    CallBack { provider: ProviderName, hosts: Vec<HostName> },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum DesiredRefusal {
    /// There is no provider of that name.
    UnknownProvider { provider: ProviderName },
    /// The provider does not select the host, or the host takes no part, or no key of it is approved.
    NotSelected { provider: ProviderName, host: HostName },
    /// The host neither is to have something, nor says that it has.
    NothingDesired { host: HostName },
    /// The host reports an epoch that is the last one possible.
    NoNewerEpoch { host: HostName },
    /// The provider is not of kind `hooks`.
    NotHooks { provider: ProviderName },
}

impl DesiredRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::UnknownProvider { .. } | Self::NothingDesired { .. } => RefusalClass::Missing,
            Self::NotSelected { .. } | Self::NoNewerEpoch { .. } | Self::NotHooks { .. } => {
                RefusalClass::Conflict
            }
        }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &DesiredOperation,
    actor: &str,
) -> Result<Granted, DesiredRefusal> {
    let facts = match operation {
        DesiredOperation::Poll { provider, host } => {
            vec![poll(state, provider, host.as_ref(), actor)?.into()]
        }
        DesiredOperation::Resume { host: Some(host) } => {
            resume(state, view, host, actor)?.map(Into::into).into_iter().collect()
        }
        DesiredOperation::Resume { host: None } => resume_all(state, view, actor),
        DesiredOperation::RotateToken { provider } => {
            rotate_token(state, provider, actor)?.map(Into::into).into_iter().collect()
        }
        DesiredOperation::CallBack { provider, hosts } => {
            call_back(state, provider, hosts)?.map(Into::into).into_iter().collect()
        }
    };
    Ok(Granted::done(facts))
}

fn poll(
    state: &State,
    provider: &ProviderName,
    host: Option<&HostName>,
    actor: &str,
) -> Result<DesiredFact, DesiredRefusal> {
    if state.config.as_ref().is_none_or(|config| config.provider(provider).is_none()) {
        return Err(DesiredRefusal::UnknownProvider { provider: provider.clone() });
    }
    if let Some(host) = host.filter(|host| state.provider_for(provider, host).is_none()) {
        return Err(DesiredRefusal::NotSelected { provider: provider.clone(), host: host.clone() });
    }
    let (provider, host, actor) = (provider.clone(), host.cloned(), actor.to_owned());
    Ok(DesiredFact::PollRequested { provider, host, actor })
}

/// Revokes the tokens of a provider, if it has any.
fn rotate_token(
    state: &State,
    provider: &ProviderName,
    actor: &str,
) -> Result<Option<DesiredFact>, DesiredRefusal> {
    check_hooks(state, provider)?;
    let has_tokens = state.desired.hooks.get(provider).is_some_and(|known| !known.tokens.is_empty());
    let revoked = || DesiredFact::HookTokensRevoked { provider: provider.clone(), actor: actor.to_owned() };
    Ok(has_tokens.then(revoked))
}

/// A provider has something new for those of `hosts` that it selects, and that take part.
fn call_back(
    state: &State,
    provider: &ProviderName,
    hosts: &[HostName],
) -> Result<Option<DesiredFact>, DesiredRefusal> {
    check_hooks(state, provider)?;
    let is_told = |host: &&HostName| {
        state.provider_for(provider, host).is_some() && state.hook_device(provider, host).is_some()
    };
    let distinct: BTreeSet<&HostName> = hosts.iter().filter(is_told).collect();
    let hosts: Vec<HostName> = distinct.into_iter().cloned().collect();
    let provider = provider.clone();
    Ok((!hosts.is_empty()).then_some(DesiredFact::CallbackReceived { provider, hosts }))
}

fn check_hooks(state: &State, name: &ProviderName) -> Result<(), DesiredRefusal> {
    match state.config.as_ref().and_then(|config| config.provider(name)) {
        Some(provider) if provider.is_hooks() => Ok(()),
        Some(_) => Err(DesiredRefusal::NotHooks { provider: name.clone() }),
        None => Err(DesiredRefusal::UnknownProvider { provider: name.clone() }),
    }
}

/// Resumes the delivery to `host`, in an epoch that is greater than any that the host has reported.
fn resume(
    state: &State,
    view: &View,
    host: &HostName,
    actor: &str,
) -> Result<Option<DesiredFact>, DesiredRefusal> {
    let applied = view.applied(host);
    if applied.is_none() && !state.desired.hosts.contains_key(host) {
        return Err(DesiredRefusal::NothingDesired { host: host.clone() });
    }
    let is_ahead = state.is_ahead(view, host);
    let is_unknown =
        !state.desired.hosts.contains_key(host) && applied.is_some_and(|applied| !applied.items.is_empty());
    if state.is_delivered(host) && !is_ahead && !is_unknown {
        return Ok(None);
    }
    let after = applied.filter(|_| is_ahead).map(|applied| applied.revision.epoch.checked_add(1));
    let greater = after.unwrap_or(Some(0));
    let greater = greater.ok_or_else(|| DesiredRefusal::NoNewerEpoch { host: host.clone() })?;
    let epoch = greater.max(state.desired_revision(host).epoch);
    let (host, actor) = (Some(host.clone()), actor.to_owned());
    Ok(Some(DesiredFact::DeliveryResumed { host, epoch, actor }))
}

/// Resumes the delivery after a restoration.
fn resume_all(state: &State, view: &View, actor: &str) -> Vec<Fact> {
    let epoch = state.epoch();
    if epoch <= state.desired.resumed {
        return Vec::new();
    }
    let resumed = DesiredFact::DeliveryResumed { host: None, epoch, actor: actor.to_owned() };
    [resumed].into_iter().chain(state.find_unknown(view)).map(Into::into).collect()
}
