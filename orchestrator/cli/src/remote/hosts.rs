//! `os-upgrade hosts`: the hosts of a site, and which of them take part in runs.

mod announced;
mod history;
mod leave;
mod node;
mod outdated;
pub(in crate::remote) mod selection;

use anyhow::Context as _;
use chrono::Utc;
use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::hosts::{self as routes, Host};
use os_upgrade_api_types::routes::state::{self, State};
use os_upgrade_api_types::word::Word;
use os_upgrade_console::rows::hosts;
use os_upgrade_console::status::left_behind;
use os_upgrade_kernel::HostStatus;
use os_upgrade_kernel::enrolment::APPROVED_AT_ONCE_MAX;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize as _;
use serde_json::Value;

use self::announced::New;
use self::leave::{Defer, Leave};
use self::node::Uncordon;
use super::completion;
use super::options::Remote;
use crate::Failure;
use crate::consent::{Consent, Yes};
use crate::leadership::note_last_known;
use crate::output::{Canvas, Output, View, details};
use crate::rest::Client;

/// The width of the names of details.
const HEAD_COLUMNS: usize = 13;

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
    /// match are shown first: check them, since anybody who can reach NATS can announce a host. Configuration for a host is sealed to the key
    /// that its worker announces, and approving the host approves that key: compare it with what `os-upgrade-worker` logs on the host. A host
    /// that announces another key is approved again. A host that runs units becomes the machine that it announces, with its labels as metadata;
    /// when these change, it is approved again.
    #[command(after_help = examples!["hosts approve h01 h02", "hosts approve 'web-*'", "hosts approve --all --yes"])]
    Approve(Approve),
    /// Begin nothing on hosts for now: no upgrade and no reboot
    ///
    /// Runs that start leave them out. In the active run they are not started; one that was told to upgrade finishes, with the reboot. Their
    /// entries in the reboot queue stay queued. Unlike withdraw, it may end by itself. A NAME may be a pattern, as for withdraw.
    #[command(after_help = examples![
        "hosts defer h01 --until Friday --reason 'the quarter closes'", "hosts defer 'web-*' --reason 'the fair is on' --yes",
        "hosts defer --end h01"
    ])]
    Defer(Defer),
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
    /// Show the part of a host in each run, newest first; without a host, what operators decided about hosts
    ///
    /// Decisions are approvals, withdrawals, removals and deferrals, and whose nodes operators had uncordoned.
    #[command(after_help = examples!["hosts history h02", "hosts history h02 --limit 5 -o json", "hosts history --limit 10"])]
    History(history::History),
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
    #[arg(value_name = "NAME", add = completion::hosts())]
    host: HostName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The hosts, or patterns with * and ?
    #[arg(value_name = "NAME", required_unless_present = "all", add = completion::hosts())]
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

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(options).await,
        Command::Show(Show { host, remote }) => {
            let client = remote.client()?;
            let host = client.call(routes::READ.named([host.as_str()])).await?;
            note_last_known(&client, remote.output).await;
            remote.output.show::<Host<'_>>(&host)
        }
        Command::Approve(options) => approve(options).await,
        Command::Withdraw(options) => leave::withdraw(options).await,
        Command::Remove(options) => leave::remove(options).await,
        Command::Defer(options) => leave::defer(options).await,
        Command::Uncordon(options) => node::uncordon(options).await,
        Command::History(options) => history::show(options).await,
    }
}

async fn list(options: List) -> Result<(), Failure> {
    let List { pending, status, labels, outdated, reboot_required, remote } = options;
    let client = remote.client()?;
    let mut hosts: Vec<Value> = client.read(selection::list_call(pending)).await?;
    if outdated {
        hosts = outdated::among(hosts)?;
    }
    if status.is_some() || !labels.is_empty() || reboot_required {
        let has_label = |host: &Host<'_>, key: &str, value: &str| {
            host.labels.get(key).is_some_and(|announced| announced == value)
        };
        hosts = only(hosts, |host| {
            status.is_none_or(|status| hosts::status_or_last(host) == Some(&Word::Known(status)))
                && labels.iter().all(|(key, value)| has_label(host, key, value))
                && (!reboot_required || host.reboot_required.is_some())
        })?;
    }
    note_last_known(&client, remote.output).await;
    remote.output.show::<Vec<Host<'_>>>(&Value::from(hosts))?;
    note_left_behind(&client, remote.output).await;
    Ok(())
}

/// Says which hosts upgrades do not reach. What cannot be read is left out: it is only a note.
async fn note_left_behind(client: &Client, output: Output) {
    if !output.has_asides() {
        return;
    }
    let call = state::READ.call().with("fields", "not-reached,oldest-success");
    if let Ok(state) = client.read::<State<'_>>(call).await {
        let (not_reached, oldest) = left_behind(&state, Utc::now());
        for line in not_reached.iter().chain(&oldest) {
            output.aside(&sanitized(line));
        }
    }
}

/// Those of `hosts` for which `is_meant` holds, as they were read.
fn only(hosts: Vec<Value>, is_meant: impl Fn(&Host<'_>) -> bool) -> anyhow::Result<Vec<Value>> {
    let mut meant = Vec::new();
    for host in hosts {
        if is_meant(&Host::deserialize(&host).context("unexpected response")?) {
            meant.push(host);
        }
    }
    Ok(meant)
}

async fn approve(options: Approve) -> Result<(), Failure> {
    let client = options.remote.client()?;
    // What nobody has announced has neither a key nor a machine id.
    let new =
        if options.new { New::default() } else { New::read(&client).await.map_err(Failure::unchanged)? };
    let hosts = selected(&client, &options, &new).await?;
    let output = options.remote.output;
    for line in hosts.iter().flat_map(|host| new.lines(host)) {
        output.aside(&line);
    }
    if hosts.is_empty() {
        output.note("no host waits for approval");
    }
    for (chunk, hosts) in hosts.chunks(APPROVED_AT_ONCE_MAX).enumerate() {
        let sent = client.call_with_body(&routes::APPROVE, &new.approval(hosts)).await;
        // Earlier chunks are approved even if this one fails.
        let remaining =
            |error: anyhow::Error| Failure::Unknown(error.context("approving the remaining hosts"));
        sent.map_err(|error| if chunk == 0 { error.into() } else { remaining(error) })?;
    }
    output.done("approved", &hosts.iter().map(HostName::as_str).collect::<Vec<_>>())
}

/// The hosts to approve, confirmed if the operator did not name each of them.
async fn selected(client: &Client, options: &Approve, new: &New) -> Result<Vec<HostName>, Failure> {
    let described = |host: &HostName| new.described(host);
    let Approve { hosts: patterns, all, new: unannounced, yes, remote: _ } = options;
    if *unannounced {
        return Ok(patterns.clone());
    }
    let are_named = !all && !patterns.iter().any(selection::is_pattern);
    let consent = if are_named { Consent::Given } else { yes.consent() };
    if *all {
        let hosts = selection::pending(client).await.map_err(Failure::unchanged)?;
        return selection::confirmed("Approve", hosts, described, consent);
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
    selection::confirmed("Approve", hosts.into_iter().collect(), described, consent)
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

impl View for Host<'static> {
    fn text(&self, canvas: &Canvas) -> String {
        details(hosts::details(self, canvas.zone), HEAD_COLUMNS)
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(vec![self.hostname.to_string()])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use os_upgrade_api_types::body::Page;
    use os_upgrade_console::Zone;
    use os_upgrade_console::rows::histories::HostChange;
    use serde_json::json;

    use super::*;

    const WIDE: Canvas = Canvas { is_wide: true, columns: None, zone: Zone::Utc };

    /// A host with these fields, and those that every host has.
    pub(in crate::remote) fn host(fields: Value) -> Value {
        let mut host = json!({
            "hostname": "h01", "applications": ["a"], "group": "default", "reachability": "unknown",
            "enrolment": "approved", "why": { "kind": "a kind", "text": "no run is active" },
        });
        let Value::Object(fields) = fields else { unreachable!("fields are an object") };
        host.as_object_mut().unwrap().extend(fields);
        host
    }

    #[test]
    fn hosts_in_a_table() {
        let hosts = [
            host(json!({
                "hostname": "h01", "applications": ["a", "b"], "refused-applications": ["c"], "labels": {"rack": "r1"}, "reboot-required": "a new kernel", "reboots-on-request": true,
                "key": {"status": "waiting", "announced": "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE", "application": "a", "refused-applications": ["b"]}, "versions": {"linux": "6.1", "os": "12", "tool": "3"}, "group": "default", "reachability": "unreachable",
                "unreachable-since": "2026-11-21T02:00:30Z", "last-heard-at": "2026-11-21T02:00:00Z",
                "enrolment": "approved", "decided-by": "anna", "decided-at": "2026-11-21T01:00:00Z",
                "announced-at": "2026-11-21T00:59:00Z", "last-upgraded-at": "2026-10-24T01:07:12Z", "why": {"kind": "no-run", "text": "no run is active"},
                "last-result": {"run": "r1", "status": "failed", "why": {"kind": "worker-error", "text": "upgrade failed: no space"}},
            })),
            host(json!({
                "hostname": "h\u{1b}2", "applications": ["a"], "group": "default", "reachability": "unknown",
                "enrolment": "pending", "announced-at": "2026-11-21T02:00:00Z", "why": {"kind": "awaits-approval", "text": "waits for approval"},
                "reboot-queue": {"index": "7", "status": "queued"}, "kubernetes-node": "node-2",
                "node": {"stage": "evicting", "since": "2026-11-21T02:00:00Z", "waits": {"kind": "pods", "text": "x", "count": 7, "pods": [
                    {"namespace": "shop", "name": "db\u{1b}0", "obstacle": "terminating", "text": "is terminating", "since": "2026-11-21T02:00:00Z"},
                ]}},
            })),
        ];
        let expected = "\
HOST  ENROLMENT  BY    SINCE                 ANNOUNCED             UPGRADED              STATUS  APPLICATIONS  VERSIONS                      LABELS   GROUP    REBOOT    KEY      NODE      REACHABILITY  NOT SEEN SINCE        WHY
h01   approved   anna  2026-11-21T01:00:00Z  2026-11-21T00:59:00Z  2026-10-24T01:07:12Z  failed  a, b          linux 6.1, os 12, and 1 more  rack=r1  default  required  waiting  -         unreachable   2026-11-21T02:00:00Z  no run is active
h\u{fffd}2   pending    -     -                     2026-11-21T02:00:00Z  -                     -       a                                                    default  queued    -        evicting  unknown       -                     waits for approval";
        let hosts = Vec::<Host<'_>>::deserialize(Value::from(hosts.to_vec())).unwrap();
        assert_eq!(hosts.text(&WIDE), expected);
        let shown = hosts[0].text(&WIDE);
        assert!(shown.contains("\nlast run:     failed in run r1: upgrade failed: no space\n"), "{shown}");
        assert!(
            shown.contains("\nreboot:       required: a new kernel\non request:   its worker reboots it\n"),
            "{shown}"
        );
        let key = "\nkey:          AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE of a, waits for approval; b may not take configuration too\n";
        assert!(shown.contains(key), "{shown}");
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
        let item = |fact: Value| json!({ "sequence": 7, "place": 0, "time": "2026-11-21T01:00:00.000Z", "type": fact["type"], "actor": "anna", "fact": fact });
        let page = json!({ "items": [
            item(json!({ "type": "of-a-newer-version" })),
            item(json!({ "type": "node", "host": "h3", "step": { "kind": "uncordon-requested", "actor": "anna", "reason": "mended" } })),
            item(json!({ "type": "host-removed", "host": "h4", "actor": "anna", "reason": "burnt", "announced": 3 })),
            item(json!({ "type": "host-withdrawn", "host": "h2", "actor": "anna", "reason": "sold", "forgotten": true })),
            item(json!({ "type": "host-withdrawn", "host": "h1", "actor": "anna", "reason": "stolen" })),
            item(json!({ "type": "hosts-approved", "hosts": ["h1", "h2"], "actor": "anna" })),
        ]});
        let expected = "\
TIME                  WHO   ACTION              HOSTS   REASON
2026-11-21T01:00:00Z  anna  of-a-newer-version
2026-11-21T01:00:00Z  anna  uncordoned          h3      mended
2026-11-21T01:00:00Z  anna  removed             h4      burnt
2026-11-21T01:00:00Z  anna  forgot              h2      sold
2026-11-21T01:00:00Z  anna  withdrew            h1      stolen
2026-11-21T01:00:00Z  anna  approved            h1, h2";
        let text = |page| Page::<HostChange>::deserialize(page).unwrap().text(&WIDE);
        assert_eq!(text(page), expected);
        assert_eq!(text(json!({ "items": [] })), "no host has been approved or withdrawn");
    }
}
