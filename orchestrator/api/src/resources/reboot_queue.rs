//! `/v1/state/reboot-queue`: the entries, why each is not progressing, and operators' control of them. An extension of the
//! specification.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{Count, Counts, Entry as ListEntry, Page, Stamp};
use os_upgrade_api_types::query::{FactList, ListMode, NoParameters, Validate, page_of};
use os_upgrade_api_types::routes::reboot_queue::{
    ADD, CANCEL, CANCEL_ALL, DISABLE, ENABLE, Entry as Shown, EntryIndex, EntryToCancel, EntryToGiveUp,
    GIVE_UP, HISTORY, IS_ENABLED, IsEnabled, LIST, ListParameters, NodesToReboot, READ, RESET_BACKOFF,
    WhyAsked,
};
use os_upgrade_api_types::routes::state::QueueInBrief;
use os_upgrade_kernel::reboot_queue::{Entry, EntryStatus, QueueBlocker};
use os_upgrade_kernel::{EntryBlocker, RebootOperation, Request, explain_entry, needs_operator, next_reboot};
use os_upgrade_protocol::HostName;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_store::{Audit, FactRow};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Name, OptionalBody, Params, SeesOutput, checked_reason};
use crate::http::reply;
use crate::resources::audit::AuditResult;
use crate::resources::hosts::progress;
use crate::resources::runs::fact;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&LIST, list)
        .route(&READ, read)
        .route(&ADD, add)
        .route(&CANCEL, cancel)
        .route(&CANCEL_ALL, cancel_all)
        .route(&GIVE_UP, give_up)
        .route(&RESET_BACKOFF, reset_backoff)
        .route(&ENABLE, enable)
        .route(&DISABLE, disable)
        .route(&IS_ENABLED, is_enabled)
        .route(&HISTORY, history)
}

/// The queue at a moment, to show its entries.
struct Queue<'a> {
    published: &'a PublishedState,
    next: Result<u64, QueueBlocker>,
    now: DateTime<Utc>,
    sees_output: SeesOutput,
}

impl<'a> Queue<'a> {
    fn of(published: &'a PublishedState, now: DateTime<Utc>, sees_output: SeesOutput) -> Self {
        Self { published, next: next_reboot(&published.state, &published.view, now), now, sees_output }
    }

    fn show(&'a self, (index, entry): (&u64, &'a Entry)) -> InQueue<'a> {
        InQueue { queue: self, index: *index, entry }
    }
}

/// One entry of the list, assembled when it is serialized.
struct InQueue<'a> {
    queue: &'a Queue<'a>,
    index: u64,
    entry: &'a Entry,
}

impl Serialize for InQueue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            queue: Queue { published, next, now, sees_output: SeesOutput(sees_output) },
            index,
            entry,
        } = self;
        let blocker = explain_entry(&published.state, &published.view, next, (*index, entry), *now);
        let asked = published.state.reboot_queue.asked(*index);
        let shown = Shown {
            index: EntryIndex(*index),
            node: entry.host.as_str().into(),
            status: entry.status.into(),
            last_transition_time: Stamp(entry.last_transition),
            drain_backoff_count: entry.backoff_count,
            drain_backoff_expire: entry.backoff_expire.map(Stamp),
            added_at: Stamp(entry.added_at),
            added_by: asked.map(|asked| asked.actor.as_str().into()),
            reason: asked.and_then(|asked| asked.reason.as_deref()).map(Cow::from),
            cancel_requested: entry.cancel_requested,
            required: entry.required,
            boot_id: entry.boot_id.as_deref().filter(|_| entry.command.is_some()).map(Cow::from),
            of_queue: blocker.as_ref().is_some_and(is_of_queue),
            why: blocker.map(bodies::why),
            needs_operator: needs_operator(&published.state, &published.view, (*index, entry), *now),
            output: output(entry).filter(|_| *sees_output).map(Cow::from),
            progress: progress(published, &entry.host).filter(|_| entry.status.is_under_way()),
        };
        shown.serialize(serializer)
    }
}

const fn is_of_queue(blocker: &EntryBlocker) -> bool {
    matches!(blocker, EntryBlocker::Queue(by) if by.is_of_queue())
}

/// What the operator's command printed for the entry.
fn output(entry: &Entry) -> Option<&str> {
    entry.reason.as_ref()?.output().filter(|output| !output.is_empty())
}

async fn list(
    State(api): State<Api>,
    sees_output: SeesOutput,
    Params(params): Params<ListParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let entries = published.state.reboot_queue.entries.len();
    api.render(entries, move || {
        let entries = &published.state.reboot_queue.entries;
        let mode = params.mode();
        if mode == ListMode::Count {
            return serde_json::to_vec(&Count { count: entries.len() as u64 });
        }
        let queue = Queue::of(&published, Utc::now(), sees_output);
        let key = |(index, _): &(&u64, _)| EntryIndex(**index);
        let (page, next) = page_of(params.limit, params.after.as_ref(), entries.iter(), key);
        let show = |of| ListEntry::of(mode, || key(&of), || queue.show(of));
        let items: Vec<_> = page.into_iter().map(show).collect();
        if params.is_paged() {
            let next = next.map(|index| index.0.to_string());
            serde_json::to_vec(&Page { items, next })
        } else {
            serde_json::to_vec(&items)
        }
    })
    .await
}

async fn read(
    State(api): State<Api>,
    sees_output: SeesOutput,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let not_found = || Problem::not_found(format!("the reboot queue has no entry {name:?}"));
    let EntryIndex(index) = name.parse().map_err(|_| not_found())?;
    let entry = published.state.reboot_queue.entries.get(&index).ok_or_else(not_found)?;
    reply::json(&Queue::of(&published, Utc::now(), sees_output).show((&index, entry)))
}

async fn is_enabled(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    reply::json(&IsEnabled { enabled: !api.published()?.state.reboot_queue.disabled })
}

async fn history(
    State(api): State<Api>,
    SeesOutput(sees_output): SeesOutput,
    Params(params): Params<FactList>,
) -> Result<Response, Problem> {
    let mut found = AuditResult::read(&api, Audit::Reboots, params.into_query()).await?;
    if !sees_output {
        found.rows().iter_mut().for_each(withhold_output);
    }
    found.answer(|row| Ok(fact(row)))
}

/// Takes what a command printed out of a fact.
fn withhold_output(row: &mut FactRow) {
    let Ok(mut fact) = serde_json::from_str::<Value>(row.fact.get()) else { return };
    let Some(reason) = fact.pointer_mut("/event/reason").and_then(Value::as_object_mut) else { return };
    if reason.remove("output").is_none() {
        return;
    }
    if let Ok(shown) = serde_json::value::to_raw_value(&fact) {
        row.fact = shown;
    }
}

/// Requests `operation`, and waits until it is durable or refused.
async fn change(
    api: &Api,
    actor: String,
    params: &Validate,
    operation: RebootOperation,
) -> Result<StatusCode, Problem> {
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

fn reason_of(reason: Option<&str>) -> Result<Option<String>, Problem> {
    reason.map(checked_reason).transpose()
}

fn reason_in(body: Option<WhyAsked>) -> Result<Option<String>, Problem> {
    reason_of(body.unwrap_or_default().reason.as_deref())
}

async fn add(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(NodesToReboot { nodes, reason }): Body<NodesToReboot>,
) -> Result<Response, Problem> {
    let operation = RebootOperation::Add { hosts: nodes.clone(), reason: reason_of(reason.as_deref())? };
    let status = change(&api, actor, &params, operation).await?;
    if params.is_validation() {
        return Ok(status.into_response());
    }
    let published = api.published()?;
    let entries = published.state.reboot_queue.entries.len();
    let shown = api.render(entries, move || {
        let queue = Queue::of(&published, Utc::now(), SeesOutput(true));
        let entries = added(&published, &nodes).into_iter();
        serde_json::to_vec(&entries.map(|entry| queue.show(entry)).collect::<Vec<_>>())
    });
    let mut response = shown.await?;
    *response.status_mut() = status;
    Ok(response)
}

/// The newest entry of each of `nodes`, by index. A host that is queued is refused, so this is the one that was just added,
/// unless that one is over already.
fn added<'a>(published: &'a PublishedState, nodes: &[HostName]) -> Vec<(&'a u64, &'a Entry)> {
    let mut sought: BTreeSet<&HostName> = nodes.iter().collect();
    let newest = published.state.reboot_queue.entries.iter().rev();
    let mut found: Vec<_> = newest.filter(|(_, entry)| sought.remove(&entry.host)).collect();
    found.reverse();
    found
}

async fn cancel(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(EntryToCancel { index, reason }): Body<EntryToCancel>,
) -> Result<StatusCode, Problem> {
    let operation = RebootOperation::Cancel { index: index.0, reason: reason_of(reason.as_deref())? };
    change(&api, actor, &params, operation).await
}

async fn cancel_all(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<WhyAsked>,
) -> Result<StatusCode, Problem> {
    change(&api, actor, &params, RebootOperation::CancelAll { reason: reason_in(body)? }).await
}

async fn give_up(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(EntryToGiveUp { index, reason }): Body<EntryToGiveUp>,
) -> Result<StatusCode, Problem> {
    let operation = RebootOperation::GiveUp { index: index.0, reason: checked_reason(&reason)? };
    change(&api, actor, &params, operation).await
}

async fn reset_backoff(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
) -> Result<StatusCode, Problem> {
    change(&api, actor, &params, RebootOperation::ResetBackoff).await
}

async fn enable(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<WhyAsked>,
) -> Result<StatusCode, Problem> {
    change(&api, actor, &params, RebootOperation::Enable { reason: reason_in(body)? }).await
}

async fn disable(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<WhyAsked>,
) -> Result<StatusCode, Problem> {
    change(&api, actor, &params, RebootOperation::Disable { reason: reason_in(body)? }).await
}

/// How many entries have each status; every status is there.
pub(crate) fn by_status(published: &PublishedState) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> =
        EntryStatus::ALL.map(|status| (status.as_str(), 0)).into();
    for entry in published.state.reboot_queue.entries.values() {
        *counts.entry(entry.status.as_str()).or_default() += 1;
    }
    counts
}

/// The queue in the state of the site; `None` while it is enabled and empty.
pub(crate) fn in_brief(published: &PublishedState, now: DateTime<Utc>) -> Option<QueueInBrief> {
    let queue = &published.state.reboot_queue;
    if !queue.disabled && queue.entries.is_empty() {
        return None;
    }
    let blocker = next_reboot(&published.state, &published.view, now).err();
    // That nothing more is queued is no obstacle.
    let blocker = blocker.filter(|by| *by != QueueBlocker::NothingQueued);
    let counts = by_status(published).into_iter().filter(|(_, count)| *count > 0);
    Some(QueueInBrief {
        enabled: !queue.disabled,
        counts: Counts(counts.map(|(status, count)| (status.to_owned(), count as u64)).collect()),
        why: blocker.map(bodies::why),
    })
}
