//! `os-upgrade run logs`: what the commands of a run printed on its hosts.

use clap::Args;
use os_upgrade_api_types::routes::{outputs, runs};
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::{HostName, OutputTail};
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::output::{Canvas, Output, View};
use crate::remote::options::Remote;
use crate::rest::Client;

/// The most hosts whose output is shown at once.
const HOSTS_MAX: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The id of the run, or at least 8 characters of its beginning, or `last`
    #[arg(value_name = "ID", default_value = "last")]
    pub(super) id: String,
    /// The host; by default those that failed or did not finish, ten at most
    #[arg(value_name = "HOST")]
    pub(super) host: Option<HostName>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// What was printed on the hosts.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct OfHosts(Vec<OfHost>);

#[derive(Debug, Deserialize)]
struct OfHost {
    hostname: String,
    items: Vec<OfCommand>,
}

#[derive(Debug, Deserialize)]
struct OfCommand {
    action: String,
    attempt: u32,
    time: String,
    text: String,
}

/// Shows what the commands of the run printed on `host`, or on the hosts that failed.
pub(super) async fn show(
    client: &Client,
    run: &str,
    host: Option<HostName>,
    output: Output,
) -> Result<(), Failure> {
    let hosts = match host {
        Some(host) => vec![host],
        None => failed_hosts(client, run).await?,
    };
    if hosts.is_empty() {
        output.note(&format!(
            "no host failed in run {}: name one to see what its commands printed",
            sanitized(run)
        ));
    }
    let mut found = Vec::new();
    for host in hosts.iter().take(HOSTS_MAX) {
        match client.call(outputs::READ.named([run, host.as_str()])).await {
            Ok(outputs) => found.push(json!({ "hostname": host, "items": outputs["items"] })),
            Err(error) if hosts.len() == 1 => return Err(error.into()),
            Err(error) => output.note(&sanitized(&format!("{error:#}"))),
        }
    }
    if hosts.len() > HOSTS_MAX {
        output.note(&format!("{HOSTS_MAX} of {} hosts that failed are shown", hosts.len()));
    }
    output.show::<OfHosts>(&Value::from(found))
}

/// The hosts that failed in the run, or did not finish.
async fn failed_hosts(client: &Client, run: &str) -> Result<Vec<HostName>, Failure> {
    let read = client.call(runs::READ.named([run]).with("facts-limit", "1")).await?;
    let hosts = read["hosts"].as_array().into_iter().flatten();
    let ended_badly = [HostStatus::Failed, HostStatus::TimedOut].map(HostStatus::as_str);
    let failed = hosts.filter(|host| ended_badly.iter().any(|status| host["status"] == *status));
    Ok(failed.filter_map(|host| HostName::new(host["hostname"].as_str()?).ok()).collect())
}

impl View for OfHosts {
    fn text(&self, canvas: &Canvas) -> String {
        if self.0.is_empty() {
            return "there is no output to show".to_owned();
        }
        let commands = self.0.iter().flat_map(|host| host.items.iter().map(move |command| (host, command)));
        let texts = commands.map(|(host, OfCommand { action, attempt, time, text })| {
            let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            let (host, action, time) = (sanitized(&host.hostname), sanitized(action), canvas.zone.time(time));
            // As whatever is shown on a terminal; a line break and a tab may stay.
            let mut tail = OutputTail::default();
            tail.push(text);
            format!("==> {host}: {action}{attempt}, {} <==\n{tail}", sanitized(&time))
        });
        texts.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(self.0.iter().map(|host| host.hostname.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Zone;

    #[test]
    fn outputs_are_shown_by_host_and_command() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let item = |action: &str, attempt: u32, text: &str| json!({"action": action, "attempt": attempt, "time": "2026-11-21T02:00:00+01:00", "text": text});
        let answer = json!([
            {"hostname": "h01", "items": [item("prepare", 1, "reading\nlists\n"), item("upgrade", 2, "E:\tfull\n")]},
            {"hostname": "h\u{1b}2", "items": [item("upgrade", 1, "\u{1b}[31mred\n\n")]},
        ]);
        let expected = "\
==> h01: prepare, 2026-11-21T01:00:00Z <==
reading
lists

==> h01: upgrade, attempt 2, 2026-11-21T01:00:00Z <==
E:\tfull

==> h\u{fffd}2: upgrade, 2026-11-21T01:00:00Z <==
red";
        assert_eq!(OfHosts::deserialize(&answer).unwrap().text(&canvas), expected);
    }
}
