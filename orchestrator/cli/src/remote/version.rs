//! `os-upgrade version`: the version of this program, and of the instances of a site.

use clap::Args;
use os_upgrade_api_types::routes::cluster::{self, ClusterState, InstanceState};
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::output::{Canvas, Output, View};
use crate::rest::{Client, Server};

#[derive(Debug, Args)]
pub(crate) struct Version {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// The versions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Versions {
    version: String,
    time_zone_data: String,
    /// Absent if no instance was named.
    instances: Option<Vec<Instance>>,
}

#[derive(Debug, Deserialize)]
struct Instance {
    instance: String,
    version: String,
}

/// Prints the version of this program, and of the instances of the site if the command line names one.
pub(super) async fn run(Version { server, output }: Version) -> Result<(), Failure> {
    let zones = os_upgrade_zones::read().to_string();
    let mut answer = json!({ "version": env!("CARGO_PKG_VERSION"), "time-zone-data": zones });
    if server.named().is_some() {
        let ClusterState { instances, .. } = Client::new(&server)?.read(&cluster::READ).await?;
        let version =
            |known: &InstanceState<'_>| json!({ "instance": known.instance, "version": known.version });
        answer["instances"] = instances.iter().map(version).collect();
    }
    output.show::<Versions>(&answer)
}

impl View for Versions {
    fn text(&self, _: &Canvas) -> String {
        let own = format!("os-upgrade {}\ntime zone data {}", self.version, self.time_zone_data);
        let instances = self.instances.iter().flatten();
        let instances = instances
            .map(|known| format!("\ninstance {}: {}", sanitized(&known.instance), sanitized(&known.version)));
        own + &instances.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os_upgrade_console::Zone;

    #[test]
    fn versions_of_instances_are_shown_if_one_is_named() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let text = |answer| Versions::deserialize(answer).unwrap().text(&canvas);
        let mut answer = json!({ "version": "1.2.3", "time-zone-data": "2026f" });
        assert_eq!(text(answer.clone()), "os-upgrade 1.2.3\ntime zone data 2026f");
        answer["instances"] =
            json!([{ "instance": "a1", "version": "1.2.2" }, { "instance": "b1", "version": "1.2.3" }]);
        assert!(text(answer).ends_with("\ninstance a1: 1.2.2\ninstance b1: 1.2.3"));
    }
}
