//! `os-upgrade cluster`: the instances and streams of a site, as one instance sees them.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::{cluster, health};
use serde::Deserialize;

use crate::output::{Output, outln, table};
use crate::rest::{self, Server};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the leader, how far the others lag, whether all replicas of the streams are current, and settings that differ
    ///
    /// Any instance can be asked. It exits with 0 if the status could be read, whatever the status is.
    Status(Status),
    /// Exit with 0 if an instance can take a write, or pass it on to the leader; else print why and exit with 1
    ///
    /// It needs no token, and is suitable as a health check for containers and virtual machines.
    Ready(Server),
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    server: Server,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The response of `GET /v1/state/cluster`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct State {
    leader: Option<String>,
    instances: Vec<Instance>,
    streams: Vec<Stream>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Instance {
    #[serde(rename = "instance")]
    name: String,
    role: String,
    reachable: bool,
    not_ready_reason: Option<String>,
    position: u64,
    lag: Option<u64>,
    address: String,
    version: String,
    /// Absent in the answers of older versions.
    reads_format: Option<u32>,
    last_seen: String,
}

#[derive(Debug, Deserialize)]
struct Stream {
    #[serde(rename = "stream")]
    name: String,
    leader: Option<String>,
    #[serde(default)]
    replicas: Vec<Replica>,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Replica {
    server: String,
    current: bool,
    offline: bool,
    lag: u64,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    let Status { server, output } = match command {
        Command::Ready(server) => return rest::call(&server, &health::READY).await.map(drop),
        Command::Status(status) => status,
    };
    let state = rest::call(&server, &cluster::READ).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&state)?),
        Output::Text => {
            let state = State::deserialize(state).context("unexpected response")?;
            outln!("{}", text(&state));
        }
    }
    Ok(())
}

fn text(state: &State) -> String {
    let leader = state.leader.as_deref().unwrap_or("none that this instance knows of");
    let heads = ["INSTANCE", "ROLE", "POSITION", "LAG", "ADDRESS", "VERSION", "FORMAT", "LAST SEEN", ""];
    let instances = table(&heads, state.instances.iter().map(Instance::row).collect());
    let streams = table(&["STREAM", "LEADER", "REPLICAS"], state.streams.iter().map(Stream::row).collect());
    let mut text = format!("leader: {leader}\n\n{instances}\n{streams}");
    for warning in &state.warnings {
        text.extend(["\nwarning: ", warning, "\n"]);
    }
    text.trim_end().to_owned()
}

impl Instance {
    fn row(&self) -> Vec<String> {
        let lag = self.lag.map_or_else(|| "-".to_owned(), |lag| lag.to_string());
        let remark = match &self.not_ready_reason {
            _ if !self.reachable => "unreachable".to_owned(),
            Some(reason) => format!("not ready: {reason}"),
            None => String::new(),
        };
        vec![
            self.name.clone(),
            self.role.clone(),
            self.position.to_string(),
            lag,
            self.address.clone(),
            self.version.clone(),
            self.reads_format.map_or_else(|| "-".to_owned(), |format| format.to_string()),
            self.last_seen.clone(),
            remark,
        ]
    }
}

impl Stream {
    fn row(&self) -> Vec<String> {
        let replicas = self.replicas.iter().map(|replica| {
            let server = &replica.server;
            match replica {
                Replica { offline: true, .. } => format!("{server} offline"),
                Replica { current: true, .. } => format!("{server} current"),
                Replica { lag, .. } => format!("{server} behind by {lag}"),
            }
        });
        let replicas = replicas.collect::<Vec<_>>().join(", ");
        let leader = self.leader.clone().unwrap_or_else(|| "-".to_owned());
        vec![self.name.clone(), leader, self.problem.clone().unwrap_or(replicas)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_in_tables() {
        let instance = |name: &str, role: &str, reachable: bool| {
            json!({
                "instance": name, "role": role, "reachable": reachable, "ready": true, "position": 120, "lag": 3,
                "address": "127.0.0.1:8646", "version": "0.1.0", "reads-format": 3, "last-seen": "2026-11-20T12:00:00Z"
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

INSTANCE  ROLE      POSITION  LAG  ADDRESS         VERSION  FORMAT  LAST SEEN
a1        leader    120       3    127.0.0.1:8646  0.1.0    3       2026-11-20T12:00:00Z
b22       follower  120       3    127.0.0.1:8646  0.1.0    3       2026-11-20T12:00:00Z  unreachable

STREAM  LEADER  REPLICAS
s1      n1      n2 current, n3 behind by 9
s2      -       n2 offline
s3      -       NATS does not answer

warning: the instances differ";
        assert_eq!(text(&State::deserialize(state).unwrap()), expected);
    }
}
