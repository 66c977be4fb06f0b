//! Metrics of configuration for hosts.

use chrono::{DateTime, Utc};
use os_upgrade_api_types::text::ITEM_STATES;
use os_upgrade_kernel::{ConfigProvider, Withholding};
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_site::published_state::PublishedState;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};
use crate::bodies::configuration;
use crate::resources::providers::selected;

type ByProvider = Family<[(&'static str, String); 1], Gauge>;
type ByProviderAndWord = Family<[(&'static str, String); 2], Gauge>;

/// Describes the providers and what hosts have of them at `now`.
pub(super) fn describe(registry: &mut Registry, published: &PublishedState, now: DateTime<Utc>) {
    let (hosts, pending) = (ByProviderAndWord::default(), ByProviderAndWord::default());
    let (failed, failing, oldest) = (ByProvider::default(), ByProvider::default(), ByProvider::default());
    for provider in published.state.config.iter().flat_map(|config| &config.config_providers) {
        let labels = [("provider", provider.name.to_string())];
        let is_failed = published.state.desired.failed.contains_key(&provider.name);
        failed.get_or_create(&labels).set(is_failed.into());
        for state in ITEM_STATES {
            hosts
                .get_or_create(&[("provider", provider.name.to_string()), ("state", (*state).to_owned())])
                .set(0);
        }
        for host in selected(published, provider) {
            let state = configuration::progress(published, provider, host).state.to_string();
            hosts.get_or_create(&[("provider", provider.name.to_string()), ("state", state)]).inc();
        }
        if provider.is_hooks() {
            count_pending(&pending, published, provider);
        }
        let Some(polled) = Polled::of(published, provider, now) else { continue };
        failing.get_or_create(&labels).set(number(polled.failing));
        if let Some(age) = polled.oldest_secs {
            oldest.get_or_create(&labels).set(age);
        }
    }
    let help = "Hosts that take part and that the provider selects, by how far their configuration of it is";
    registry.register("os_upgrade_provider_hosts", help, hosts);
    let help = "Whether the provider fails for every host";
    registry.register("os_upgrade_provider_failed", help, failed);
    let help = "Hosts about which asking the provider failed last; of the leader only";
    registry.register("os_upgrade_provider_failing_hosts", help, failing);
    let help = "How long ago the provider last said what a host is to have, of the host for which that is longest; of the leader only";
    registry.register("os_upgrade_provider_oldest_confirmation_seconds", help, oldest);
    let help = "Events of hosts of which the provider, of kind hooks, is still to be told";
    registry.register("os_upgrade_provider_pending_events", help, pending);
    let items = published.state.failed_items(&published.view, now).count();
    let help = "Configurations that hosts fail to apply or to revoke, for ten minutes or longer";
    registry.register("os_upgrade_failed_configurations", help, gauge(number(items)));
    let reasons = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    let of = |why: Withholding| match why {
        Withholding::Restored => [("reason", "restored")],
        Withholding::Ahead => [("reason", "ahead")],
    };
    for why in [Withholding::Restored, Withholding::Ahead] {
        reasons.get_or_create(&of(why)).set(0);
    }
    for (_, why) in published.state.withheld_hosts(&published.view) {
        reasons.get_or_create(&of(why)).inc();
    }
    let help = "Hosts that are not told what configuration to have until an operator says so: the site was restored, or they are ahead of it";
    registry.register("os_upgrade_withheld_hosts", help, reasons);
    let help =
        "Whether the stream of what hosts are to have is that of another site, as the leader has found";
    registry.register("os_upgrade_crossed_site", help, gauge(published.crossed_site.is_some().into()));
}

/// Counts the events of which `provider`, of kind `hooks`, is still to be told.
fn count_pending(pending: &ByProviderAndWord, published: &PublishedState, provider: &ConfigProvider) {
    let labels =
        |event: HookEvent| [("provider", provider.name.to_string()), ("event", event.as_str().to_owned())];
    for event in HookEvent::ALL {
        pending.get_or_create(&labels(event)).set(0);
    }
    let known = published.state.desired.hooks.get(&provider.name);
    let devices = known.into_iter().flat_map(|known| known.devices.values());
    for event in devices.flat_map(|device| device.pending.keys()) {
        pending.get_or_create(&labels(*event)).inc();
    }
}

/// What a provider has said of all its hosts to this leader.
struct Polled {
    failing: usize,
    /// The age of the oldest confirmation; `None` if there is none yet.
    oldest_secs: Option<i64>,
}

impl Polled {
    /// `None` if this instance does not lead.
    fn of(published: &PublishedState, provider: &ConfigProvider, now: DateTime<Utc>) -> Option<Self> {
        published.view.polls.as_ref()?;
        let polls = || {
            selected(published, provider)
                .filter_map(|host| configuration::last_poll(published, provider, host))
        };
        let oldest = polls().filter_map(|poll| poll.confirmed_at).min();
        Some(Self {
            failing: polls().filter(|poll| poll.failure.is_some()).count(),
            oldest_secs: oldest.map(|at| (now - at).num_seconds().max(0)),
        })
    }
}
