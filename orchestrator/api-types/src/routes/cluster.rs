//! `/v1/state/cluster`: the instances of a site. An extension of the specification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::route::{Answer, Method, Route, Shape, Tag, VIEWER};
use crate::text::RoleWord;

/// The instances, which one leads, how far the others are behind, and which servers store the streams; answered by any
/// instance.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/cluster",
    VIEWER,
    Tag::Orchestrator,
    "read-cluster",
    "Read the instances of the site, and the servers that store its streams",
)
.answers(&[Answer::json(
    "the cluster, as this instance knows it",
    Shape::of::<ClusterState<'static>>(),
    example,
)]);

fn example() -> Value {
    json!({
        "leader": "orchestrator-1-6b0f9a2c",
        "instances": [{
            "instance": "orchestrator-1-6b0f9a2c",
            "role": "leader",
            "reachable": true,
            "ready": true,
            "position": 1042,
            "lag": 0,
            "address": "10.0.0.1:8080",
            "version": "0.1.0",
            "reads-format": 11,
            "timezone": "Europe/Stockholm",
            "zone-data": "2026f",
            "last-seen": "2026-11-21T01:00:00Z",
        }],
        "streams": [{
            "stream": "os-upgrade-journal",
            "leader": "nats-1",
            "replicas": [{"server": "nats-2", "current": true, "offline": false, "lag": 0}],
        }],
    })
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClusterState<'a> {
    /// The instance that holds the lease, as far as the answering instance knows.
    pub leader: Option<Cow<'a, str>>,
    pub instances: Vec<InstanceState<'a>>,
    pub streams: Vec<StreamState<'a>>,
    /// Problems among the instances, a sentence each; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct InstanceState<'a> {
    /// Its name, which stays the same across restarts.
    pub instance: Cow<'a, str>,
    /// `leader` for the one that holds the lease, as far as the answering instance knows, and for no other.
    #[schema(value_type = RoleWord)]
    pub role: Cow<'static, str>,
    /// Whether it was heard of within the last 5 s.
    pub reachable: bool,
    pub ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ready_reason: Option<Cow<'a, str>>,
    /// The journal sequence up to which it has read.
    pub position: u64,
    /// How many records it was behind the leader when both were last heard of; absent without a leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    pub address: Cow<'a, str>,
    pub version: Cow<'a, str>,
    /// The newest format of the journal that it reads; records of a newer one stop it.
    #[serde(default)]
    #[schema(required)]
    pub reads_format: u32,
    /// `[site] timezone` of its settings; absent for an instance of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Cow<'a, str>>,
    /// The release of the time zone data on its machine; absent if it is unknown. The leader's applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_data: Option<Cow<'a, str>>,
    pub last_seen: Stamp,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StreamState<'a> {
    pub stream: Cow<'a, str>,
    #[serde(flatten)]
    pub replication: CopiesState<'a>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged, rename_all_fields = "kebab-case")]
pub enum CopiesState<'a> {
    Known {
        /// The server that leads the stream; absent during an election, and with a single server.
        #[serde(skip_serializing_if = "Option::is_none")]
        leader: Option<Cow<'a, str>>,
        replicas: Vec<ReplicaState<'a>>,
    },
    Unknown {
        problem: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ReplicaState<'a> {
    pub server: Cow<'a, str>,
    pub current: bool,
    pub offline: bool,
    pub lag: u64,
}
