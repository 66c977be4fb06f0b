//! `os-upgrade hosts`: the hosts of a site, and which of them take part in runs.

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

use super::histories::{self, Entry};
use super::options::Remote;
use crate::Failure;
use crate::output::{Column, Row};
use crate::rest::{self, Client};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the hosts, whether they take part in runs, and what keeps them from moving
    #[command(after_help = examples!["hosts list", "hosts list --pending -o name"])]
    List(List),
    /// Let hosts take part in runs, from the next one on
    ///
    /// A host can be approved before it has announced itself. --all approves every host that waits for approval: check
    /// them with `list --pending` first, since anybody who can reach NATS can announce a host.
    #[command(after_help = examples!["hosts approve h01 h02", "hosts approve --all"])]
    Approve(Approve),
    /// Exclude a host from runs, even if hosts are approved automatically
    ///
    /// In the active run it is not started. If it already has its slot, it finishes its upgrade, with the reboot: a host
    /// left in the middle of an upgrade would have neither the old nor the new system.
    #[command(after_help = examples!["hosts withdraw h01 --reason 'it is being rebuilt'"])]
    Withdraw(Withdraw),
    /// Let the active run go on without a host, such as one that is down and will not answer
    ///
    /// If it has not begun, it is not started. If it is upgrading or rebooting, it may still be at work: its slot stays
    /// held until it reports that it is done, or until `os-upgrade lock release`. The next run includes it again, unless
    /// it is also withdrawn.
    #[command(after_help = examples!["hosts give-up h01 --reason 'power supply failed'"])]
    GiveUp(GiveUp),
    /// Show which hosts operators approved and withdrew
    #[command(after_help = examples!["hosts history", "hosts history --limit 10"])]
    History(histories::PageOptions),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only hosts that wait for approval
    #[arg(long)]
    pending: bool,
    #[command(flatten)]
    remote: Remote,
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
    remote: Remote,
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
    remote: Remote,
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
    remote: Remote,
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
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list(options).await,
        Command::Approve(options) => approve(options).await,
        Command::Withdraw(options) => withdraw(options).await,
        Command::GiveUp(options) => give_up(options).await,
        Command::History(options) => histories::show::<Fact>(options, routes::HISTORY.call()).await,
    }
}

async fn list(List { pending, remote }: List) -> Result<(), Failure> {
    let hosts = remote.client()?.call(list_call(pending)).await?;
    remote.output.show::<Vec<Host>>(&hosts)
}

fn list_call(pending: bool) -> Call {
    let call = routes::LIST.call();
    if pending { call.with("pending", "true") } else { call }
}

async fn approve(Approve { hosts, all, remote }: Approve) -> Result<(), Failure> {
    let client = remote.client()?;
    // Hosts that wait for approval have announced themselves.
    let maybe_unknown = !all;
    let hosts = if all { pending(&client).await.map_err(rest::before_change)? } else { hosts };
    if hosts.is_empty() {
        remote.output.note("no host waits for approval");
    }
    for (chunk, hosts) in hosts.chunks(APPROVED_AT_ONCE_MAX).enumerate() {
        let body = HostsToApprove { hosts: hosts.to_vec() };
        let sent = client.call_with_body(&routes::APPROVE, &body).await;
        // Earlier chunks are approved even if this one fails.
        let remaining = |error: anyhow::Error| error.context("approving the remaining hosts");
        sent.map_err(|error| if chunk == 0 { error } else { remaining(error) })?;
        for host in hosts {
            // If the host cannot be read, no note is printed.
            let unseen =
                maybe_unknown && shown(&client, host).await.is_some_and(|shown| shown.announced_at.is_none());
            let note = if unseen { " (no worker has announced itself under this name)" } else { "" };
            remote.output.note(&format!("approved: {}{note}", sanitized(host.as_str())));
        }
    }
    Ok(())
}

async fn pending(client: &Client) -> anyhow::Result<Vec<HostName>> {
    client.read(list_call(true).with("keys", "true")).await
}

async fn withdraw(Withdraw { host, reason, forget, remote }: Withdraw) -> Result<(), Failure> {
    let client = remote.client()?;
    let body = HostToWithdraw { host: host.clone(), reason, forget };
    client.call_with_body(&routes::WITHDRAW, &body).await?;
    remote.output.done(if forget { "forgotten" } else { "withdrawn" }, &[host.as_str()])?;
    let status = shown(&client, &host).await.and_then(|shown| HostStatus::deserialize(&shown.status?).ok());
    if let Some(status) = status.filter(|status| status.is_under_way()) {
        remote.output.note(&format!("it is {status} in the active run, and finishes there"));
    }
    Ok(())
}

async fn give_up(GiveUp { host, reason, remote }: GiveUp) -> Result<(), Failure> {
    let client = remote.client()?;
    let body = HostToGiveUp { host: host.clone(), reason };
    client.call_with_body(&GIVE_UP, &body).await?;
    remote.output.done("given up", &[host.as_str()])?;
    if let Some(group) = slot_of(&client, &host).await {
        let (shown, group, id) = (sanitized(&group), quoted(&group), quoted(host.as_str()));
        remote.output.note(&format!(
            "it keeps its slot of group {shown}, because it may be at work, until it reports that it is done. If it never \
             will:\nos-upgrade lock release --group={group} --id={id} --reason=TEXT"
        ));
    }
    Ok(())
}

/// The group whose slot `host` holds. `None` also if that cannot be read: it is only for a note.
async fn slot_of(client: &Client, host: &HostName) -> Option<String> {
    let slots = client.call(&slots::READ).await.ok()?;
    let holds = |group: &&Value| {
        let holders = group["holders"].as_array();
        holders.is_some_and(|holders| holders.iter().any(|holder| holder["id"] == host.as_str()))
    };
    let group = slots["groups"].as_array()?.iter().find(holds)?;
    group["group"].as_str().map(ToOwned::to_owned)
}

/// The host as the API shows it. `None` also if that cannot be read: it is only for a note.
async fn shown(client: &Client, host: &HostName) -> Option<Host> {
    client.read(routes::READ.named([host.as_str()])).await.ok()
}

impl Row for Host {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |host, _| host.hostname.clone()),
        Column::new("ENROLMENT", |host, _| host.enrolment.clone()),
        Column::wide("BY", |host, _| host.decided_by.clone().unwrap_or_else(|| "-".to_owned())),
        Column::wide("SINCE", |host, zone| zone.time_or_dash(host.decided_at.as_deref())),
        Column::wide("ANNOUNCED", |host, zone| zone.time_or_dash(host.announced_at.as_deref())),
        Column::wide("APPLICATIONS", |host, _| host.applications.join(", ")),
        Column::wide("GROUP", |host, _| host.group.clone()),
        Column::new("REACHABILITY", |host, _| host.reachability.clone()),
        Column::text("WHY", |host, _| host.why.clone()),
    ];
    const NONE: &'static str = "there is no such host";

    fn name(&self) -> Option<String> {
        Some(self.hostname.clone())
    }
}

impl Row for Entry<Fact> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("TIME", |entry, zone| zone.time(&entry.time)),
        Column::new("WHO", |entry, _| entry.actor.clone()),
        Column::new("ACTION", |entry, _| entry.fact.action().to_owned()),
        Column::text("HOSTS", |entry, _| entry.fact.hosts().join(", ")),
        Column::text("REASON", |entry, _| entry.fact.reason.clone()),
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
            other => other,
        }
    }

    fn hosts(&self) -> Vec<String> {
        if self.hosts.is_empty() { vec![self.host.clone()] } else { self.hosts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::{Canvas, View as _, Zone};
    use crate::remote::histories::Page;

    const WIDE: Canvas = Canvas { is_wide: true, columns: None, zone: Zone::Utc };

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
        assert_eq!(Vec::<Host>::deserialize(hosts).unwrap().text(&WIDE), expected);
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
TIME                  WHO   ACTION    HOSTS   REASON
2026-11-21T01:00:00Z  anna  forgot    h2      sold
2026-11-21T01:00:00Z  anna  withdrew  h1      stolen
2026-11-21T01:00:00Z  anna  approved  h1, h2";
        let text = |page| Page::<Fact>::deserialize(page).unwrap().text(&WIDE);
        assert_eq!(text(page), expected);
        assert_eq!(text(json!({ "items": [] })), "no host has been approved or withdrawn");
    }
}
