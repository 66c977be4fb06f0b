//! `os-upgrade hosts`: the hosts of a site, and which of them take part in runs.

mod leave;
mod node;
mod outdated;
mod selection;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::hosts::{self as routes, HostsToApprove};
use os_upgrade_kernel::HostStatus;
use os_upgrade_kernel::enrolment::APPROVED_AT_ONCE_MAX;
use os_upgrade_protocol::HostName;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

use self::leave::Leave;
use self::node::{Node, Uncordon};
use super::histories::{self, Entry};
use super::options::Remote;
use super::release;
use super::run::view::LateAnswer;
use crate::Failure;
use crate::consent::{Consent, Yes};
use crate::leadership::note_last_known;
use crate::output::{Canvas, Column, Row, View, Zone};
use crate::rest::Client;

/// How many versions of a host the table shows.
const VERSIONS_SHOWN: usize = 2;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the hosts, whether they take part in runs, and what keeps them from moving
    #[command(after_help = examples![
        "hosts list",
        "hosts list --pending -o name",
        "hosts list --label rack=r1 --outdated",
        "hosts list --reboot-required"
    ])]
    List(List),
    /// Show everything about a host
    #[command(after_help = examples!["hosts show h01", "hosts show h01 -o yaml"])]
    Show(Show),
    /// Let hosts take part in runs, from the next one on
    ///
    /// In a NAME, * and ? stand for characters of the names of hosts, unless a host has exactly that name. The hosts that
    /// match are shown first: check them, since anybody who can reach NATS can announce a host.
    #[command(after_help = examples!["hosts approve h01 h02", "hosts approve 'web-*'", "hosts approve --all --yes"])]
    Approve(Approve),
    /// Exclude hosts from runs, even if hosts are approved automatically
    ///
    /// In the active run they are not started. One that already has its slot finishes its upgrade, with the reboot: a host
    /// left in the middle of an upgrade would have neither the old nor the new system. In a NAME, * and ? stand for characters
    /// of the names of hosts, unless a host has exactly that name; the hosts that match are shown first.
    #[command(after_help = examples![
        "hosts withdraw h01 --reason 'it is being rebuilt'", "hosts withdraw 'web-*' --reason 'they are being rebuilt' --yes"
    ])]
    Withdraw(Leave),
    /// Forget hosts that are gone, with everything that they have announced
    ///
    /// It is refused while a host sends heartbeats, is in the active run, or holds a slot. A host that announces itself by this
    /// name later waits for approval, even if hosts are approved automatically. A NAME may be a pattern, as for withdraw.
    #[command(after_help = examples![
        "hosts remove h01 --reason 'it was scrapped'", "hosts remove 'web-*' --reason 'they were scrapped' --yes"
    ])]
    Remove(Leave),
    /// Uncordon the Kubernetes node of a host that failed
    ///
    /// Such a node stays cordoned, so that nothing is scheduled to a host that nobody has looked after. It is refused while a run or
    /// the reboot queue is at work on the host, because its node is uncordoned by itself then. It also ends the wait for a node that
    /// does not get ready after a run.
    #[command(after_help = examples!["hosts uncordon h01 --reason 'its disk was replaced'"])]
    Uncordon(Uncordon),
    /// Show which hosts operators approved, withdrew and removed, and whose nodes they had uncordoned
    #[command(after_help = examples!["hosts history", "hosts history --limit 10"])]
    History(histories::PageOptions),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only hosts that wait for approval
    #[arg(long)]
    pending: bool,
    /// Only hosts with this status in the active run, or else in the last one, such as upgrading or failed
    #[arg(long, value_parser = status)]
    status: Option<HostStatus>,
    /// Only hosts that announce this label; with several, all of them
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only hosts that report an older version of a package than another host that takes part in runs
    ///
    /// Versions are compared as Debian does. Packages that only some hosts have are compared among those.
    #[arg(long, conflicts_with = "pending")]
    outdated: bool,
    /// Only hosts that need a reboot, as their workers say; `hosts show` says why
    #[arg(long)]
    reboot_required: bool,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The hosts, or patterns with * and ?
    #[arg(value_name = "NAME", required_unless_present = "all")]
    hosts: Vec<HostName>,
    /// Every host that waits for approval
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    /// Accept names that no worker has announced yet; then * and ? are nothing special
    #[arg(long, conflicts_with = "all")]
    new: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

/// A host in the response of `GET /v1/state/os-upgrade/hosts`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Host {
    hostname: String,
    without_worker: bool,
    applications: Vec<String>,
    refused_applications: Vec<String>,
    labels: BTreeMap<String, String>,
    boot_id: Option<String>,
    reboot_required: Option<String>,
    reboot_ineffective: Option<String>,
    reboots_on_request: bool,
    reboot_queue: Option<InQueue>,
    group: String,
    slot: Option<Slot>,
    reachability: String,
    unreachable_since: Option<String>,
    last_heard_at: Option<String>,
    status: Option<Value>,
    enrolment: String,
    decided_by: Option<String>,
    decided_at: Option<String>,
    since: Option<String>,
    versions: BTreeMap<String, String>,
    reason: Option<String>,
    progress: Option<Progress>,
    kubernetes_node: Option<String>,
    node: Option<Node>,
    announced_at: Option<String>,
    last_upgraded_at: Option<String>,
    last_result: Option<LastResult>,
    why: String,
}

/// The slot of a host.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Slot {
    group: String,
    since: String,
    run: Option<String>,
    entry: Option<String>,
    kept: bool,
}

/// The first entry of a host in the reboot queue.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InQueue {
    index: String,
    status: String,
}

/// How a host ended in the last run that is over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LastResult {
    run: String,
    status: String,
    reason: Option<String>,
    #[serde(rename = "late-answer")]
    late_answer: Option<LateAnswer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fact {
    r#type: String,
    hosts: Vec<String>,
    host: String,
    reason: String,
    forgotten: bool,
    /// What was decided about the host's node.
    step: Step,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    kind: String,
    reason: String,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(options).await,
        Command::Show(Show { host, remote }) => {
            let client = remote.client()?;
            let host = client.call(routes::READ.named([host.as_str()])).await?;
            note_last_known(&client, remote.output).await;
            remote.output.show::<Host>(&host)
        }
        Command::Approve(options) => approve(options).await,
        Command::Withdraw(options) => leave::withdraw(options).await,
        Command::Remove(options) => leave::remove(options).await,
        Command::Uncordon(options) => node::uncordon(options).await,
        Command::History(options) => histories::show::<Fact>(options, routes::HISTORY.call()).await,
    }
}

async fn list(options: List) -> Result<(), Failure> {
    let List { pending, status, labels, outdated, reboot_required, remote } = options;
    let client = remote.client()?;
    let mut hosts: Vec<Value> = client.read(selection::list_call(pending)).await?;
    if outdated {
        hosts = outdated::among(hosts)?;
    }
    hosts.retain(|host| {
        let found = host["status"].as_str().or_else(|| host["last-result"]["status"].as_str());
        status.is_none_or(|status| found == Some(status.as_str()))
            && labels.iter().all(|(key, value)| host["labels"][key] == value.as_str())
            && (!reboot_required || host["reboot-required"].is_string())
    });
    note_last_known(&client, remote.output).await;
    remote.output.show::<Vec<Host>>(&Value::from(hosts))
}

async fn approve(options: Approve) -> Result<(), Failure> {
    let client = options.remote.client()?;
    let hosts = selected(&client, &options).await?;
    let output = options.remote.output;
    if hosts.is_empty() {
        output.note("no host waits for approval");
    }
    for (chunk, hosts) in hosts.chunks(APPROVED_AT_ONCE_MAX).enumerate() {
        let body = HostsToApprove { hosts: hosts.to_vec() };
        let sent = client.call_with_body(&routes::APPROVE, &body).await;
        // Earlier chunks are approved even if this one fails.
        let remaining =
            |error: anyhow::Error| Failure::Unknown(error.context("approving the remaining hosts"));
        sent.map_err(|error| if chunk == 0 { error.into() } else { remaining(error) })?;
    }
    output.done("approved", &hosts.iter().map(HostName::as_str).collect::<Vec<_>>())
}

/// The hosts to approve, confirmed if the operator did not name each of them.
async fn selected(client: &Client, options: &Approve) -> Result<Vec<HostName>, Failure> {
    let Approve { hosts: patterns, all, new, yes, remote: _ } = options;
    if *new {
        return Ok(patterns.clone());
    }
    let are_named = !all && !patterns.iter().any(selection::is_pattern);
    let consent = if are_named { Consent::Given } else { yes.consent() };
    if *all {
        let hosts = selection::pending(client).await.map_err(Failure::unchanged)?;
        return selection::confirmed("Approve", hosts, consent);
    }
    let known = selection::known(client).await.map_err(Failure::unchanged)?;
    let announced = |name: &HostName| {
        let is_known = known.contains(name);
        let unknown = || format!("no host has announced itself as {name}; --new approves it all the same");
        if is_known { Ok(()) } else { Err(unknown()) }
    };
    let hosts = selection::expand(patterns, &known, announced)
        .map_err(|unknown| Failure::unchanged(anyhow::anyhow!(unknown)))?;
    // Even a host with just that name: a stranger may have called it like a pattern that an operator would write.
    selection::confirmed("Approve", hosts.into_iter().collect(), consent)
}

/// Parses a label.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is written as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Parses the status of a host in a run.
fn status(text: &str) -> Result<HostStatus, String> {
    let known = HostStatus::ALL.into_iter().find(|status| status.as_str() == text);
    known.ok_or_else(|| format!("it is one of {}", HostStatus::ALL.map(HostStatus::as_str).join(", ")))
}

impl Row for Host {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.clone()),
        Column::new("ENROLMENT", |host, _| {
            if host.is_unannounced() { "no worker".to_owned() } else { host.enrolment.clone() }
        }),
        Column::wide("BY", |host, _| host.decided_by.clone().unwrap_or_else(|| "-".to_owned())),
        Column::wide("SINCE", |host, zone| zone.time_or_dash(host.decided_at.as_deref())),
        Column::wide("ANNOUNCED", |host, zone| zone.time_or_dash(host.announced_at.as_deref())),
        Column::wide("UPGRADED", |host, zone| zone.time_or_dash(host.last_upgraded_at.as_deref())),
        Column::new("STATUS", |host, _| host.status_or_last().unwrap_or("-").to_owned()),
        Column::wide("APPLICATIONS", |host, _| host.applications.join(", ")),
        Column::wide("VERSIONS", |host, _| first_versions(&host.versions)),
        Column::wide("LABELS", |host, _| pairs(&host.labels)),
        Column::wide("GROUP", |host, _| host.group.clone()),
        Column::wide("REBOOT", |host, _| {
            let word = match (&host.reboot_required, &host.reboot_ineffective) {
                (Some(_), _) => "required",
                (None, Some(_)) => "ineffective",
                (None, None) => "-",
            };
            host.reboot_queue.as_ref().map_or(word, |entry| &entry.status).to_owned()
        }),
        Column::wide("NODE", |host, _| host.node.as_ref().map_or("-", Node::word).to_owned()),
        Column::new("REACHABILITY", |host, _| host.reachability.clone()),
        Column::wide("NOT SEEN SINCE", |host, zone| zone.time_or_dash(host.not_seen_since())),
        Column::text("WHY", |host, _| host.why.clone()),
    ];
    const NONE: &'static str = "no host to show";

    fn name(&self) -> Option<String> {
        Some(self.hostname.clone())
    }
}

impl Host {
    fn is_unannounced(&self) -> bool {
        selection::is_unannounced(self.without_worker, self.decided_by.as_deref())
    }

    /// Since when nothing has been heard of it, if it is unreachable. An instance that has started since knows only that it has heard
    /// nothing.
    fn not_seen_since(&self) -> Option<&str> {
        self.last_heard_at.as_deref().or(self.unreachable_since.as_deref())
    }

    /// Whether its heartbeats arrive, in words.
    fn reachability(&self, zone: Zone) -> String {
        let word = &self.reachability;
        match (&self.last_heard_at, &self.unreachable_since) {
            (Some(heard), _) => format!("{word}, not seen since {}", zone.time(heard)),
            (None, Some(since)) => {
                format!(
                    "{word}, not seen since this instance started; unreachable since {}",
                    zone.time(since)
                )
            }
            (None, None) => word.clone(),
        }
    }

    /// Its status in the active run, or else in the last one.
    fn status_or_last(&self) -> Option<&str> {
        let last = || self.last_result.as_ref().map(|last| last.status.as_str());
        self.status.as_ref().and_then(Value::as_str).or_else(last)
    }
}

impl Slot {
    fn sentence(&self, host: &str) -> String {
        let Self { group, since, run, entry, kept } = self;
        let run = run.as_ref().map(|run| format!(", in run {run}"));
        let entry = entry.as_ref().map(|entry| format!(", for entry {entry} of the reboot queue"));
        let release = kept.then(|| format!("; it keeps it until `{}`", release::command(group, host)));
        let more: String = [run, entry, release].into_iter().flatten().collect();
        format!("group {group} since {since}{more}")
    }
}

impl LastResult {
    fn sentence(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let late = self.late_answer.as_ref().map(|late| format!("; {late}")).unwrap_or_default();
        format!("{} in run {}{reason}{late}", self.status, self.run)
    }
}

/// What the worker says of its command.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Progress {
    percent: Option<u8>,
    text: String,
}

/// The first versions, and how many more there are.
fn first_versions(versions: &BTreeMap<String, String>) -> String {
    let first = versions.iter().take(VERSIONS_SHOWN).map(|(name, version)| format!("{name} {version}"));
    let more = versions.len().saturating_sub(VERSIONS_SHOWN);
    first.chain((more > 0).then(|| format!("and {more} more"))).collect::<Vec<_>>().join(", ")
}

/// The applications that do not count, and why; none if all do.
fn refused(applications: &[String]) -> Option<String> {
    let names = applications.join(", ");
    (!applications.is_empty())
        .then(|| format!("{names}: too many applications are announced on it, and these do not count"))
}

/// `rack=r1, site=north`.
fn pairs(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

impl View for Host {
    fn text(&self, canvas: &Canvas) -> String {
        let zone = canvas.zone;
        let time = |time: &Option<String>| time.as_deref().map(|time| zone.time(time));
        let decided = self.decided_by.as_ref().map(|by| format!("{} by {by}", self.enrolment));
        let status = self.status.as_ref().and_then(Value::as_str).map(ToOwned::to_owned);
        let progress = self.progress.as_ref().map(|Progress { percent, text }| match percent {
            Some(percent) => format!("{percent} % {text}"),
            None => text.clone(),
        });
        let versions = self.versions.iter().map(|(name, version)| format!("{name} {version}"));
        let versions = versions.collect::<Vec<_>>().join(", ");
        let lines = [
            ("host", Some(self.hostname.clone())),
            ("why", Some(self.why.clone())),
            ("worker", self.without_worker.then(|| "none has announced itself on it".to_owned())),
            ("enrolment", decided.or_else(|| (!self.is_unannounced()).then(|| self.enrolment.clone()))),
            ("decided", time(&self.decided_at)),
            ("announced", time(&self.announced_at)),
            ("upgraded", time(&self.last_upgraded_at)),
            ("last run", self.last_result.as_ref().map(LastResult::sentence)),
            ("reachability", Some(self.reachability(zone))),
            ("reboot", self.reboot_required.as_ref().map(|why| format!("required: {why}"))),
            ("last reboot", self.reboot_ineffective.as_ref().map(|missed| format!("ineffective: {missed}"))),
            (
                "reboot queue",
                self.reboot_queue.as_ref().map(|entry| format!("entry {}, {}", entry.index, entry.status)),
            ),
            ("on request", self.reboots_on_request.then(|| "its worker reboots it".to_owned())),
            ("boot id", self.boot_id.clone()),
            ("applications", (!self.without_worker).then(|| self.applications.join(", "))),
            ("refused", refused(&self.refused_applications)),
            ("labels", Some(pairs(&self.labels)).filter(|labels| !labels.is_empty())),
            ("group", Some(self.group.clone())),
            ("slot", self.slot.as_ref().map(|slot| slot.sentence(&self.hostname))),
            ("status", status),
            ("since", time(&self.since)),
            ("reason", self.reason.clone()),
            ("progress", progress),
            ("versions", Some(versions).filter(|versions| !versions.is_empty())),
            ("cluster node", self.kubernetes_node.clone()),
        ];
        let lines = lines.into_iter().filter_map(|(name, text)| Some((name, text?)));
        let lines = lines.chain(self.node.iter().flat_map(Node::lines));
        let head = |name: &str| if name.is_empty() { String::new() } else { format!("{name}:") };
        lines
            .map(|(name, text)| format!("{:<14}{}", head(name), sanitized(&zone.times_in(&text))))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(vec![self.hostname.clone()])
    }
}

impl Row for Entry<Fact> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::whole("TIME", |entry, zone| zone.time(&entry.time)),
        Column::new("WHO", |entry, _| entry.actor.clone()),
        Column::new("ACTION", |entry, _| entry.fact.action().to_owned()),
        Column::text("HOSTS", |entry, _| entry.fact.hosts().join(", ")),
        Column::text("REASON", |entry, _| entry.fact.reason().to_owned()),
    ];
    const NONE: &'static str = "no host has been approved or withdrawn";

    fn name(&self) -> Option<String> {
        None
    }
}

impl Fact {
    fn action(&self) -> &str {
        match self.r#type.as_str() {
            "hosts-approved" => "approved",
            "host-withdrawn" if self.forgotten => "forgot",
            "host-withdrawn" => "withdrew",
            "host-removed" => "removed",
            "node" if self.step.kind == "uncordon-requested" => "uncordoned",
            other => other,
        }
    }

    fn reason(&self) -> &str {
        if self.reason.is_empty() { &self.step.reason } else { &self.reason }
    }

    fn hosts(&self) -> Vec<String> {
        if self.hosts.is_empty() { vec![self.host.clone()] } else { self.hosts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remote::histories::Page;

    const WIDE: Canvas = Canvas { is_wide: true, columns: None, zone: Zone::Utc };

    #[test]
    fn hosts_in_a_table() {
        let hosts = json!([
            {
                "hostname": "h01", "applications": ["a", "b"], "refused-applications": ["c"], "labels": {"rack": "r1"}, "reboot-required": "a new kernel", "reboots-on-request": true, "versions": {"linux": "6.1", "os": "12", "tool": "3"}, "group": "default", "reachability": "unreachable",
                "unreachable-since": "2026-11-21T02:00:30Z", "last-heard-at": "2026-11-21T02:00:00Z",
                "enrolment": "approved", "decided-by": "anna", "decided-at": "2026-11-21T01:00:00Z",
                "announced-at": "2026-11-21T00:59:00Z", "last-upgraded-at": "2026-10-24T01:07:12Z", "why": "no run is active",
                "last-result": {"run": "r1", "status": "failed", "reason": "upgrade failed: no space"},
            },
            {
                "hostname": "h\u{1b}2", "applications": ["a"], "group": "default", "reachability": "unknown",
                "enrolment": "pending", "announced-at": "2026-11-21T02:00:00Z", "why": "waits for approval",
                "reboot-queue": {"index": "7", "status": "queued"}, "kubernetes-node": "node-2",
                "node": {"stage": "evicting", "since": "2026-11-21T02:00:00Z", "waits": {"kind": "pods", "text": "x", "count": 7, "pods": [
                    {"namespace": "shop", "name": "db\u{1b}0", "text": "is terminating", "since": "2026-11-21T02:00:00Z"},
                ]}},
            },
        ]);
        let expected = "\
HOST  ENROLMENT  BY    SINCE                 ANNOUNCED             UPGRADED              STATUS  APPLICATIONS  VERSIONS                      LABELS   GROUP    REBOOT    NODE      REACHABILITY  NOT SEEN SINCE        WHY
h01   approved   anna  2026-11-21T01:00:00Z  2026-11-21T00:59:00Z  2026-10-24T01:07:12Z  failed  a, b          linux 6.1, os 12, and 1 more  rack=r1  default  required  -         unreachable   2026-11-21T02:00:00Z  no run is active
h\u{fffd}2   pending    -     -                     2026-11-21T02:00:00Z  -                     -       a                                                    default  queued    evicting  unknown       -                     waits for approval";
        let hosts = Vec::<Host>::deserialize(hosts).unwrap();
        assert_eq!(hosts.text(&WIDE), expected);
        let shown = hosts[0].text(&WIDE);
        assert!(shown.contains("\nlast run:     failed in run r1: upgrade failed: no space\n"), "{shown}");
        assert!(
            shown.contains("\nreboot:       required: a new kernel\non request:   its worker reboots it\n"),
            "{shown}"
        );
        let refused =
            "\nrefused:      c: too many applications are announced on it, and these do not count\n";
        assert!(shown.contains(refused), "{shown}");
        assert!(
            shown.contains("\nreachability: unreachable, not seen since 2026-11-21T02:00:00Z\n"),
            "{shown}"
        );
        let shown = hosts[1].text(&WIDE);
        assert!(shown.contains("\nreboot queue: entry 7, queued\n"), "{shown}");
        let node = "
cluster node: node-2
node:         evicting since 2026-11-21T02:00:00Z
waits for:    pod shop/db\u{fffd}0 is terminating, since 2026-11-21T02:00:00Z
              6 more pods";
        assert!(shown.ends_with(node), "{shown}");
    }

    #[test]
    fn decisions_in_a_table() {
        let item = |fact: Value| json!({ "time": "2026-11-21T01:00:00.000Z", "actor": "anna", "fact": fact });
        let page = json!({ "items": [
            item(json!({ "type": "node", "host": "h3", "step": { "kind": "uncordon-requested", "actor": "anna", "reason": "mended" } })),
            item(json!({ "type": "host-withdrawn", "host": "h2", "reason": "sold", "forgotten": true })),
            item(json!({ "type": "host-withdrawn", "host": "h1", "reason": "stolen" })),
            item(json!({ "type": "hosts-approved", "hosts": ["h1", "h2"] })),
        ]});
        let expected = "\
TIME                  WHO   ACTION      HOSTS   REASON
2026-11-21T01:00:00Z  anna  uncordoned  h3      mended
2026-11-21T01:00:00Z  anna  forgot      h2      sold
2026-11-21T01:00:00Z  anna  withdrew    h1      stolen
2026-11-21T01:00:00Z  anna  approved    h1, h2";
        let text = |page| Page::<Fact>::deserialize(page).unwrap().text(&WIDE);
        assert_eq!(text(page), expected);
        assert_eq!(text(json!({ "items": [] })), "no host has been approved or withdrawn");
    }
}
