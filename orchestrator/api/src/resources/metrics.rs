//! `/metrics`: metrics in the `OpenMetrics` text format: slots of FleetLock, hosts, runs, refused requests, the next run,
//! the reboot queue, Kubernetes nodes, units, and this instance. `config/prometheus/alerts.yml` has alerts on them.

mod hosts;
mod instance;
mod nodes;
mod prometheus_text;
mod providers;
mod reboots;
mod runs;
mod units;
mod value;

use std::fs;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::documentation::{METRICS, OPEN_METRICS, PROMETHEUS_TEXT};
use os_upgrade_api_types::routes::slots::SlotGroup;
use os_upgrade_auth::Authenticator;
use os_upgrade_bus::storage::Usage;
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::{Clock, Forecast, MissedRuns, State as Site, WindowBlocker};
use os_upgrade_shell::inventory::Unused;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_store::{Extent, Totals};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::value::{gauge, number};
use crate::context::Api;
use crate::context::{Answers, Options};
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::form::{prefers, vary};
use crate::resources::slots;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&METRICS, read)
}

async fn read(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Unknown until the bus is connected.
    let usage = match api.options.sites.bus() {
        Some(bus) => bus.usage().await,
        None => Vec::new(),
    };
    // Before it is waited for.
    let history_behind = api.history_behind();
    let history = api.history().await;
    let stored = Stored {
        nats: usage,
        history: history.extent().await.ok(),
        history_behind,
        totals: history.totals().await.ok(),
        memory: resident_bytes(),
    };
    let now = Utc::now();
    let published = api.site.published_for_display(now);
    let own_clock = &api.site.published().view.clock;
    let text = text(&api.answers, &published, own_clock, &stored, &api.authenticator, &api.options, now);
    let text = text.map_err(|error| Problem::internal(error.to_string()))?;
    let answer = if prefers(&headers, "text/plain", "application/openmetrics-text") {
        ([(CONTENT_TYPE, PROMETHEUS_TEXT)], prometheus_text::from_open_metrics(&text)).into_response()
    } else {
        ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response()
    };
    Ok(vary(answer))
}

/// What is stored for the site.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) nats: Vec<Usage>,
    /// The history of this instance; `None` if it cannot be read.
    pub(crate) history: Option<Extent>,
    /// How many messages of the journal it is behind.
    pub(crate) history_behind: u64,
    /// How runs and hosts have ended; `None` if that cannot be read.
    pub(crate) totals: Option<Totals>,
    /// The resident memory of this process in bytes; `None` where the system does not tell.
    pub(crate) memory: Option<u64>,
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

pub(crate) fn text(
    answers: &Answers,
    published: &PublishedState,
    own_clock: &Clock,
    stored: &Stored,
    authenticator: &Authenticator,
    options: &Options,
    now: DateTime<Utc>,
) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    let slots = registry.sub_registry_with_prefix("os_upgrade_fleet_lock");
    slots.register("answers", "Answers to FleetLock clients", answers.fleet_lock.clone());
    describe_slots(slots, &published.state, now);
    hosts::describe(&mut registry, published);
    describe_unused(&mut registry, published.unused);
    instance::describe(&mut registry, published, own_clock, &options.last_backup);
    describe_zones(&mut registry, &published.view.zones, now);
    if published.is_read {
        runs::describe(&mut registry, published.state.run.as_ref());
        let is_paused = published.state.pause.is_some();
        registry.register("os_upgrade_paused", "Whether the site is paused", gauge(is_paused.into()));
        hosts::describe_successes(&mut registry, published);
        describe_next_run(&mut registry, &published.forecast(now));
        describe_missed_runs(&mut registry, &published.state.missed);
        reboots::describe(&mut registry, &published.state, &published.view, now);
        nodes::describe(&mut registry, &published.state, now);
        providers::describe(&mut registry, published, now);
        units::describe(&mut registry, published);
    }
    let help = "Call-backs of providers with a valid token, to this instance";
    registry.register("os_upgrade_provider_call_backs", help, answers.call_backs.clone());
    if let Some(totals) = &stored.totals {
        runs::describe_totals(&mut registry, totals);
    }
    describe_storage(&mut registry, &stored.nats);
    if let Some(bytes) = stored.memory {
        // By this name Prometheus knows it of every program.
        let help = "The resident memory of the process";
        registry.register("process_resident_memory_bytes", help, gauge(number(bytes)));
    }
    let help = "How many messages of the journal the history of this instance is behind";
    registry.register("os_upgrade_history_behind", help, gauge(number(stored.history_behind)));
    if let Some(extent) = stored.history {
        describe_history(registry.sub_registry_with_prefix("os_upgrade_history"), extent);
    }
    let api = registry.sub_registry_with_prefix("os_upgrade_api");
    describe_gate(api, authenticator);
    api.register(
        "refused",
        "Connections and requests beyond the limits of [api]",
        options.limits.refused().clone(),
    );
    if let Some(tls) = &options.tls {
        let end = Gauge::<i64>::default();
        end.set(tls.not_after().timestamp());
        let help = "When the API's certificate expires, in seconds since 1970";
        api.register("certificate_not_after_seconds", help, end);
    }
    describe_subscribers(registry.sub_registry_with_prefix("os_upgrade_events"), options);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The clients that follow events.
fn describe_subscribers(registry: &mut Registry, options: &Options) {
    let subscribers = options.limits.subscribers();
    registry.register("subscribers", "Clients that follow events", gauge(number(subscribers.count())));
    let counts = subscribers.counts();
    registry.register("sent", "Events that were sent, once for each subscriber", counts.sent.clone());
    let help = "Subscribers that were cut off, because they did not read for too long";
    registry.register("cut_off", help, counts.cut_off.clone());
}

/// What NATS stores and has, and how much it may: label `of`.
fn describe_storage(registry: &mut Registry, usage: &[Usage]) {
    let mut describe = |name: &str, help: &str, measure: fn(&Usage) -> Option<u64>| {
        let family = Family::<[(&'static str, String); 1], Gauge>::default();
        for part in usage {
            if let Some(value) = measure(part) {
                let labels = [("of", part.of.clone())];
                family.get_or_create(&labels).set(number(value));
            }
        }
        registry.register(name, help, family);
    };
    let help = "Bytes that NATS stores, by stream and account";
    describe("os_upgrade_nats_stored_bytes", help, |part| Some(part.bytes));
    describe("os_upgrade_nats_stored_messages", "Messages that NATS stores, by stream", |part| part.messages);
    let help = "Bytes that NATS may store; absent without a limit, and where the oldest are dropped. A server's own limit is not known";
    describe("os_upgrade_nats_limit_bytes", help, |part| part.limit.filter(|_| !part.drops_oldest));
    describe("os_upgrade_nats_streams", "Streams of the account", |part| Some(part.streams?.used));
    let help = "Streams that the account may have; absent without a limit";
    describe("os_upgrade_nats_limit_streams", help, |part| part.streams?.limit);
    describe("os_upgrade_nats_consumers", "Consumers, by stream and account", |part| {
        Some(part.consumers?.used)
    });
    let help = "Consumers that a stream may have; absent without a limit";
    describe("os_upgrade_nats_limit_consumers", help, |part| {
        // An account's limit holds for each of its streams.
        if part.streams.is_some() { None } else { part.consumers?.limit }
    });
}

/// What the history of this instance covers.
fn describe_history(registry: &mut Registry, extent: Extent) {
    let count = |count: u64| gauge(number(count));
    registry.register(
        "bytes",
        "The size of the SQLite database, without its write-ahead log",
        count(extent.bytes),
    );
    registry.register(
        "log_bytes",
        "The size of the write-ahead log of the SQLite database",
        count(extent.log_bytes),
    );
    registry.register("runs", "The runs in the history", count(extent.runs));
    let help = "How many times records are missing in the history, because the journal was trimmed while the instance was away";
    registry.register("gaps", help, count(extent.gaps));
    if let Some(since) = extent.since {
        let help = "The time of the oldest record of the history, in seconds since 1970";
        registry.register("since_seconds", help, gauge(since.timestamp()));
    }
}

/// The number of messages of workers that were not used: label `kind`.
fn describe_unused(registry: &mut Registry, unused: Unused) {
    let family = Family::<[(&'static str, &'static str); 1], Counter>::default();
    let Unused { messages, replies, losses } = unused;
    for (kind, count) in [("message", messages), ("reply", replies), ("loss", losses)] {
        family.get_or_create(&[("kind", kind)]).inc_by(count);
    }
    let help = "Messages of workers that were not used: unusable or surplus messages, ignored replies that are not journaled, and \
                occasions on which heartbeats or progress may have been lost";
    registry.register("os_upgrade_worker_messages_unused", help, family);
}

/// Which time zone data this instance has, and whether they are old.
fn describe_zones(registry: &mut Registry, zones: &Zones, now: DateTime<Utc>) {
    let info = Family::<[(&'static str, String); 2], Gauge>::default();
    let version = zones.version().unwrap_or("unknown").to_owned();
    info.get_or_create(&[("version", version), ("source", zones.source().as_str().to_owned())]).set(1);
    let help = "The release of the time zone data that this instance uses, and where they are from: system or built-in";
    registry.register("os_upgrade_zone_data", help, info);
    let old = Gauge::<i64>::default();
    old.set(zones.old(now).is_some_and(|old| old.may_move_windows()).into());
    let help = "Whether the time zone data are old, so that windows may open an hour off";
    registry.register("os_upgrade_zone_data_old", help, old);
}

/// When the next run starts automatically, and what prevents it: label `reason`.
fn describe_next_run(registry: &mut Registry, forecast: &Forecast) {
    if let Some(start) = forecast.start() {
        let at = Gauge::<i64>::default();
        at.set(start.at.timestamp());
        let help = "When the next run starts automatically, in seconds since 1970: now, while something prevents it; absent if none is due";
        registry.register("os_upgrade_next_upgrade_seconds", help, at);
    }
    let blocked = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    if let Some(by) = forecast.blocker() {
        blocked.get_or_create(&[("reason", WindowBlocker::kind(by))]).set(1);
    }
    let help = "Whether something prevents runs from starting automatically, in any window or in the one that is open";
    registry.register("os_upgrade_next_upgrade_blocked", help, blocked);
}

/// How many runs were due and did not start, and the last one: label `reason`. It is in the state, so that every instance
/// says the same, and a restart changes nothing.
fn describe_missed_runs(registry: &mut Registry, missed: &MissedRuns) {
    let total = Counter::<u64>::default();
    total.inc_by(missed.total);
    let help = "Runs that were due in a maintenance window and did not start";
    registry.register("os_upgrade_missed_runs", help, total);
    let last = Family::<[(&'static str, &'static str); 1], Gauge>::default();
    if let Some(run) = &missed.last {
        last.get_or_create(&[("reason", run.reason.kind())]).set(run.start.timestamp());
    }
    let help = "When the window of the last such run opened, in seconds since 1970";
    registry.register("os_upgrade_last_missed_run_seconds", help, last);
}

fn describe_gate(registry: &mut Registry, authenticator: &Authenticator) {
    registry.register(
        "denied",
        "Requests that were refused as not authenticated or not authorized",
        authenticator.denials().counts().clone(),
    );
    if let Some(tokens) = authenticator.tokens() {
        let usable = Gauge::<i64>::default();
        usable.set(tokens.problem().is_none().into());
        registry.register(
            "token_file_usable",
            "Whether the token file could be read when it last changed",
            usable,
        );
    }
}

type Measure = fn(&SlotGroup<'_>) -> Option<usize>;

/// The metrics of each group: name, help, value.
const MEASURES: [(&str, &str, Measure); 7] = [
    ("slots", "Slots of the group", |group| group.slots.map(|slots| slots as usize)),
    ("holders", "Slots that are held", |group| Some(group.holders.len())),
    ("excess_holders", "Slots held beyond the number of slots", |group| Some(group.excess)),
    ("stuck_holders", "Slots held for longer than the setting stuck-after", |group| {
        Some(group.holders.iter().filter(|holder| holder.stuck).count())
    }),
    (
        "kept_holders",
        "Slots kept by hosts that failed or were given up, until somebody looks after them",
        |group| Some(group.holders.iter().filter(|holder| holder.kept).count()),
    ),
    ("refused_releases", "Slots that the lock server has not released although it was asked to", |group| {
        Some(group.holders.iter().filter(|holder| holder.why.is_some()).count())
    }),
    ("waiters", "Hosts of runs that wait for a slot, and clients that were recently refused one", |group| {
        Some(group.waiters.len())
    }),
];

fn describe_slots(registry: &mut Registry, site: &Site, now: DateTime<Utc>) {
    let groups: Vec<SlotGroup<'_>> = slots::groups(site, now).collect();
    for (name, help, measure) in MEASURES {
        let family = Family::<[(&'static str, String); 1], Gauge>::default();
        for group in &groups {
            if let Some(count) = measure(group) {
                family.get_or_create(&[("group", group.group.to_string())]).set(number(count));
            }
        }
        registry.register(name, help, family);
    }
}
