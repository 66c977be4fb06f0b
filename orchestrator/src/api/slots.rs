//! `/v1/state/fleet-lock`: who holds a slot, since when and why, who waits for one, and what operators can do about it.
//! An extension of the specification.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::semaphore::{Hold, Holder, Semaphore};
use os_upgrade_kernel::{ClientId, LockProvider, Request, Slot, SlotOperation, Standing, State as Site};
use os_upgrade_protocol::{GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::audit::Done;
use super::error::Problem;
use super::extract::{Actor, Body, Names, Nothing, Params, checked_reason};
use super::listing::{self, paged};
use super::openapi::types::{self, BehalfWord, LockProviderWord, ReclaimWord, WaiterWord};
use super::openapi::{lists, tag};
use super::reply::Stamp;
use super::runs::FactItem;
use crate::store::{Audit, FactCursor};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(read))
        .routes(routes!(history))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(reclaim))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Slots)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SlotsState<'a> {
    /// Who grants slots to hosts of runs: `embedded`, the semaphores here, or an `external` lock server.
    #[schema(value_type = LockProviderWord)]
    provider: LockProvider,
    /// Whose slots a `DELETE` takes back: nobody's, `never`, or theirs who have left the `inventory`.
    #[schema(value_type = ReclaimWord)]
    reclaim: &'static str,
    groups: Vec<GroupState<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SlotGroup)]
#[serde(rename_all = "kebab-case")]
pub(super) struct GroupState<'a> {
    #[schema(value_type = String)]
    pub(super) group: &'a GroupName,
    /// Absent where another lock server counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) slots: Option<u32>,
    held: usize,
    /// How many more are held than there are slots, since those became fewer.
    pub(super) excess: usize,
    pub(super) holders: Vec<HolderState<'a>>,
    pub(super) waiters: Vec<WaiterState<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SlotHolder)]
#[serde(rename_all = "kebab-case")]
pub(super) struct HolderState<'a> {
    id: &'a str,
    since: Stamp,
    #[schema(value_type = Vec<BehalfWord>)]
    on_behalf_of: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    run: Option<&'a RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<HoldState<'a>>,
    reason: String,
    /// Whether it has been held for longer than `[fleet-lock] stuck-after`.
    pub(super) stuck: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Hold)]
struct HoldState<'a> {
    actor: &'a str,
    reason: &'a str,
    since: Stamp,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SlotWaiter)]
#[serde(rename_all = "kebab-case")]
pub(super) struct WaiterState<'a> {
    id: &'a str,
    /// `host` for one of a run, `client` for one from outside.
    #[schema(value_type = WaiterWord)]
    kind: &'static str,
    since: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_asked: Option<Stamp>,
}

/// 200, by any instance.
#[utoipa::path(
    get, path = "/v1/state/fleet-lock", operation_id = "read-slots", tag = tag::SLOTS,
    summary = "Read who holds a slot, and who waits for one",
    responses(
        (status = 200, description = "slots by group", body = SlotsState),
    )
)]
async fn read(State(api): State<Api>, Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    let present = api.present()?;
    let now = Utc::now();
    let entries = entries(&present.state);
    api.render(entries, move || serde_json::to_vec(&slots(&present.state, now))).await
}

/// About how many holders and waiters there are, without writing about any.
fn entries(site: &Site) -> usize {
    let of_semaphore = |(_, semaphore): (_, &Semaphore)| semaphore.holders.len() + semaphore.waiters.len();
    let hosts = site.run.as_ref().map_or(0, |run| run.waiting().len());
    site.semaphores.iter().map(of_semaphore).sum::<usize>() + site.slots.len() + hosts
}

pub(super) fn slots(site: &Site, now: DateTime<Utc>) -> SlotsState<'_> {
    SlotsState {
        provider: site.settings.provider,
        reclaim: site.settings.reclaim.as_str(),
        groups: groups(site, now).collect(),
    }
}

paged!(
    HistoryParameters by FactCursor, described by FactKeyText, read by "listing::cursor";
    /// Also the slots that `FleetLock` clients were granted and gave back, and who asked.
    clients
);

/// 200 with what operators, and with `clients` `FleetLock` clients, did about slots, newest first.
#[utoipa::path(
    get, path = "/v1/state/fleet-lock/history", operation_id = "list-slot-orders", tag = tag::SLOTS,
    summary = "List what operators, or also FleetLock clients, did about slots, newest first",
    params(HistoryParameters),
    responses(
        (status = 200, description = "a page of it", body = lists::OrderList),
    )
)]
async fn history(
    State(api): State<Api>,
    Params(params): Params<HistoryParameters>,
) -> Result<Response, Problem> {
    let audit = if params.clients.is_some() { Audit::SlotsOfAll } else { Audit::Slots };
    Done::read(&api, audit, params.asked()).await?.answer(|fact| Ok(FactItem::of(fact)))
}

/// Every group with a semaphore here, or with a slot that another lock server has given to a host.
pub(super) fn groups(site: &Site, now: DateTime<Utc>) -> impl Iterator<Item = GroupState<'_>> {
    let mut groups: BTreeMap<&GroupName, GroupState<'_>> = BTreeMap::new();
    let counts_here = |semaphore: &Semaphore| {
        site.settings.provider == LockProvider::Embedded || !semaphore.holders.is_empty()
    };
    for (group, semaphore) in site.semaphores.iter().filter(|(_, semaphore)| counts_here(semaphore)) {
        groups.insert(group, of_semaphore(site, group, semaphore, now));
    }
    for (host, slot) in site.slots.iter().filter(|(_, slot)| slot.provider == LockProvider::External) {
        let entry = groups.entry(&slot.group).or_insert_with(|| GroupState {
            group: &slot.group,
            slots: None,
            held: 0,
            excess: 0,
            holders: Vec::new(),
            waiters: Vec::new(),
        });
        entry.held += 1;
        entry.holders.push(of_slot(site, host, slot, now));
    }
    groups.into_values()
}

fn of_semaphore<'a>(
    site: &'a Site,
    group: &'a GroupName,
    semaphore: &'a Semaphore,
    now: DateTime<Utc>,
) -> GroupState<'a> {
    let holders = semaphore.holders.iter().map(|(id, holder)| of_holder(site, id, holder, now)).collect();
    let clients = semaphore.waiters.remembered(now).map(|(id, waiter)| WaiterState {
        id: id.as_str(),
        kind: "client",
        since: Stamp(waiter.since),
        last_asked: Some(Stamp(waiter.asked)),
    });
    let hosts = site.run.iter().flat_map(|run| {
        let waiting = run.waiting().iter().filter_map(|name| Some((name, run.host(name)?)));
        waiting.filter(|(_, host)| host.group == *group).map(|(name, host)| WaiterState {
            id: name.as_str(),
            kind: "host",
            since: Stamp(host.since),
            last_asked: None,
        })
    });
    let mut waiters: Vec<_> = clients.chain(hosts).collect();
    waiters.sort_by_key(|waiter| waiter.since.0);
    GroupState {
        group,
        slots: Some(semaphore.slots),
        held: semaphore.holders.len(),
        excess: semaphore.excess(),
        holders,
        waiters,
    }
}

fn of_holder<'a>(site: &'a Site, id: &'a str, holder: &'a Holder, now: DateTime<Utc>) -> HolderState<'a> {
    let Holder { since, run, client, hold } = holder;
    let held = |Hold { actor, reason, .. }: &Hold| format!("held by {actor}: {reason}");
    let reasons = [
        run.as_ref().map(|run| of_run(site, id, run)),
        client.then(|| "taken by a FleetLock client".to_owned()),
        hold.as_ref().map(held),
    ];
    let behalf = [run.as_ref().map(|_| "run"), client.then_some("client"), hold.as_ref().map(|_| "operator")];
    HolderState {
        id,
        since: Stamp(*since),
        on_behalf_of: behalf.into_iter().flatten().collect(),
        run: run.as_ref(),
        hold: hold.as_ref().map(|Hold { actor, reason, since }| HoldState {
            actor,
            reason,
            since: Stamp(*since),
        }),
        reason: reasons.into_iter().flatten().collect::<Vec<_>>().join("; "),
        stuck: site.settings.is_stuck(*since, now),
    }
}

fn of_slot<'a>(site: &'a Site, host: &'a HostName, slot: &'a Slot, now: DateTime<Utc>) -> HolderState<'a> {
    let since = slot.held_since.unwrap_or(slot.since);
    let reason = match slot.standing {
        Standing::Requested => format!("being asked for in run {}", slot.run),
        Standing::Held => of_run(site, host.as_str(), &slot.run),
        Standing::Releasing { why } => format!("being given back: {}", why.as_str()),
    };
    HolderState {
        id: host.as_str(),
        since: Stamp(since),
        on_behalf_of: vec!["run"],
        run: Some(&slot.run),
        hold: None,
        reason,
        stuck: site.settings.is_stuck(since, now),
    }
}

/// What a host is at, or how it ended, in the run that took its slot.
fn of_run(site: &Site, id: &str, run: &RunId) -> String {
    let runs = site.run.iter().chain(&site.last_run);
    let host = HostName::new(id).ok();
    let in_run = host.and_then(|host| runs.filter(|known| known.id == *run).find_map(|run| run.host(&host)));
    match in_run {
        Some(in_run) => {
            let why = in_run.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("{} in run {run}{why}", in_run.status)
        }
        None => format!("taken in run {run}"),
    }
}

/// Whose slot it is about, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AboutSlot)]
#[serde(deny_unknown_fields)]
struct About {
    #[schema(value_type = types::GroupText)]
    group: GroupName,
    #[schema(value_type = types::ClientText)]
    id: ClientId,
    /// Why, for the audit.
    #[schema(value_type = types::AuditReasonText)]
    reason: String,
}

impl About {
    /// Has what `operation` makes of it carried out.
    async fn order(
        self,
        api: &Api,
        actor: String,
        operation: impl FnOnce(GroupName, ClientId, String) -> SlotOperation,
    ) -> Result<StatusCode, Problem> {
        let Self { group, id, reason } = self;
        api.order(Request::new(actor, operation(group, id, checked_reason(&reason)?))).await
    }
}

/// 204 once the slot is held for `id` until it is released; 409 when none is free.
#[utoipa::path(
    post, path = "/v1/state/fleet-lock/hold", operation_id = "hold-slot", tag = tag::SLOTS,
    summary = "Hold a slot until it is released",
    request_body = About,
    responses(
        (status = 204, description = "it is held"),
        (status = 404, description = "there is no such group"),
        (status = 409, description = "none is free, or it is held already"),
    )
)]
async fn hold(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(Nothing {}): Params<Nothing>,
    Body(about): Body<About>,
) -> Result<StatusCode, Problem> {
    about.order(&api, actor, |group, id, reason| SlotOperation::Hold { group, id, reason }).await
}

/// 204 once the slot is free, or on its way back to its lock server; 409 while its host is at work.
#[utoipa::path(
    post, path = "/v1/state/fleet-lock/release", operation_id = "release-slot", tag = tag::SLOTS,
    summary = "Release a slot, whoever holds it",
    request_body = About,
    responses(
        (status = 204, description = "it is free, or on its way back to its lock server"),
        (status = 404, description = "nobody of this name holds one or waits for one"),
        (status = 409, description = "its host is at work"),
    )
)]
async fn release(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(Nothing {}): Params<Nothing>,
    Body(about): Body<About>,
) -> Result<StatusCode, Problem> {
    about.order(&api, actor, |group, id, reason| SlotOperation::Release { group, id, reason }).await
}

/// As a release, of one that has left the inventory; 409 unless `reclaim` is `inventory`.
#[utoipa::path(
    delete, path = "/v1/state/fleet-lock/{group}/{id}", operation_id = "reclaim-slot", tag = tag::SLOTS,
    summary = "Take back the slot of one that has left the inventory",
    params(("group" = types::GroupText, Path, description = "the group", example = "default"), ("id" = types::ClientText, Path, description = "who holds the slot", example = "h01")),
    responses(
        (status = 204, description = "it is free, or on its way back to its lock server"),
        (status = 404, description = "nobody of this name holds one or waits for one"),
        (status = 409, description = "it has not left the inventory, its host is at work, or `reclaim` is not `inventory`"),
    )
)]
async fn reclaim(
    State(api): State<Api>,
    Actor(actor): Actor,
    Names([group, id]): Names<2>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<StatusCode, Problem> {
    let group = GroupName::new(&group).map_err(|error| Problem::bad_request(format!("group: {error}")))?;
    let id = ClientId::new(&id).map_err(|error| Problem::bad_request(format!("id: {error}")))?;
    api.order(Request::new(actor, SlotOperation::Reclaim { group, id })).await
}
