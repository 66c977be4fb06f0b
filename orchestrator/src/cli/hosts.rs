//! `os-upgrade hosts`: the hosts of a site, and which of them take part in runs.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use os_upgrade_kernel::HostStatus;
use os_upgrade_kernel::enrolment::APPROVED_AT_ONCE_MAX;
use os_upgrade_protocol::HostName;
use os_upgrade_shell::fleetlock::plain;
use serde::Deserialize;
use serde_json::{Value, json};

use super::output::{Output, outln, table};
use super::rest::{self, Server};

const STATE: &str = "/v1/state/os-upgrade";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show the hosts, whether they take part in runs, and why they are not moving
    List(List),
    /// Let hosts take part in runs, from the next one on
    ///
    /// A host that has not announced itself yet can be approved too. With --all it is every host that waits for approval
    /// by then: look at them with `list --pending` first, since whoever reaches NATS can announce a host.
    Approve(Approve),
    /// Let a host take part in runs no more, also where hosts are approved by themselves
    ///
    /// In the active run it is not started. Where it has its slot already it goes on to its end there, its reboot too: a
    /// host that is left in the middle of an upgrade is neither the old nor the new system.
    Withdraw(Withdraw),
    /// Show which hosts operators approved and withdrew
    History(History),
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    server: Server,
    /// Only those that wait for approval
    #[arg(long)]
    pending: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(super) struct Approve {
    /// The hosts
    #[arg(value_name = "NAME", required_unless_present = "all")]
    hosts: Vec<HostName>,
    /// Every host that waits for approval
    #[arg(long, conflicts_with = "hosts")]
    all: bool,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
pub(super) struct Withdraw {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Keep no note of it, as for one that is gone for good: should it announce itself again, it waits for approval
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    server: Server,
    /// How many to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What `GET /v1/state/os-upgrade/hosts` says of a host.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Host {
    hostname: String,
    applications: Vec<String>,
    group: String,
    reachability: String,
    enrolment: String,
    decided_by: Option<String>,
    decided_at: Option<String>,
    announced_at: Option<String>,
    why: String,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    time: String,
    #[serde(default)]
    actor: String,
    fact: Fact,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fact {
    r#type: String,
    hosts: Vec<String>,
    host: String,
    reason: String,
    forgotten: bool,
}

/// Carries the command out.
pub(super) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(options) => list(options).await,
        Command::Approve(options) => approve(options).await,
        Command::Withdraw(options) => withdraw(options).await,
        Command::History(options) => history(options).await,
    }
}

async fn list(List { server, pending, output }: List) -> anyhow::Result<()> {
    let hosts = rest::get(&server, &listed(pending)).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&hosts)?),
        Output::Text => outln!("{}", text(&read(hosts)?, pending)),
    }
    Ok(())
}

fn listed(pending: bool) -> String {
    format!("{STATE}/hosts{}", if pending { "?pending=true" } else { "" })
}

fn read(hosts: Value) -> anyhow::Result<Vec<Host>> {
    Deserialize::deserialize(hosts).context("an unexpected answer")
}

async fn approve(Approve { hosts, all, server }: Approve) -> anyhow::Result<()> {
    let hosts = if all { pending(&server).await? } else { hosts };
    if hosts.is_empty() {
        outln!("no host waits for approval");
        return Ok(());
    }
    for hosts in hosts.chunks(APPROVED_AT_ONCE_MAX) {
        rest::post(&server, &format!("{STATE}/approve-hosts"), &json!({ "hosts": hosts })).await?;
        for host in hosts {
            outln!("approved: {}", plain(host.as_str()));
        }
    }
    Ok(())
}

async fn pending(server: &Server) -> anyhow::Result<Vec<HostName>> {
    let names = rest::get(server, &format!("{}&keys=true", listed(true))).await?;
    Deserialize::deserialize(names).context("an unexpected answer")
}

async fn withdraw(Withdraw { host, reason, forget, server }: Withdraw) -> anyhow::Result<()> {
    let body = json!({ "host": host, "reason": reason, "forget": forget });
    rest::post(&server, &format!("{STATE}/withdraw-host"), &body).await?;
    outln!("{}: {}", if forget { "forgotten" } else { "withdrawn" }, plain(host.as_str()));
    // What it is at is worth a word, and not worth an error.
    let shown = rest::get_below(&server, &format!("{STATE}/hosts"), &[host.as_str()]).await;
    let status = shown.ok().and_then(|shown| HostStatus::deserialize(&shown["status"]).ok());
    if let Some(status) = status.filter(|status| status.is_under_way()) {
        outln!("it is {status} in the active run, and goes on to its end there");
    }
    Ok(())
}

async fn history(History { server, limit, output }: History) -> anyhow::Result<()> {
    let page = rest::get(&server, &format!("{STATE}/enrolment-history?limit={limit}")).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&page)?),
        Output::Text => {
            let page = Page::deserialize(page).context("an unexpected answer")?;
            outln!("{}", decisions(&page));
        }
    }
    Ok(())
}

fn text(hosts: &[Host], pending: bool) -> String {
    if hosts.is_empty() {
        return if pending { "no host waits for approval" } else { "no host is known" }.to_owned();
    }
    let heads =
        ["HOST", "ENROLMENT", "BY", "SINCE", "ANNOUNCED", "APPLICATIONS", "GROUP", "REACHABILITY", "WHY"];
    table(&heads, hosts.iter().map(Host::row).collect()).trim_end().to_owned()
}

impl Host {
    fn row(&self) -> Vec<String> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            self.hostname.clone(),
            self.enrolment.clone(),
            or_none(&self.decided_by),
            or_none(&self.decided_at),
            or_none(&self.announced_at),
            self.applications.join(", "),
            self.group.clone(),
            self.reachability.clone(),
            self.why.clone(),
        ]
    }
}

fn decisions(page: &Page) -> String {
    if page.items.is_empty() {
        return "nobody has approved or withdrawn a host".to_owned();
    }
    let row = |Item { time, actor, fact }: &Item| {
        let did = match fact.r#type.as_str() {
            "hosts-approved" => "approved",
            "host-withdrawn" if fact.forgotten => "forgot",
            "host-withdrawn" => "withdrew",
            other => other,
        };
        let hosts = if fact.hosts.is_empty() { fact.host.clone() } else { fact.hosts.join(", ") };
        vec![time.clone(), actor.clone(), did.to_owned(), hosts, fact.reason.clone()]
    };
    let heads = ["TIME", "WHO", "DID", "HOSTS", "REASON"];
    table(&heads, page.items.iter().map(row).collect()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_a_table() {
        let hosts = json!([
            {
                "hostname": "h01", "applications": ["a", "b"], "group": "default", "reachability": "reachable",
                "enrolment": "approved", "decided-by": "anna", "decided-at": "2026-11-21T01:00:00Z",
                "announced-at": "2026-11-21T00:59:00Z", "why": "no run is active",
            },
            {
                "hostname": "h\u{1b}2", "applications": ["a"], "group": "default", "reachability": "unknown",
                "enrolment": "pending", "announced-at": "2026-11-21T02:00:00Z", "why": "waits for approval",
            },
        ]);
        let expected = "\
HOST  ENROLMENT  BY    SINCE                 ANNOUNCED             APPLICATIONS  GROUP    REACHABILITY  WHY
h01   approved   anna  2026-11-21T01:00:00Z  2026-11-21T00:59:00Z  a, b          default  reachable     no run is active
h\u{fffd}2   pending    -     -                     2026-11-21T02:00:00Z  a             default  unknown       waits for approval";
        assert_eq!(text(&read(hosts).unwrap(), false), expected);
        assert_eq!(text(&[], true), "no host waits for approval");
    }

    #[test]
    fn decisions_in_a_table() {
        let item = |fact: Value| json!({ "time": "2026-11-21T01:00:00.000Z", "actor": "anna", "fact": fact });
        let page = json!({ "items": [
            item(json!({ "type": "host-withdrawn", "host": "h2", "reason": "sold", "forgotten": true })),
            item(json!({ "type": "host-withdrawn", "host": "h1", "reason": "stolen" })),
            item(json!({ "type": "hosts-approved", "hosts": ["h1", "h2"] })),
        ]});
        let expected = "\
TIME                      WHO   DID       HOSTS   REASON
2026-11-21T01:00:00.000Z  anna  forgot    h2      sold
2026-11-21T01:00:00.000Z  anna  withdrew  h1      stolen
2026-11-21T01:00:00.000Z  anna  approved  h1, h2";
        assert_eq!(decisions(&Page::deserialize(page).unwrap()), expected);
        assert_eq!(decisions(&Page { items: Vec::new() }), "nobody has approved or withdrawn a host");
    }
}
