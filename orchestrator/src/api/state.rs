//! `/v1/state/os-upgrade`: the configuration in force, and how upgrades stand.
//!
//! Keys that do not apply are absent: without a configuration its keys and `scheduled-workers`, without a run in the
//! past `last-upgrade-info`, without an open window ahead `next-upgrade-in`. Extensions of the specification:
//! `next-upgrade-at` and `next-upgrade-reason`, `current-upgrade-info` while a run is active, `id` and `counts` of a
//! run, `since`, `reason` and `reason-kind` of a host in it, and `hosts`, which says of every host why it is not moving.
//!
//! What is not asked for is not worked out: a large site's answers are given while a run goes on.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::config::{Rollout, WorkerApplication};
use os_upgrade_kernel::duration::Duration;
use os_upgrade_kernel::{Config, Forecast, HostStatus, Run, StopCause, Window, WindowBlocker, explain};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Parameters, Params};
use super::fields::{Keep, Kept};
use super::hosts::ProgressBody;
use super::openapi::tag;
use super::openapi::types::{self, HostStatusWord, NextReasonWord, RunResultWord, SiteStatusWord};
use super::reply::{HostOfRun, Stamp};
use super::{config, hosts};
use crate::site::Present;

/// About how many bytes a host takes in the answer: in the list of workers, in two runs, and by itself.
const BYTES_PER_HOST: usize = 512;

/// The paths of all fields.
pub(super) static FIELDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| config::FIELDS.iter().chain(&NOT_CONFIGURED).copied().collect());

/// The paths of those that are not the configuration's.
const NOT_CONFIGURED: [&str; 45] = [
    "status",
    "next-upgrade-in",
    "next-upgrade-at",
    "next-upgrade-reason",
    "scheduled-workers",
    "scheduled-workers/host",
    "scheduled-workers/application",
    "pending-hosts",
    "current-upgrade-info",
    "current-upgrade-info/id",
    "current-upgrade-info/start-time",
    "current-upgrade-info/not-after",
    "current-upgrade-info/stopping",
    "current-upgrade-info/stopping/kind",
    "current-upgrade-info/stopping/host",
    "current-upgrade-info/stopping/actor",
    "current-upgrade-info/counts",
    "current-upgrade-info/counts/*",
    "current-upgrade-info/hosts",
    "current-upgrade-info/hosts/hostname",
    "current-upgrade-info/hosts/status",
    "current-upgrade-info/hosts/since",
    "current-upgrade-info/hosts/reason",
    "current-upgrade-info/hosts/reason-kind",
    "last-upgrade-info",
    "last-upgrade-info/id",
    "last-upgrade-info/start-time",
    "last-upgrade-info/end-time",
    "last-upgrade-info/result",
    "last-upgrade-info/counts",
    "last-upgrade-info/counts/*",
    "last-upgrade-info/hosts",
    "last-upgrade-info/hosts/hostname",
    "last-upgrade-info/hosts/status",
    "last-upgrade-info/hosts/since",
    "last-upgrade-info/hosts/reason",
    "last-upgrade-info/hosts/reason-kind",
    "hosts",
    "hosts/hostname",
    "hosts/status",
    "hosts/why",
    "hosts/until",
    "hosts/progress",
    "hosts/progress/percent",
    "hosts/progress/text",
];

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(read))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadParameters {
    /// Retrieve only requested fields from the resource: names, nested with `/`, separated by commas.
    #[param(example = "status,last-upgrade-info/result")]
    fields: Option<String>,
    /// Filter descendant nodes in the response: only the configuration's, or only the others.
    #[param(inline)]
    content: Option<Nodes>,
}

impl Parameters for ReadParameters {
    const NAMES: &'static [&'static str] = &["fields", "content"];
}

/// Which nodes are wanted.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Nodes {
    Config,
    Nonconfig,
}

impl ReadParameters {
    fn keep(&self) -> Result<Keep, Problem> {
        let keep = self.fields.as_ref().map_or(Ok(Keep::All), |fields| Keep::parse(fields, &FIELDS))?;
        let is_configured = |name: &str| config::FIELDS.contains(&name);
        Ok(match self.content {
            None => keep,
            Some(Nodes::Config) => keep.retain(&FIELDS, is_configured),
            Some(Nodes::Nonconfig) => keep.retain(&FIELDS, |name| !is_configured(name)),
        })
    }
}

#[utoipa::path(
    get, path = "/v1/state/os-upgrade", operation_id = "read-state", tag = tag::UPGRADES,
    summary = "Retrieve the state of os upgrade",
    params(ReadParameters),
    responses(
        (status = 200, description = "the configuration in force, and how upgrades stand", body = StateBody),
    )
)]
async fn read(State(api): State<Api>, Params(params): Params<ReadParameters>) -> Result<Response, Problem> {
    let keep = params.keep()?;
    let present = api.present()?;
    let hosts = size(&present, &keep);
    api.render(hosts, move || write(&present, &keep, Utc::now())).await
}

/// The most hosts that any list of the answer has.
fn size(present: &Present, keep: &Keep) -> usize {
    let of_run = |name: &str, run: &Option<Run>| {
        run.as_ref().filter(|_| keep.has(name)).map_or(0, |run| run.hosts().len())
    };
    let of_hosts = ["hosts", "scheduled-workers", "pending-hosts"];
    let seen = if of_hosts.iter().any(|name| keep.has(name)) {
        present.view.hosts.len().max(present.versions.len())
    } else {
        0
    };
    let state = &present.state;
    seen.max(of_run("current-upgrade-info", &state.run)).max(of_run("last-upgrade-info", &state.last_run))
}

/// What of the answer is wanted, as it is at `now`.
pub(super) fn write(present: &Arc<Present>, keep: &Keep, now: DateTime<Utc>) -> serde_json::Result<Vec<u8>> {
    let needs_forecast = ["next-upgrade-in", "next-upgrade-at", "next-upgrade-reason", "hosts"];
    let forecast = needs_forecast.iter().any(|name| keep.has(name)).then(|| present.forecast(now));
    let mut bytes = Vec::with_capacity(1_024 + size(present, keep) * BYTES_PER_HOST);
    serde_json::to_writer(&mut bytes, &Kept(&StateBody::of(present, forecast.as_ref(), now, keep), keep))?;
    Ok(bytes)
}

#[derive(Serialize, ToSchema)]
#[schema(as = State)]
#[serde(rename_all = "kebab-case")]
struct StateBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<types::WorkerApplicationBody>>)]
    worker_applications: Option<&'a [WorkerApplication]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<types::WindowBody>>)]
    maintenance_windows: &'a [Window],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<types::WindowBody>>)]
    deny_windows: &'a [Window],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::DurationText>)]
    start_jitter: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::DurationText>)]
    minimum_remaining: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::RolloutBody>)]
    rollout: Option<&'a Rollout>,
    #[schema(value_type = SiteStatusWord)]
    status: &'static str,
    /// How long it is until the next run starts by itself; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::DurationText>)]
    next_upgrade_in: Option<Duration>,
    /// When it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_upgrade_at: Option<Stamp>,
    /// Why none starts by itself, or what keeps it from starting in a window that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NextReasonWord>)]
    next_upgrade_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ScheduledWorker>>)]
    scheduled_workers: Option<ScheduledWorkers<'a>>,
    /// How many hosts have announced themselves and wait for approval; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_hosts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_upgrade_info: Option<CurrentUpgrade<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_upgrade_info: Option<LastUpgrade<'a>>,
    /// Every host that is known, and why it is not moving.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<HostState>)]
    hosts: Option<Explained<'a>>,
}

impl<'a> StateBody<'a> {
    fn of(present: &'a Present, forecast: Option<&'a Forecast>, now: DateTime<Utc>, keep: &Keep) -> Self {
        let state = &present.state;
        let config = state.config.as_deref();
        let applications = config.map(|config| config.worker_applications.as_slice());
        let start = forecast.and_then(Forecast::start).map(|start| start.at);
        let written = |duration: fn(&Config) -> Duration| {
            config.map(duration).filter(|duration| duration.as_secs() > 0)
        };
        let waiting = keep.has("pending-hosts").then(|| hosts::pending(present));
        let current = state.run.as_ref().filter(|_| keep.has("current-upgrade-info"));
        let last = state.last_run.as_ref().filter(|_| keep.has("last-upgrade-info"));
        Self {
            worker_applications: applications,
            maintenance_windows: config.map_or(&[], |config| &config.maintenance_windows),
            deny_windows: config.map_or(&[], |config| &config.deny_windows),
            start_jitter: written(|config| config.start_jitter),
            minimum_remaining: written(|config| config.minimum_remaining),
            rollout: config.map(|config| &config.rollout).filter(|rollout| **rollout != Rollout::default()),
            status: state.run.as_ref().map_or("idle", |run| run.phase.as_str()),
            next_upgrade_in: start.map(|at| until(at, now)),
            next_upgrade_at: start.map(Stamp),
            next_upgrade_reason: forecast.and_then(Forecast::blocker).map(WindowBlocker::kind),
            pending_hosts: waiting.filter(|hosts| *hosts > 0),
            scheduled_workers: applications.map(|applications| ScheduledWorkers::of(present, applications)),
            current_upgrade_info: current.map(CurrentUpgrade::of),
            last_upgrade_info: last.and_then(LastUpgrade::of),
            hosts: forecast.map(|forecast| Explained { present, forecast }),
        }
    }
}

/// From `now` to `at`, in whole seconds.
fn until(at: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    Duration::from_secs((at - now).num_seconds().try_into().unwrap_or(0))
}

/// Every host that is known, by name.
struct Explained<'a> {
    present: &'a Present,
    forecast: &'a Forecast,
}

/// A host, and why it is not moving.
#[derive(Serialize, ToSchema)]
struct HostState<'a> {
    hostname: &'a str,
    /// Where it is in the active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostStatusWord>)]
    status: Option<&'static str>,
    why: String,
    /// When, at the latest, that changes by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressBody<'a>>,
}

impl Serialize for Explained<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { present, forecast } = *self;
        serializer.collect_seq(hosts::known(present).into_iter().map(|name| {
            let explanation = explain(&present.state, &present.view, forecast, name);
            HostState {
                hostname: name.as_str(),
                status: explanation.status.map(HostStatus::as_str),
                until: explanation.until().map(Stamp),
                progress: ProgressBody::of(present, name),
                why: explanation.to_string(),
            }
        }))
    }
}

/// Every host that would take part in a run, with the application that would serve it.
struct ScheduledWorkers<'a> {
    present: &'a Present,
    applications: &'a [WorkerApplication],
}

#[derive(Serialize, ToSchema)]
struct ScheduledWorker<'a> {
    host: &'a str,
    application: &'a str,
}

impl<'a> ScheduledWorkers<'a> {
    fn of(present: &'a Present, applications: &'a [WorkerApplication]) -> Self {
        Self { present, applications }
    }
}

impl Serialize for ScheduledWorkers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let takes_part = |host| self.present.state.enrolled(host).takes_part();
        let serving = self.present.view.serving(self.applications).filter(|(host, ..)| takes_part(*host));
        let worker = serving.map(|(host, _, application)| ScheduledWorker {
            host: host.as_str(),
            application: application.as_str(),
        });
        serializer.collect_seq(worker)
    }
}

/// The active run.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct CurrentUpgrade<'a> {
    id: &'a str,
    start_time: Stamp,
    not_after: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::StopCauseBody>)]
    stopping: Option<&'a StopCause>,
    #[schema(value_type = types::CountsBody)]
    counts: BTreeMap<&'static str, usize>,
    #[schema(value_type = Vec<HostOfRun>)]
    hosts: Hosts<'a>,
}

impl<'a> CurrentUpgrade<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            id: run.id.as_str(),
            start_time: Stamp(run.started_at),
            not_after: Stamp(run.not_after),
            stopping: run.stopping.as_ref(),
            counts: counts(run),
            hosts: Hosts(run),
        }
    }
}

/// The run that ended last.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct LastUpgrade<'a> {
    id: &'a str,
    start_time: Stamp,
    end_time: Stamp,
    #[schema(value_type = RunResultWord)]
    result: &'static str,
    #[schema(value_type = types::CountsBody)]
    counts: BTreeMap<&'static str, usize>,
    #[schema(value_type = Vec<HostOfRun>)]
    hosts: Hosts<'a>,
}

impl<'a> LastUpgrade<'a> {
    fn of(run: &'a Run) -> Option<Self> {
        let ended = run.ended?;
        Some(Self {
            id: run.id.as_str(),
            start_time: Stamp(run.started_at),
            end_time: Stamp(ended.at),
            result: ended.result.as_str(),
            counts: counts(run),
            hosts: Hosts(run),
        })
    }
}

fn counts(run: &Run) -> BTreeMap<&'static str, usize> {
    let count = |status: HostStatus| (status.as_str(), run.count(status));
    HostStatus::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect()
}

/// The hosts of a run, by name.
struct Hosts<'a>(&'a Run);

impl Serialize for Hosts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.hosts().iter().map(|(name, host)| HostOfRun::new(name, host)))
    }
}
