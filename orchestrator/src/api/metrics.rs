//! `/metrics`: numbers for a Prometheus, in the `OpenMetrics` text format. About FleetLock's slots only, so far.

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::State as Site;
use os_upgrade_kernel::semaphore::Semaphore;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Api;
use super::error::Problem;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How often FleetLock clients were answered what: labels `operation` and `kind`, which is `granted`, or an error's.
pub(super) type Answers = Family<[(&'static str, &'static str); 2], Counter>;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/metrics", get(read))
}

/// 200, by any instance; the answers are its own.
async fn read(State(api): State<Api>) -> Result<Response, Problem> {
    let text = text(&api.answers, &api.site.present().state, Utc::now());
    let text = text.map_err(|error| Problem::internal(error.to_string()))?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

pub(super) fn text(answers: &Answers, site: &Site, now: DateTime<Utc>) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("os_upgrade_fleet_lock");
    registry.register("answers", "Answers to FleetLock clients", answers.clone());
    describe(&mut registry, site, now);
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

type Measure = fn(&Site, &Semaphore, DateTime<Utc>) -> usize;

/// What is measured of each group.
const MEASURES: [(&str, &str, Measure); 5] = [
    ("slots", "Slots that there are", |_, semaphore, _| semaphore.slots as usize),
    ("holders", "Slots that are held", |_, semaphore, _| semaphore.holders.len()),
    ("excess_holders", "Slots held beyond those that there are", |_, semaphore, _| semaphore.excess()),
    ("stuck_holders", "Slots held for longer than the setting stuck-after", |site, semaphore, now| {
        semaphore.holders.values().filter(|holder| site.settings.is_stuck(holder.since, now)).count()
    }),
    ("waiters", "Clients that were refused a slot a short while ago", |_, semaphore, now| {
        semaphore.waiters.remembered(now).count()
    }),
];

fn describe(registry: &mut Registry, site: &Site, now: DateTime<Utc>) {
    for (name, help, measure) in MEASURES {
        let family = Family::<[(&'static str, String); 1], Gauge>::default();
        for (group, semaphore) in site.semaphores.iter() {
            let number = i64::try_from(measure(site, semaphore, now)).unwrap_or(i64::MAX);
            family.get_or_create(&[("group", group.to_string())]).set(number);
        }
        registry.register(name, help, family);
    }
}
