//! `os-upgrade run logs`: what the commands of a run printed on its hosts.

use anyhow::Context as _;
use clap::Args;
use os_upgrade_api_types::routes::outputs::{self, OutputOfCommand, Outputs};
use os_upgrade_api_types::routes::run_hosts::{self, HostPhase, HostReport};
use os_upgrade_api_types::routes::runs::{self, RunInFull};
use os_upgrade_api_types::word::Word;
use os_upgrade_console::Zone;
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_protocol::{Action, HostName, OutputTail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::output::{Canvas, Output, View};
use crate::remote::completion;
use crate::remote::options::Remote;
use crate::rest::Client;

/// The most hosts whose output is shown at once.
const HOSTS_MAX: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The id of the run, or at least 8 characters of its beginning, or `last`
    #[arg(value_name = "ID", default_value = "last", add = completion::runs())]
    pub(super) id: String,
    /// The host; by default those that failed or did not finish, ten at most
    #[arg(value_name = "HOST", add = completion::hosts())]
    pub(super) host: Option<HostName>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// What was printed on the hosts.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct OfHosts(Vec<OfHost>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OfHost {
    hostname: String,
    items: Vec<OutputOfCommand>,
    /// The commands of whose output nothing is kept.
    #[serde(default)]
    without_output: Vec<String>,
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
        output.aside(&format!(
            "no host failed in run {}: name one to see what its commands printed",
            sanitized(run)
        ));
    }
    let mut found = Vec::new();
    for host in hosts.iter().take(HOSTS_MAX) {
        match client.call(outputs::READ.named([run, host.as_str()])).await {
            Ok(outputs) => {
                let report: anyhow::Result<HostReport<'_>> =
                    client.read(run_hosts::READ.named([run, host.as_str()])).await;
                let missing = report.and_then(|report| {
                    let Outputs { items } = Outputs::deserialize(&outputs).context("unexpected response")?;
                    Ok(without_output(&report.phases, &items))
                });
                let missing = missing.unwrap_or_else(|error| {
                    output.aside(&sanitized(&format!("{error:#}")));
                    Vec::new()
                });
                found.push(json!({ "hostname": host, "items": outputs["items"], "without-output": missing }));
            }
            Err(error) if hosts.len() == 1 => return Err(error.into()),
            Err(error) => output.aside(&sanitized(&format!("{error:#}"))),
        }
    }
    if hosts.len() > HOSTS_MAX {
        output.aside(&format!("{HOSTS_MAX} of {} hosts that failed are shown", hosts.len()));
    }
    output.show::<OfHosts>(&Value::from(found))
}

/// The hosts that failed in the run, or did not finish.
async fn failed_hosts(client: &Client, run: &str) -> Result<Vec<HostName>, Failure> {
    let RunInFull { hosts, .. } = client.read(runs::READ.named([run]).with("events-limit", "1")).await?;
    let has_failed = |status| matches!(status, HostStatus::Failed | HostStatus::TimedOut);
    let failed = hosts.iter().filter(|host| host.status.is(has_failed));
    Ok(failed.filter_map(|host| HostName::new(&host.hostname).ok()).collect())
}

/// The commands that were sent to a host in its `phases`, and whose output is not among what is kept.
fn without_output(phases: &[HostPhase], kept: &[OutputOfCommand]) -> Vec<&'static str> {
    let commands = [
        (HostStatus::Preparing, Action::Prepare),
        (HostStatus::Upgrading, Action::Upgrade),
        (HostStatus::Rebooting, Action::Reboot),
    ];
    let was_sent = |status: &HostStatus| {
        let is_sent = |phase: &HostPhase| phase.status == Word::Known(*status) && phase.attempts.is_some();
        phases.iter().any(is_sent)
    };
    let printed = |action: &str| kept.iter().any(|output| output.action == action);
    let sent = commands.into_iter().filter(|(status, _)| was_sent(status));
    sent.map(|(_, action)| action.as_str()).filter(|action| !printed(action)).collect()
}

impl View for OfHosts {
    fn text(&self, canvas: &Canvas) -> String {
        let texts = self.0.iter().map(|host| host.text(canvas.zone));
        texts.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(self.0.iter().map(|host| host.hostname.clone()).collect())
    }

    fn none(&self) -> Option<String> {
        self.0.is_empty().then(|| "there is no output to show".to_owned())
    }
}

impl OfHost {
    fn text(&self, zone: Zone) -> String {
        let host = sanitized(&self.hostname);
        let texts = self.items.iter().map(|OutputOfCommand { action, attempt, time, text }| {
            let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            let (action, time) = (sanitized(action), zone.stamp(*time));
            // As whatever is shown on a terminal; a line break and a tab may stay.
            let mut tail = OutputTail::default();
            tail.push(text);
            format!("==> {host}: {action}{attempt}, {} <==\n{tail}", sanitized(&time))
        });
        let missing = self.without_output.iter().map(|action| {
            format!("==> {host}: {}: it printed nothing, or that is no longer kept <==\n", sanitized(action))
        });
        texts.chain(missing).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_without_output_are_named() {
        let time = "2026-11-21T01:00:00Z";
        let phase = |(status, attempts): (&str, Option<u32>)| {
            let phase = json!({ "status": status, "start-time": time, "attempts": attempts });
            serde_json::from_value::<HostPhase>(phase).unwrap()
        };
        let phases =
            [("pending", None), ("preparing", Some(1)), ("waiting", None), ("upgrading", Some(1))].map(phase);
        for (printed, expected) in [
            (&[][..], &["prepare", "upgrade"][..]),
            (&["prepare"], &["upgrade"]),
            (&["prepare", "upgrade"], &[]),
        ] {
            let output = |action: &&str| json!({ "action": action, "attempt": 1, "time": time, "text": "x" });
            let outputs = json!({ "items": printed.iter().map(output).collect::<Vec<_>>() });
            let Outputs { items } = serde_json::from_value(outputs).unwrap();
            assert_eq!(without_output(&phases, &items), expected);
        }
        assert_eq!(without_output(&[], &[]), [""; 0]);
    }

    #[test]
    fn outputs_are_shown_by_host_and_command() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let item = |action: &str, attempt: u32, text: &str| json!({"action": action, "attempt": attempt, "time": "2026-11-21T02:00:00+01:00", "text": text});
        let answer = json!([
            {"hostname": "h01", "items": [item("prepare", 1, "reading\nlists\n"), item("upgrade", 2, "E:\tfull\n")]},
            {"hostname": "h03", "items": [item("prepare", 1, "ready")], "without-output": ["upgrade"]},
            {"hostname": "h\u{1b}2", "items": [item("upgrade", 1, "\u{1b}[31mred\n\n")]},
        ]);
        let expected = "\
==> h01: prepare, 2026-11-21T01:00:00Z <==
reading
lists

==> h01: upgrade, attempt 2, 2026-11-21T01:00:00Z <==
E:\tfull

==> h03: prepare, 2026-11-21T01:00:00Z <==
ready

==> h03: upgrade: it printed nothing, or that is no longer kept <==

==> h\u{fffd}2: upgrade, 2026-11-21T01:00:00Z <==
red";
        assert_eq!(OfHosts::deserialize(&answer).unwrap().text(&canvas), expected);
    }
}
