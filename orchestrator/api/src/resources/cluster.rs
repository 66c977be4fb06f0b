//! `/v1/state/cluster`: the site's instances, which one leads, how far the others are behind, and which servers store
//! the streams. An extension of the specification.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::cluster::{
    ClusterState, CopiesState, InstanceState, READ, ReplicaState, StreamState,
};
use os_upgrade_bus::instances::{Replica, Replication, StreamReplication};
use os_upgrade_calendar::OldZones;
use os_upgrade_shell::instance::Leadership;
use os_upgrade_site::instances::{Instance, Role};

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::reply;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&READ, read)
}

async fn read(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.site.published();
    // Unknown until the bus is connected.
    let streams = match api.options.sites.bus() {
        Some(bus) => bus.replication().await,
        None => Vec::new(),
    };
    let now = Utc::now();
    let instances = api.site.cluster().instances(&published, now);
    let leader = match &published.leadership {
        Leadership::Here(holder) | Leadership::At(holder) => Some(holder.instance.as_str()),
        Leadership::Unknown => None,
    };
    let named = instances.iter().find(|known| Some(known.heartbeat.instance.as_str()) == leader);
    // Others with other data are told apart by the differences.
    let old = published
        .view
        .zones
        .old(now)
        .filter(OldZones::may_move_windows)
        .map(|old| format!("{old}; {}", old.advice()));
    let end = named.map(|known| known.heartbeat.position);
    reply::json(&ClusterState {
        leader: leader.map(Cow::from),
        instances: instances
            .iter()
            .map(|known| {
                // One that has just been replaced, or was killed, has said that it leads.
                let leads = Some(known.heartbeat.instance.as_str()) == leader;
                let role = if leads { Role::Leader } else { Role::Follower };
                instance(known, role, end, known.is_reachable(now))
            })
            .collect(),
        streams: streams.iter().map(stream).collect(),
        warnings: instances.differences(now).into_iter().chain(old).collect(),
    })
}

fn instance(known: &Instance, role: Role, end: Option<u64>, reachable: bool) -> InstanceState<'_> {
    let heartbeat = &known.heartbeat;
    InstanceState {
        instance: heartbeat.instance.as_str().into(),
        role: role.as_str().into(),
        reachable,
        ready: heartbeat.not_ready.is_none(),
        not_ready_reason: heartbeat.not_ready.as_deref().map(Cow::from),
        position: heartbeat.position,
        lag: end.map(|end| end.saturating_sub(heartbeat.position)),
        address: heartbeat.address.as_str().into(),
        version: heartbeat.version.as_str().into(),
        reads_format: heartbeat.reads_format,
        timezone: heartbeat.timezone.as_deref().map(Cow::from),
        zone_data: heartbeat.zone_data.as_deref().map(Cow::from),
        last_seen: Stamp(known.seen),
    }
}

fn stream(stream: &StreamReplication) -> StreamState<'_> {
    let replication = match &stream.replication {
        Ok(Replication { leader, replicas }) => CopiesState::Known {
            leader: leader.as_deref().map(Cow::from),
            replicas: replicas
                .iter()
                .map(|Replica { server, current, offline, lag }| ReplicaState {
                    server: server.into(),
                    current: *current,
                    offline: *offline,
                    lag: *lag,
                })
                .collect(),
        },
        Err(problem) => CopiesState::Unknown { problem: problem.into() },
    };
    StreamState { stream: (&*stream.stream).into(), replication }
}
