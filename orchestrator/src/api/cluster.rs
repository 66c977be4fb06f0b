//! `/v1/state/cluster`: the instances of the site, who leads, how far the others are behind, and where the streams
//! are kept. An extension of the specification.

use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_shell::node::Leadership;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Nothing, Params};
use super::openapi::tag;
use super::openapi::types::RoleWord;
use super::reply::{self, Stamp};
use crate::bus::instances::{Copies, Replica, StreamCopies};
use crate::cluster::{Instance, Role};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(read))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct ClusterState<'a> {
    /// The instance that holds the lease, as far as the one that answers knows.
    leader: Option<&'a str>,
    instances: Vec<InstanceState<'a>>,
    streams: Vec<StreamState<'a>>,
    /// What is wrong among the instances, a sentence each; absent when nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct InstanceState<'a> {
    instance: &'a str,
    #[schema(value_type = RoleWord)]
    role: Role,
    /// Whether it has been heard of within 5 s.
    reachable: bool,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready_reason: Option<&'a str>,
    /// The sequence up to which it has the journal.
    position: u64,
    /// How many records the leader had more when both were last heard of; absent while nobody leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
    address: &'a str,
    version: &'a str,
    /// `[site] timezone` of its settings; absent for one of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a str>,
    last_seen: Stamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct StreamState<'a> {
    stream: &'a str,
    #[serde(flatten)]
    copies: CopiesState<'a>,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged, rename_all_fields = "kebab-case")]
enum CopiesState<'a> {
    Known {
        /// The server that leads the stream; absent while they elect one, and where there is but one server.
        #[serde(skip_serializing_if = "Option::is_none")]
        leader: Option<&'a str>,
        replicas: Vec<ReplicaState<'a>>,
    },
    Unknown {
        problem: &'a str,
    },
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
struct ReplicaState<'a> {
    server: &'a str,
    current: bool,
    offline: bool,
    lag: u64,
}

/// 200, by any instance.
#[utoipa::path(
    get, path = "/v1/state/cluster", operation_id = "read-cluster", tag = tag::ORCHESTRATOR,
    summary = "Read the instances of the site, and where its streams are kept",
    responses(
        (status = 200, description = "as this instance knows it", body = ClusterState),
    )
)]
async fn read(State(api): State<Api>, Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    let present = api.site.present();
    let streams = api.site.cluster().streams().await;
    let now = Utc::now();
    let instances = api.site.cluster().instances(&present, now);
    let leader = match &present.leadership {
        Leadership::Here(holder) | Leadership::At(holder) => Some(holder.instance.as_str()),
        Leadership::Unknown => None,
    };
    let named = instances.iter().find(|known| Some(known.heartbeat.instance.as_str()) == leader);
    let end = named.map(|known| known.heartbeat.position);
    reply::json(&ClusterState {
        leader,
        instances: instances.iter().map(|known| instance(known, end, known.is_reachable(now))).collect(),
        streams: streams.iter().map(stream).collect(),
        warnings: instances.differences(now),
    })
}

fn instance(known: &Instance, end: Option<u64>, reachable: bool) -> InstanceState<'_> {
    let heartbeat = &known.heartbeat;
    InstanceState {
        instance: &heartbeat.instance,
        role: heartbeat.role,
        reachable,
        ready: heartbeat.not_ready.is_none(),
        not_ready_reason: heartbeat.not_ready.as_deref(),
        position: heartbeat.position,
        lag: end.map(|end| end.saturating_sub(heartbeat.position)),
        address: &heartbeat.address,
        version: &heartbeat.version,
        timezone: heartbeat.timezone.as_deref(),
        last_seen: Stamp(known.seen),
    }
}

fn stream(stream: &StreamCopies) -> StreamState<'_> {
    let copies = match &stream.copies {
        Ok(Copies { leader, replicas }) => CopiesState::Known {
            leader: leader.as_deref(),
            replicas: replicas
                .iter()
                .map(|Replica { server, current, offline, lag }| ReplicaState {
                    server,
                    current: *current,
                    offline: *offline,
                    lag: *lag,
                })
                .collect(),
        },
        Err(problem) => CopiesState::Unknown { problem },
    };
    StreamState { stream: &stream.stream, copies }
}
