//! What a seed decides about what hosts are to have: which providers say so, and which hosts take it. It has a stream of random numbers of its
//! own, so that worlds without providers stay what they were.

use fastrand::Rng;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{ConfigProvider, OnRemoval};
use os_upgrade_protocol::HostName;
use serde_json::json;

use crate::bug::Bug;
use crate::time::{Micros, SECOND};

/// Makes the stream of delivery another one than those of the rest.
const STREAM: u64 = 0x6465_6c69_7665_7279;

/// Makes the stream of what is forgotten another one than those of the rest.
const FORGETTING_STREAM: u64 = 0x666f_7267_6574_7321;

/// Makes the stream of what providers of kind `hooks` do another one than those of the rest.
const HOOKS_STREAM: u64 = 0x686f_6f6b_7320_6469;

/// The delivery of a world that has providers.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct DeliveryPlan {
    /// The providers that are usually configured.
    pub(crate) providers: Vec<ConfigProvider>,
    /// Which hosts take configuration.
    pub(crate) configures: Vec<bool>,
    /// Whether providers' contents have fingerprints, as with the key of a strongbox.
    pub(crate) has_fingerprints: bool,
    /// Whether providers send an `ETag`, so that they can be asked conditionally.
    pub(crate) has_etags: bool,
    /// The mean time between two acts of operators and providers.
    pub(crate) act_every: Micros,
    /// Whether the site is restored after its machine was rolled back.
    pub(crate) is_restored: bool,
    /// Whether a host is removed at the end. Otherwise one is withdrawn.
    pub(crate) removes_host: bool,
    /// Whether providers of kind `hooks` sometimes say how often they want to be asked.
    pub(crate) has_intervals: bool,
}

/// The random numbers that decide about delivery.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

/// The random numbers that decide what sites and workers forget.
pub(crate) fn forgetting_stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ FORGETTING_STREAM)
}

/// The random numbers that decide about providers of kind `hooks`.
pub(crate) fn hooks_stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ HOOKS_STREAM)
}

impl DeliveryPlan {
    pub(crate) fn draw(rng: &mut Rng, hosts: &[HostName]) -> Self {
        let names = if rng.bool() { &["app", "net"][..] } else { &["app"] };
        Self {
            providers: names.iter().map(|name| draw_provider(rng, name, hosts)).collect(),
            configures: hosts.iter().map(|_| rng.u32(..6) > 0).collect(),
            has_fingerprints: rng.bool(),
            has_etags: rng.u32(..3) > 0,
            act_every: rng.u64(1..15) * SECOND,
            is_restored: rng.u32(..3) > 0,
            removes_host: false,
            has_intervals: false,
        }
    }

    /// The plan with at least one provider of kind `hooks`.
    pub(crate) fn with_hooks(mut self, rng: &mut Rng) -> Self {
        let one = rng.usize(..self.providers.len());
        for (index, provider) in self.providers.iter_mut().enumerate() {
            if index == one || rng.bool() {
                *provider = as_hooks(rng, provider);
            }
        }
        self.has_intervals = rng.bool();
        self
    }

    /// Changes the providers of kind `hooks` so that `bug` can show.
    pub(crate) fn plant_hooks(&mut self, bug: Bug) {
        // Polls would find what call-backs and joins miss.
        let is_polled = !matches!(bug, Bug::CallBackForgotten | Bug::JoinOncePerLeadership);
        let poll_interval = Duration::from_secs(if is_polled { 20 } else { 7_200 });
        self.has_intervals = false;
        for provider in self.providers.iter_mut().filter(|provider| provider.is_hooks()) {
            (provider.poll_interval, provider.batch_size) = (poll_interval, 3);
            (provider.events, provider.selector) = (None, None);
        }
    }

    /// The providers of kind `hooks`.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &ConfigProvider> {
        self.providers.iter().filter(|provider| provider.is_hooks())
    }

    /// The providers as an operator configures them, perhaps with changes.
    pub(crate) fn configured(&self, rng: &mut Rng, hosts: &[HostName]) -> Vec<ConfigProvider> {
        let changed = |rng: &mut Rng, provider: &ConfigProvider| match rng.u32(..8) {
            0 => None,
            1 if provider.is_hooks() => {
                let drawn = draw_provider(rng, provider.name.as_str(), hosts);
                Some(as_hooks(rng, &drawn))
            }
            1 => Some(draw_provider(rng, provider.name.as_str(), hosts)),
            2..=7 => Some(provider.clone()),
            number => unreachable!("{number} is below 8"),
        };
        self.providers.iter().filter_map(|provider| changed(rng, provider)).collect()
    }
}

fn draw_provider(rng: &mut Rng, name: &str, hosts: &[HostName]) -> ConfigProvider {
    let mut selected: Vec<&HostName> = hosts.iter().filter(|_| rng.u32(..4) > 0).collect();
    selected.truncate(if rng.u32(..4) == 0 { selected.len() } else { 0 });
    let selector = (!selected.is_empty()).then(|| json!({ "names": selected }));
    let mut provider = json!({
        "name": name,
        "kind": "http",
        "url": format!("https://files.example/{name}/{{host}}"),
        "poll-interval": format!("{}s", rng.u64(10..40)),
        "max-in-flight": rng.u32(1..4),
        "on-removal": if rng.bool() { "remove" } else { "keep" },
    });
    if let Some(selector) = selector {
        provider["selector"] = selector;
    }
    serde_json::from_value(provider).expect("a provider")
}

/// The provider as one of kind `hooks`, which is often polled so rarely that only its call-backs say when something has changed. Hosts
/// join it and their specs are told, or it would never be asked about some.
fn as_hooks(rng: &mut Rng, provider: &ConfigProvider) -> ConfigProvider {
    let ConfigProvider { name, max_in_flight, on_removal, selector, .. } = provider;
    let poll_interval = if rng.bool() { "2h".to_owned() } else { format!("{}s", rng.u64(10..40)) };
    let mut hooks = json!({
        "name": name,
        "kind": "hooks",
        "url": format!("https://hooks.example/{name}"),
        "poll-interval": poll_interval,
        "max-in-flight": max_in_flight,
        "batch-size": rng.u32(1..4),
        "on-removal": on_removal,
    });
    if let Some(selector) = selector {
        hooks["selector"] = json!(selector);
    }
    if rng.u32(..3) == 0 {
        let more = ["ON_ENROLLMENT_REQUEST", "ON_DEVICE_METADATA_UPDATE", "ON_DEVICE_POLL"];
        let more = more.into_iter().filter(|_| rng.bool());
        let events: Vec<&str> = ["ON_FLEET_JOIN", "ON_DEVICE_SPEC_UPDATE"].into_iter().chain(more).collect();
        hooks["events"] = json!(events);
    }
    serde_json::from_value(hooks).expect("a provider")
}

/// Whether a host keeps what it has of `provider` once that has nothing for it.
pub(crate) fn keeps(provider: &ConfigProvider, host: &HostName) -> bool {
    // Of kind `hooks`, one that selects the host says so in so many words, which always counts.
    if provider.is_hooks() && provider.selects(host) {
        return false;
    }
    match provider.on_removal {
        OnRemoval::Keep => true,
        OnRemoval::Remove => false,
    }
}
