//! `os-upgrade cluster`: the instances and streams of a site, as one instance sees them.

use clap::Subcommand;
use os_upgrade_api_types::routes::cluster::{self, ClusterState};
use os_upgrade_api_types::routes::health;
use os_upgrade_console::Row;
use os_upgrade_protocol::text::sanitized;

use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View, table};
use crate::rest::{Client, Server};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the leader, how far the others lag, whether all replicas of the streams are current, and settings that differ
    ///
    /// Any instance can be asked. It exits with 0 if the status could be read, whatever the status is.
    #[command(after_help = examples!["cluster status", "cluster status -o wide", "cluster status -o json"])]
    Status(Remote),
    /// Exit with 0 if an instance can take a write, or pass it on to the leader; else print why and exit with 1
    ///
    /// It needs no token, and is suitable as a health check for containers and virtual machines.
    #[command(after_help = examples!["cluster ready", "cluster ready --url https://b.example:8646 --ca ca.pem"])]
    Ready(Server),
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Ready(server) => {
            Client::new(&server)?.call(&health::READY).await?;
            Ok(())
        }
        Command::Status(remote) => {
            let state = remote.client()?.call(&cluster::READ).await?;
            remote.output.show::<ClusterState<'_>>(&state)
        }
    }
}

impl View for ClusterState<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        let leader = self.leader.as_deref().unwrap_or("none that this instance knows of");
        let (instances, streams) = (table(&self.instances, canvas), table(&self.streams, canvas));
        let mut text = format!("leader: {}\n\n{instances}\n{streams}", sanitized(leader));
        for warning in &self.warnings {
            text.extend(["\nwarning: ", &sanitized(warning), "\n"]);
        }
        text.trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        self.instances.iter().map(Row::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_in_tables() {
        let instance = |name: &str, role: &str, reachable: bool| {
            json!({
                "instance": name, "role": role, "reachable": reachable, "ready": true, "position": 120, "lag": 3,
                "address": "127.0.0.1:8646", "version": "0.1.0", "reads-format": 11, "last-seen": "2026-11-20T12:00:00Z"
            })
        };
        let replica = |server: &str, current: bool, offline: bool, lag: u64| json!({ "server": server, "current": current, "offline": offline, "lag": lag });
        let state = json!({
            "leader": "a1",
            "instances": [instance("a1", "leader", true), instance("b22", "follower", false)],
            "streams": [
                { "stream": "s1", "leader": "n1", "replicas": [replica("n2", true, false, 0), replica("n3", false, false, 9)] },
                { "stream": "s2", "replicas": [replica("n2", false, true, 9)] },
                { "stream": "s3", "problem": "NATS does not answer" },
            ],
            "warnings": ["the instances differ"],
        });
        let expected = "\
leader: a1

INSTANCE  ROLE      LAG  POSITION  ADDRESS         VERSION  FORMAT  LAST SEEN
a1        leader    3    120       127.0.0.1:8646  0.1.0    11      2026-11-20T12:00:00Z
b22       follower  3    120       127.0.0.1:8646  0.1.0    11      2026-11-20T12:00:00Z  unreachable

STREAM  LEADER  REPLICAS
s1      n1      n2 current, n3 behind by 9
s2      -       n2 offline
s3      -       NATS does not answer

warning: the instances differ";
        let canvas = Canvas { is_wide: true, columns: None, zone: Zone::Utc };
        assert_eq!(ClusterState::deserialize(state).unwrap().text(&canvas), expected);
    }
}
