//! `os-upgrade run start`: shows who would go and what stands against it, and starts a run of the whole site or of chosen hosts.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, anyhow};
use clap::Args;
use os_upgrade_api_types::routes::runs::{self as routes, HostInPreview, RunPreview, Trigger};
use os_upgrade_api_types::routes::slots::{self, Slots};
use os_upgrade_api_types::routes::state::{self, State};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::Retry;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize as _;

use super::ids::newest;
use super::watch;
use crate::Failure;
use crate::consent::Yes;
use crate::output::{Output, errln};
use crate::remote::completion;
use crate::remote::hosts::selection;
use crate::remote::options::Remote;
use crate::rest::Client;

/// So many hosts are listed one by one before a run starts.
const LISTED_MAX: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The hosts, or patterns with * and ?; by default every host
    #[arg(value_name = "HOST", add = completion::hosts())]
    hosts: Vec<HostName>,
    /// Of those, only hosts that failed or timed out, and have not been upgraded since
    #[arg(long, conflicts_with = "not_reached")]
    failed: bool,
    /// Of those, only hosts whose turn never came in the last run in which they took part
    #[arg(long)]
    not_reached: bool,
    /// How long the run may take, such as 90m or 4h; 4h by default, and of chosen hosts until the next run starts automatically
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Duration>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Show what happens until the run ends
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

/// Starts a run.
pub(super) async fn start(options: Start) -> Result<(), Failure> {
    let Start { hosts, failed, not_reached, timeout, reason, watch, yes, remote } = options;
    let client = remote.client()?;
    let hosts = expanded(&client, &hosts, remote.output).await?;
    let retry = match (failed, not_reached) {
        (true, _) => Some(Retry::Failed),
        (false, true) => Some(Retry::NotReached),
        (false, false) => None,
    };
    let body = Trigger { timeout, hosts: (!hosts.is_empty()).then_some(hosts), retry, reason };
    // Without a terminal nobody can be asked, and a script means what it says.
    let is_asked = !yes.is_given() && io::stdin().is_terminal();
    if is_asked {
        let preview = previewed(&client, &body).await.map_err(Failure::unchanged)?;
        if let Some(preview) = &preview {
            show(&client, preview, remote.output).await;
        }
        yes.consent().confirm(&question(preview.as_ref(), remote.output))?;
    }
    let started = client.call_for_result(&routes::TRIGGER, &body).await?;
    let id = match started["id"].as_str() {
        Some(id) => id.to_owned(),
        // An instance of an older version does not say.
        None => newest(&client).await?,
    };
    if watch {
        remote.output.note(&format!("started: {}", sanitized(&id)));
    } else {
        remote.output.done("started", &[&id])?;
    }
    // Who was asked has read it.
    if !is_asked {
        note_deny_window(&client, remote.output).await;
    }
    if watch { watch::watch(&client, &id, remote.output).await } else { Ok(()) }
}

/// The hosts that are meant. One that only matches a pattern and cannot take part is left out, and said so.
async fn expanded(client: &Client, patterns: &[HostName], output: Output) -> Result<Vec<HostName>, Failure> {
    if !patterns.iter().any(selection::is_pattern) {
        return Ok(patterns.to_vec());
    }
    let known = selection::known(client).await.map_err(Failure::unchanged)?;
    let meant = selection::expand(patterns, &known, |_| Ok(()))
        .map_err(|unknown| Failure::unchanged(anyhow!(unknown)))?;
    let able = previewed(client, &Trigger::default()).await.map_err(Failure::unchanged)?;
    let going = able.iter().flat_map(|preview| &preview.hosts).filter(|host| host.why.is_none());
    let going: BTreeSet<&str> = going.map(|host| host.hostname.as_ref()).collect();
    let (hosts, left_out): (Vec<_>, Vec<_>) =
        meant.into_iter().partition(|host| patterns.contains(host) || going.contains(host.as_str()));
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|host| sanitized(host.as_str())).collect();
        output.note(&format!("left out, because they do not take part now: {}", listed(&names)));
    }
    if hosts.is_empty() {
        return Err(Failure::unchanged(anyhow!("none of the hosts that match takes part now")));
    }
    Ok(hosts)
}

/// What a run would be of that starts so. An instance of an older version does not say.
async fn previewed(client: &Client, body: &Trigger) -> anyhow::Result<Option<RunPreview>> {
    let answer = client.call_for_result(routes::TRIGGER.call().with("validate", "true"), body).await?;
    Option::<RunPreview>::deserialize(&answer).context("unexpected response")
}

/// Shows who would go, in which order, and what stands against it.
async fn show(client: &Client, preview: &RunPreview, output: Output) {
    for line in lines(preview) {
        errln!("{line}");
    }
    note_deny_window(client, output).await;
    // What cannot be read is left out: it is only a note.
    if let Ok(slots) = client.read::<Slots<'_>>(slots::READ.call()).await {
        for line in against(&slots, preview) {
            errln!("{line}");
        }
    }
}

/// The hosts that go, in order, and those that are skipped, with why.
fn lines(preview: &RunPreview) -> Vec<String> {
    let (skipped, going): (Vec<_>, Vec<_>) = preview.hosts.iter().partition(|host| host.why.is_some());
    let named = |hosts: &[&HostInPreview], of: &dyn Fn(&HostInPreview) -> String| {
        listed(&hosts.iter().map(|host| of(host)).collect::<Vec<_>>())
    };
    let name = |host: &HostInPreview| sanitized(&host.hostname);
    let with_why = |host: &HostInPreview| {
        let why = host.why.as_ref().map(|why| format!(" ({})", sanitized(&why.text)));
        format!("{}{}", name(host), why.unwrap_or_default())
    };
    let mut lines = vec![match going.len() {
        0 => "no host would go".to_owned(),
        1 => format!("1 host: {}", named(&going, &name)),
        count => format!("{count} hosts, in this order: {}", named(&going, &name)),
    }];
    if !skipped.is_empty() {
        lines.push(format!("{} skipped: {}", skipped.len(), named(&skipped, &with_why)));
    }
    lines
}

/// Slots that hosts of the run may wait for: those that are kept, and all of a group that has no free one.
fn against(slots: &Slots<'_>, preview: &RunPreview) -> Vec<String> {
    let of_group = |group: &slots::SlotGroup<'_>| {
        let is_full = group.slots.is_some_and(|slots| group.held >= slots as usize);
        let (kept, others): (Vec<_>, Vec<_>) = group.holders.iter().partition(|holder| holder.kept);
        let line = |holders: &[&slots::SlotHolder<'_>], what: &str| {
            let names: Vec<String> = holders.iter().map(|holder| sanitized(&holder.id)).collect();
            (!names.is_empty())
                .then(|| format!("group {}: {what}: {}", sanitized(&group.group), listed(&names)))
        };
        let others = if is_full { &others[..] } else { &[] };
        [line(&kept, "kept by hosts that ended without success"), line(others, "no slot is free, held by")]
    };
    let is_meant = |group: &&slots::SlotGroup<'_>| {
        preview.hosts.iter().any(|host| host.why.is_none() && host.group == group.group)
    };
    slots.groups.iter().filter(is_meant).flat_map(of_group).flatten().collect()
}

/// The first of the names, and how many more there are.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    names.iter().take(LISTED_MAX).cloned().chain(more).collect::<Vec<_>>().join(", ")
}

/// The question whether to start the run.
fn question(preview: Option<&RunPreview>, output: Output) -> String {
    let Some(preview) = preview else { return "Start a run?".to_owned() };
    let zone = output.canvas().zone;
    let until = zone.stamp(preview.not_after);
    match preview.costs_start_at {
        Some(start) => format!(
            "Start it? It may last until {until}, and while it does no run starts in the window of {}",
            zone.stamp(start)
        ),
        None => format!("Start it? It ends at {until} at the latest"),
    }
}

/// Says that a deny window is in force, if one is. What cannot be read is left out: it is only a note.
async fn note_deny_window(client: &Client, output: Output) {
    let read = client.read::<State<'_>>(state::READ.call().with("fields", "denied-until")).await;
    if let Ok(State { denied_until: Some(end), .. }) = read {
        let end = output.canvas().zone.stamp(end);
        output.aside(&format!(
            "a deny window is in force until {end}: it keeps back runs that start automatically, not this one"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_would_go_is_shown_in_order() {
        let preview = |hosts: serde_json::Value| {
            RunPreview::deserialize(json!({ "not-after": "2026-11-21T05:00:00Z", "hosts": hosts })).unwrap()
        };
        let host = |name: &str| json!({ "hostname": name, "group": "default" });
        let skipped = json!({ "hostname": "h\u{1b}3", "group": "default",
            "why": { "kind": "host-deferred", "text": "deferred by anna: a demo" } });
        assert_eq!(
            lines(&preview(json!([host("h2"), host("h1"), skipped]))),
            ["2 hosts, in this order: h2, h1", "1 skipped: h\u{fffd}3 (deferred by anna: a demo)"]
        );
        assert_eq!(lines(&preview(json!([skipped])))[0], "no host would go");
        assert_eq!(lines(&preview(json!([host("h1")]))), ["1 host: h1"]);
        let slots = json!({"provider": "embedded", "reclaim": "never", "groups": [
            {"group": "default", "slots": 2, "held": 2, "excess": 0, "waiters": [], "holders": [
                {"id": "coreos-7", "since": "2026-11-21T01:00:00Z", "on-behalf-of": ["client"],
                 "reason": "a client", "stuck": false},
                {"id": "h2", "since": "2026-11-21T01:00:00Z", "on-behalf-of": ["run"],
                 "reason": "failed", "stuck": false, "kept": true},
            ]},
            {"group": "edge", "slots": 1, "held": 1, "excess": 0, "waiters": [], "holders": [
                {"id": "n1", "since": "2026-11-21T01:00:00Z", "on-behalf-of": ["client"],
                 "reason": "a client", "stuck": false},
            ]},
        ]});
        assert_eq!(
            against(&Slots::deserialize(&slots).unwrap(), &preview(json!([host("h1")]))),
            [
                "group default: kept by hosts that ended without success: h2",
                "group default: no slot is free, held by: coreos-7",
            ]
        );
        let costs = RunPreview::deserialize(json!({
            "not-after": "2026-11-21T05:00:00Z", "hosts": [], "costs-start-at": "2026-11-21T04:00:00Z",
        }));
        let asked = |preview: &RunPreview| question(Some(preview), Output::default());
        assert!(asked(&costs.unwrap()).contains("while it does no run starts in the window of"));
        assert!(asked(&preview(json!([]))).starts_with("Start it? It ends at"));
        let many: Vec<_> = (0..25).map(|number| host(&format!("h{number}"))).collect();
        assert!(lines(&preview(json!(many)))[0].ends_with("h19, and 5 more"));
    }
}
