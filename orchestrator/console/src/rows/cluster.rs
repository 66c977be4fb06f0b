//! The instances and streams of a site.

use os_upgrade_api_types::routes::cluster::{
    ClusterState, CopiesState, InstanceState, ReplicaState, StreamState,
};

use crate::row::{Column, Row, or_dash};

/// Why what is shown may be out of date; absent if an instance leads and is ready.
pub fn trouble(cluster: &ClusterState<'_>) -> Option<String> {
    let ClusterState { leader, instances, .. } = cluster;
    let why = |instance: &InstanceState<'_>| instance.not_ready_reason.as_ref().map(ToString::to_string);
    let Some(leader) = leader else {
        let why = instances.iter().find_map(why).map(|why| format!(" ({why})"));
        return Some(format!("no instance leads{}: nothing goes on", why.unwrap_or_default()));
    };
    let why = instances.iter().find(|one| one.instance == *leader).and_then(why)?;
    Some(format!("{leader} leads and is not ready ({why})"))
}

impl Row for InstanceState<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("INSTANCE", |instance, _| instance.instance.to_string()),
        Column::new("ROLE", |instance, _| instance.role.to_string()),
        Column::new("LAG", |instance, _| instance.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string())),
        Column::wide("POSITION", |instance, _| instance.position.to_string()),
        Column::new("ADDRESS", |instance, _| instance.address.to_string()),
        Column::wide("VERSION", |instance, _| instance.version.to_string()),
        Column::wide("FORMAT", |instance, _| {
            // An older version does not say it.
            let format = Some(instance.reads_format).filter(|format| *format > 0);
            format.map_or_else(|| "-".to_owned(), |format| format.to_string())
        }),
        Column::whole("LAST SEEN", |instance, zone| zone.stamp(instance.last_seen)),
        Column::text("", |instance, _| remark(instance)),
    ];
    const NONE: &'static str = "no instance is known";

    fn name(&self) -> Option<String> {
        Some(self.instance.to_string())
    }
}

fn remark(instance: &InstanceState<'_>) -> String {
    match &instance.not_ready_reason {
        _ if !instance.reachable => "unreachable".to_owned(),
        Some(reason) => format!("not ready: {reason}"),
        None => String::new(),
    }
}

impl Row for StreamState<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("STREAM", |stream, _| stream.stream.to_string()),
        Column::new("LEADER", |stream, _| or_dash(leader(stream))),
        Column::text("REPLICAS", |stream, _| replicas(stream)),
    ];
    const NONE: &'static str = "no stream is known";

    fn name(&self) -> Option<String> {
        Some(self.stream.to_string())
    }
}

fn leader<'a>(stream: &'a StreamState<'_>) -> Option<&'a str> {
    match &stream.replication {
        CopiesState::Known { leader, .. } => leader.as_deref(),
        CopiesState::Unknown { .. } => None,
    }
}

fn replicas(stream: &StreamState<'_>) -> String {
    let replicas = match &stream.replication {
        CopiesState::Known { replicas, .. } => replicas,
        CopiesState::Unknown { problem } => return problem.to_string(),
    };
    let replicas = replicas.iter().map(|ReplicaState { server, current, offline, lag }| {
        if *offline {
            format!("{server} offline")
        } else if *current {
            format!("{server} current")
        } else {
            format!("{server} behind by {lag}")
        }
    });
    replicas.collect::<Vec<_>>().join(", ")
}
