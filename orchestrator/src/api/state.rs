//! `/v1/state/os-upgrade`: the configuration in force, and how upgrades stand.
//!
//! Keys that do not apply are absent: without a configuration `worker-applications` and `scheduled-workers`, without
//! a run in the past `last-upgrade-info`. Extensions of the specification: `current-upgrade-info` while a run is
//! active, `id` and `counts` of a run, and `since`, `reason` and `reason-kind` of a host.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use os_upgrade_kernel::config::WorkerApplication;
use os_upgrade_kernel::{HostStatus, Run, StopCause};
use os_upgrade_protocol::ApplicationName;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Nothing, Params};
use super::openapi::tag;
use super::openapi::types::{self, RunResultWord, SiteStatusWord};
use super::reply::{HostOfRun, Stamp};
use crate::site::Present;

/// About how many bytes a host takes in the answer: in the list of workers and in two runs.
const BYTES_PER_HOST: usize = 384;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(read))
}

#[utoipa::path(
    get, path = "/v1/state/os-upgrade", operation_id = "read-state", tag = tag::UPGRADES,
    summary = "Retrieve the state of os upgrade",
    responses(
        (status = 200, description = "the configuration in force, and how upgrades stand", body = StateBody),
    )
)]
async fn read(State(api): State<Api>, Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    let present = api.site.present();
    let hosts = size(&present);
    api.render(hosts, move || write(&present, hosts)).await
}

/// The most hosts that any list of the answer has.
fn size(present: &Present) -> usize {
    let runs = present.state.run.iter().chain(&present.state.last_run);
    runs.map(|run| run.hosts().len()).fold(present.view.hosts.len(), usize::max)
}

/// The whole answer. Also for the measurement in the tests.
pub(super) fn write(present: &Arc<Present>, hosts: usize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1_024 + hosts * BYTES_PER_HOST);
    serde_json::to_writer(&mut bytes, &StateBody::of(present))?;
    Ok(bytes)
}

#[derive(Serialize, ToSchema)]
#[schema(as = State)]
#[serde(rename_all = "kebab-case")]
struct StateBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<types::WorkerApplicationBody>>)]
    worker_applications: Option<&'a [WorkerApplication]>,
    #[schema(value_type = SiteStatusWord)]
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ScheduledWorker>>)]
    scheduled_workers: Option<ScheduledWorkers<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_upgrade_info: Option<CurrentUpgrade<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_upgrade_info: Option<LastUpgrade<'a>>,
}

impl<'a> StateBody<'a> {
    fn of(present: &'a Present) -> Self {
        let state = &present.state;
        let applications = state.config.as_ref().map(|config| config.worker_applications.as_slice());
        Self {
            worker_applications: applications,
            status: state.run.as_ref().map_or("idle", |run| run.phase.as_str()),
            scheduled_workers: applications.map(|applications| ScheduledWorkers::of(present, applications)),
            current_upgrade_info: state.run.as_ref().map(CurrentUpgrade::of),
            last_upgrade_info: state.last_run.as_ref().and_then(LastUpgrade::of),
        }
    }
}

/// Every host that would take part in a run, with the application that would serve it.
struct ScheduledWorkers<'a> {
    present: &'a Present,
    applications: Vec<ApplicationName>,
}

#[derive(Serialize, ToSchema)]
struct ScheduledWorker<'a> {
    host: &'a str,
    application: &'a str,
}

impl<'a> ScheduledWorkers<'a> {
    fn of(present: &'a Present, applications: &[WorkerApplication]) -> Self {
        let applications = applications.iter().map(|application| application.name.clone()).collect();
        Self { present, applications }
    }
}

impl Serialize for ScheduledWorkers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let serving = self.present.view.serving(&self.applications);
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
