//! `os-upgrade reboot-queue`: hosts that are to reboot without an upgrade. The verbs are those of CKE's `ckecli reboot-queue`.

mod entry;
mod list;
mod nodes;
mod required;

use clap::{Args, Subcommand};
use os_upgrade_api_types::route::Route;
use os_upgrade_api_types::routes::reboot_queue::{
    self as routes, Entry, EntryIndex, EntryToCancel, EntryToGiveUp, IsEnabled, NodesToReboot, WhyAsked,
};
use os_upgrade_console::rows::histories::QueueChange;
use os_upgrade_console::{Row as _, first_of};
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

use super::histories::{self, PageOptions};
use super::options::Remote;
use super::release;
use crate::Failure;
use crate::output::Output;
use crate::rest::Client;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the entries, in the order in which they start, and why each is not progressing
    ///
    /// With `-o json` it is a JSON array, and with `-o simple` a table of the six fields that CKE's queue has too.
    #[command(after_help = examples![
        "reboot-queue list", "reboot-queue list --watch", "reboot-queue list -o json", "reboot-queue list -o simple"
    ])]
    List(list::List),
    /// Show everything about an entry
    #[command(after_help = examples!["reboot-queue show 7", "reboot-queue show 7 -o yaml"])]
    Show(Show),
    /// Queue a reboot of hosts: of all that are named, or of none if one of them cannot be queued
    ///
    /// They reboot in this order, as many at once as `[reboot] max-concurrent-reboots` says. A single argument that is `-`, has a slash in
    /// it, or is the name of a file is a file of names, separated by white space; `-` is standard input. Any other argument is the
    /// name of a host. Where a file has the name of a host, pass that name on standard input.
    #[command(after_help = examples![
        "reboot-queue add h01 h02 --reason 'a new kernel'",
        "reboot-queue add nodes.txt",
        "reboot-queue add - --reason 'a new kernel'",
        "reboot-queue add --file nodes.txt",
        "reboot-queue add --required --reason 'a new kernel'",
    ])]
    Add(Add),
    /// Cancel an entry
    ///
    /// One that has not told its host to reboot gives its slot back, and is removed. A reboot that has begun cannot be undone: the
    /// entry stays until the host is back, and keeps its slot until then.
    #[command(after_help = examples!["reboot-queue cancel 7", "reboot-queue cancel 7 --reason 'not tonight'"])]
    Cancel(Cancel),
    /// Cancel every entry, as `cancel` does
    #[command(after_help = examples!["reboot-queue cancel-all --reason 'not tonight'"])]
    CancelAll(Why),
    /// Remove an entry whose host will not be back, such as one whose power supply has failed
    ///
    /// The host may still be at work: it keeps its slot until its worker answers, or until `os-upgrade lock release`. A host without a
    /// worker, or one that `reboot-command` reboots, keeps it until `os-upgrade lock release`. A node stays cordoned until
    /// `os-upgrade hosts uncordon`.
    #[command(after_help = examples!["reboot-queue give-up 7 --reason 'power supply failed'"])]
    GiveUp(GiveUp),
    /// Let every entry that has backed off, because its drain was given up, start again at once
    #[command(after_help = examples!["reboot-queue reset-backoff"])]
    ResetBackoff(Remote),
    /// Let entries start
    #[command(after_help = examples!["reboot-queue enable"])]
    Enable(Why),
    /// Start no further entry; what is under way is finished
    #[command(after_help = examples!["reboot-queue disable --reason 'a freeze until Monday'"])]
    Disable(Why),
    /// Print whether entries may start, `true` or `false`; both exit with 0
    #[command(after_help = examples!["reboot-queue is-enabled"])]
    IsEnabled(Remote),
    /// Show what operators did about the queue, and what became of its entries, newest first
    #[command(after_help = examples!["reboot-queue history", "reboot-queue history --limit 10"])]
    History(PageOptions),
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The index of the entry
    index: EntryIndex,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    nodes: nodes::Selection,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The index of the entry
    index: EntryIndex,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct GiveUp {
    /// The index of the entry
    index: EntryIndex,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(options) => list::run(options).await,
        Command::Show(Show { index, remote }) => {
            let entry = remote.client()?.call(routes::READ.named([&index.to_string()])).await?;
            remote.output.show::<Entry>(&entry)
        }
        Command::Add(options) => add(options).await,
        Command::Cancel(options) => cancel(options).await,
        Command::CancelAll(options) => cancel_all(options).await,
        Command::GiveUp(options) => give_up(options).await,
        Command::ResetBackoff(remote) => {
            remote.client()?.call(&routes::RESET_BACKOFF).await?;
            remote.output.note("reset: no entry has backed off any more");
            Ok(())
        }
        Command::Enable(options) => switch(options, &routes::ENABLE, "enabled: entries start").await,
        Command::Disable(options) => {
            let done = "disabled: no further entry starts, and what is under way is finished";
            switch(options, &routes::DISABLE, done).await
        }
        Command::IsEnabled(remote) => {
            let answer = remote.client()?.call(&routes::IS_ENABLED).await?;
            remote.output.show::<IsEnabled>(&answer)
        }
        Command::History(options) => histories::show::<QueueChange>(options, routes::HISTORY.call()).await,
    }
}

async fn switch(options: Why, route: &Route<WhyAsked>, done: &str) -> Result<(), Failure> {
    let Why { reason, remote } = options;
    remote.client()?.call_with_body(route, &WhyAsked { reason }).await?;
    remote.output.note(done);
    Ok(())
}

async fn add(Add { nodes, reason, remote }: Add) -> Result<(), Failure> {
    let output = remote.output;
    let hosts = match nodes.given()? {
        Some(hosts) => hosts,
        None => required::hosts(&remote.client()?, output).await?,
    };
    if hosts.is_empty() {
        output.aside("no host needs a reboot that is not queued");
        return added(&Value::Array(Vec::new()), output);
    }
    let body = NodesToReboot { nodes: hosts, reason };
    let entries = remote.client()?.call_with_body(&routes::ADD, &body).await.map_err(|error| {
        if nodes.may_be_file() { nodes::neither_host_nor_file(error, &body.nodes) } else { error }
    })?;
    added(&entries, output)
}

/// Says which entries there are for what was added.
fn added(entries: &Value, output: Output) -> Result<(), Failure> {
    if !output.is_for_people() {
        return output.show::<Vec<Entry>>(entries);
    }
    // It is done, whatever the answer looks like.
    let entries = Vec::<Entry>::deserialize(entries).unwrap_or_default();
    for entry in &entries {
        output.note(&format!("queued: {}, as entry {}", sanitized(&entry.node), entry.index));
    }
    if let Some(Entry { why: Some(why), of_queue: true, .. }) = entries.first() {
        output.note(&format!("nothing starts now: {}", output.canvas().zone.times_in(&sanitized(&why.text))));
    }
    Ok(())
}

async fn cancel(Cancel { index, reason, remote }: Cancel) -> Result<(), Failure> {
    let client = remote.client()?;
    client.call_with_body(&routes::CANCEL, &EntryToCancel { index, reason }).await?;
    remote.output.done("cancelled", &[&index.to_string()])?;
    // Only for a note.
    let entries = match client.read::<Entry>(routes::READ.named([&index.to_string()])).await {
        Ok(entry) => vec![entry],
        Err(_) => Vec::new(),
    };
    note_rebooting(&entries, remote.output);
    Ok(())
}

async fn cancel_all(Why { reason, remote }: Why) -> Result<(), Failure> {
    let client = remote.client()?;
    let before: Vec<String> =
        client.read(routes::LIST.call().with("keys", "true")).await.map_err(Failure::unchanged)?;
    client.call_with_body(&routes::CANCEL_ALL, &WhyAsked { reason }).await?;
    if before.is_empty() {
        remote.output.aside(Entry::NONE);
    }
    remote.output.done("cancelled", &before.iter().map(String::as_str).collect::<Vec<_>>())?;
    note_rebooting(&entries(&client).await, remote.output);
    Ok(())
}

/// The entries; none also if they cannot be read: they are only for a note.
async fn entries(client: &Client) -> Vec<Entry<'static>> {
    client.read(&routes::LIST).await.unwrap_or_default()
}

/// Says which entries stay although they were cancelled.
fn note_rebooting(entries: &[Entry<'_>], output: Output) {
    let still: Vec<&str> =
        entries.iter().filter(|entry| entry.cancel_requested).map(|entry| entry.node.as_ref()).collect();
    if let Some(hosts) = first_of(&still, 0) {
        let hosts = sanitized(&hosts);
        output.note(&format!(
            "told to reboot already: {hosts}. The entry stays until the host is back; `os-upgrade reboot-queue give-up \
             INDEX --reason TEXT` does not wait for that"
        ));
    }
}

async fn give_up(GiveUp { index, reason, remote }: GiveUp) -> Result<(), Failure> {
    let client = remote.client()?;
    // Only for a note.
    let before: Option<Entry<'_>> = client.read(routes::READ.named([&index.to_string()])).await.ok();
    client.call_with_body(&routes::GIVE_UP, &EntryToGiveUp { index, reason }).await?;
    remote.output.done("given up", &[&index.to_string()])?;
    if let Some(entry) = before {
        release::note_kept(&client, &entry.node, remote.output).await;
    }
    Ok(())
}
