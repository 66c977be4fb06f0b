//! `os-upgrade hosts`: the hosts of a site, and which of them take part in runs.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::hosts::{self as routes, HostToWithdraw, HostsToApprove};
use os_upgrade_api_types::routes::runs::{GIVE_UP, HostToGiveUp};
use os_upgrade_api_types::routes::slots;
use os_upgrade_kernel::HostStatus;
use os_upgrade_kernel::enrolment::APPROVED_AT_ONCE_MAX;
use os_upgrade_kernel::reason::quoted;
use os_upgrade_protocol::HostName;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

use super::histories::{self, Shown};
use crate::output::{Output, outln, table};
use crate::rest::{self, Server};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the hosts, whether they take part in runs, and what keeps them from moving
    List(List),
    /// Let hosts take part in runs, from the next one on
    ///
    /// A host can be approved before it has announced itself. --all approves every host that waits for approval: check
    /// them with `list --pending` first, since anybody who can reach NATS can announce a host.
    Approve(Approve),
    /// Exclude a host from runs, even if hosts are approved automatically
    ///
    /// In the active run it is not started. If it already has its slot, it finishes its upgrade, with the reboot: a host
    /// left in the middle of an upgrade would have neither the old nor the new system.
    Withdraw(Withdraw),
    /// Let the active run go on without a host, such as one that is down and will not answer
    ///
    /// If it has not begun, it is not started. If it is upgrading or rebooting, it may still be at work: its slot stays
    /// held until it reports that it is done, or until `os-upgrade lock release`. The next run includes it again, unless
    /// it is also withdrawn.
    GiveUp(GiveUp),
    /// Show which hosts operators approved and withdrew
    History(histories::PageOptions),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    server: Server,
    /// Only hosts that wait for approval
    #[arg(long)]
    pending: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
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
pub(crate) struct Withdraw {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Keep no record of the host, such as one that was scrapped; while NATS has its announcement, it waits for approval
    /// again
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct GiveUp {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    server: Server,
}

/// A host in the response of `GET /v1/state/os-upgrade/hosts`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Host {
    hostname: String,
    applications: Vec<String>,
    group: String,
    reachability: String,
    status: Option<Value>,
    enrolment: String,
    decided_by: Option<String>,
    decided_at: Option<String>,
    announced_at: Option<String>,
    why: String,
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
pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(options) => list(options).await,
        Command::Approve(options) => approve(options).await,
        Command::Withdraw(options) => withdraw(options).await,
        Command::GiveUp(options) => give_up(options).await,
        Command::History(options) => histories::show::<Fact>(options, routes::HISTORY.call()).await,
    }
}

async fn list(List { server, pending, output }: List) -> anyhow::Result<()> {
    let hosts = rest::call(&server, list_call(pending)).await?;
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&hosts)?),
        Output::Text => outln!("{}", text(&read(hosts)?, pending)),
    }
    Ok(())
}

fn list_call(pending: bool) -> Call {
    let call = routes::LIST.call();
    if pending { call.with("pending", "true") } else { call }
}

fn read(hosts: Value) -> anyhow::Result<Vec<Host>> {
    Deserialize::deserialize(hosts).context("unexpected response")
}

async fn approve(Approve { hosts, all, server }: Approve) -> anyhow::Result<()> {
    // Hosts that wait for approval have announced themselves.
    let maybe_unknown = !all;
    let hosts = if all { pending(&server).await.map_err(rest::before_change)? } else { hosts };
    if hosts.is_empty() {
        outln!("no host waits for approval");
        return Ok(());
    }
    for (chunk, hosts) in hosts.chunks(APPROVED_AT_ONCE_MAX).enumerate() {
        let body = HostsToApprove { hosts: hosts.to_vec() };
        let sent = rest::call_with_body(&server, &routes::APPROVE, &body).await;
        // Earlier chunks are approved even if this one fails.
        let remaining = |error: anyhow::Error| error.context("approving the remaining hosts");
        sent.map_err(|error| if chunk == 0 { error } else { remaining(error) })?;
        for host in hosts {
            // If the host cannot be read, no note is printed.
            let unseen =
                maybe_unknown && shown(&server, host).await.is_some_and(|shown| shown.announced_at.is_none());
            let note = if unseen { " (no worker has announced itself under this name)" } else { "" };
            outln!("approved: {}{note}", sanitized(host.as_str()));
        }
    }
    Ok(())
}

async fn pending(server: &Server) -> anyhow::Result<Vec<HostName>> {
    let names = rest::call(server, list_call(true).with("keys", "true")).await?;
    Deserialize::deserialize(names).context("unexpected response")
}

async fn withdraw(Withdraw { host, reason, forget, server }: Withdraw) -> anyhow::Result<()> {
    let body = HostToWithdraw { host: host.clone(), reason, forget };
    rest::call_with_body(&server, &routes::WITHDRAW, &body).await?;
    outln!("{}: {}", if forget { "forgotten" } else { "withdrawn" }, sanitized(host.as_str()));
    let status = shown(&server, &host).await.and_then(|shown| HostStatus::deserialize(&shown.status?).ok());
    if let Some(status) = status.filter(|status| status.is_under_way()) {
        outln!("it is {status} in the active run, and finishes there");
    }
    Ok(())
}

async fn give_up(GiveUp { host, reason, server }: GiveUp) -> anyhow::Result<()> {
    let body = HostToGiveUp { host: host.clone(), reason };
    rest::call_with_body(&server, &GIVE_UP, &body).await?;
    outln!("given up: {}", sanitized(host.as_str()));
    if let Some(group) = slot_of(&server, &host).await {
        let (shown, group, id) = (sanitized(&group), quoted(&group), quoted(host.as_str()));
        outln!(
            "it keeps its slot of group {shown}, because it may be at work, until it reports that it is done. If it never \
             will:\nos-upgrade lock release --group={group} --id={id} --reason=TEXT"
        );
    }
    Ok(())
}

/// The group whose slot `host` holds. `None` also if that cannot be read: it is only for a note.
async fn slot_of(server: &Server, host: &HostName) -> Option<String> {
    let slots = rest::call(server, &slots::READ).await.ok()?;
    let holds = |group: &&Value| {
        let holders = group["holders"].as_array();
        holders.is_some_and(|holders| holders.iter().any(|holder| holder["id"] == host.as_str()))
    };
    let group = slots["groups"].as_array()?.iter().find(holds)?;
    group["group"].as_str().map(ToOwned::to_owned)
}

/// The host as the API shows it. `None` also if that cannot be read: it is only for a note.
async fn shown(server: &Server, host: &HostName) -> Option<Host> {
    let shown = rest::call(server, routes::READ.named([host.as_str()])).await.ok()?;
    Deserialize::deserialize(shown).ok()
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

impl Shown for Fact {
    const HEADS: &'static [&'static str] = &["ACTION", "HOSTS", "REASON"];
    const NONE: &'static str = "no host has been approved or withdrawn";

    fn row(&self) -> Vec<String> {
        let did = match self.r#type.as_str() {
            "hosts-approved" => "approved",
            "host-withdrawn" if self.forgotten => "forgot",
            "host-withdrawn" => "withdrew",
            other => other,
        };
        let hosts = if self.hosts.is_empty() { self.host.clone() } else { self.hosts.join(", ") };
        vec![did.to_owned(), hosts, self.reason.clone()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remote::histories::Page;

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
TIME                      WHO   ACTION    HOSTS   REASON
2026-11-21T01:00:00.000Z  anna  forgot    h2      sold
2026-11-21T01:00:00.000Z  anna  withdrew  h1      stolen
2026-11-21T01:00:00.000Z  anna  approved  h1, h2";
        let text = |page| histories::text(&Page::<Fact>::deserialize(page).unwrap());
        assert_eq!(text(page), expected);
        assert_eq!(text(json!({ "items": [] })), "no host has been approved or withdrawn");
    }
}
