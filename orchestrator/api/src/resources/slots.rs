//! `/v1/state/fleet-lock`: the holders of slots, with since when and why, the waiters, and operators' actions on
//! slots. An extension of the specification.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::reboot_queue::EntryIndex;
use os_upgrade_api_types::routes::slots::{
    AboutSlot, HISTORY, HOLD, HistoryParameters, Hold, READ, RECLAIM, RELEASE, SlotGroup, SlotHolder,
    SlotWaiter, Slots,
};
use os_upgrade_api_types::word::{Behalf, Word};
use os_upgrade_console::{describe, purpose};
use os_upgrade_kernel::slot::{Hold as Placed, Holder, Semaphore};
use os_upgrade_kernel::{
    ClientId, LockProvider, Owner, Request, Slot, SlotOperation, SlotState, State as Site,
};
use os_upgrade_protocol::{GroupName, HostName, RunId, time};
use os_upgrade_store::Audit;

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Names, Params, checked_reason};
use crate::resources::audit::AuditResult;
use crate::resources::runs::fact;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&READ, read)
        .route(&HISTORY, history)
        .route(&HOLD, hold)
        .route(&RELEASE, release)
        .route(&RECLAIM, reclaim)
}

async fn read(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let now = Utc::now();
    let entries = entries(&published.state);
    api.render(entries, move || serde_json::to_vec(&slots(&published.state, now))).await
}

/// An estimate of the number of holders and waiters.
fn entries(site: &Site) -> usize {
    let of_semaphore = |(_, semaphore): (_, &Semaphore)| semaphore.holders.len() + semaphore.waiters.len();
    let hosts = site.run.as_ref().map_or(0, |run| run.waiting().len());
    site.semaphores.iter().map(of_semaphore).sum::<usize>() + site.slots.len() + hosts
}

pub(crate) fn slots(site: &Site, now: DateTime<Utc>) -> Slots<'_> {
    Slots {
        provider: site.settings.provider.into(),
        reclaim: site.settings.reclaim.as_str().into(),
        groups: groups(site, now).collect(),
    }
}

async fn history(
    State(api): State<Api>,
    Params(params): Params<HistoryParameters>,
) -> Result<Response, Problem> {
    let audit = if params.clients.is_some() { Audit::AllSlots } else { Audit::Slots };
    AuditResult::read(&api, audit, params.into_query()).await?.answer(|row| Ok(fact(row)))
}

/// Every group with a semaphore here, or with a slot of another lock server that a host holds.
pub(crate) fn groups(site: &Site, now: DateTime<Utc>) -> impl Iterator<Item = SlotGroup<'_>> {
    let mut groups: BTreeMap<&GroupName, SlotGroup<'_>> = BTreeMap::new();
    let counts_here = |semaphore: &Semaphore| {
        site.settings.provider == LockProvider::Embedded || !semaphore.holders.is_empty()
    };
    for (group, semaphore) in site.semaphores.iter().filter(|(_, semaphore)| counts_here(semaphore)) {
        groups.insert(group, of_semaphore(site, group, semaphore, now));
    }
    for (host, slot) in site.slots.iter().filter(|(_, slot)| slot.provider == LockProvider::External) {
        let entry = groups.entry(&slot.group).or_insert_with(|| SlotGroup {
            group: slot.group.as_str().into(),
            slots: None,
            failed: None,
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
) -> SlotGroup<'a> {
    let holders = semaphore.holders.iter().map(|(id, holder)| of_holder(site, id, holder, now)).collect();
    let clients = semaphore.waiters.remembered(now).map(|(id, waiter)| SlotWaiter {
        id: id.as_str().into(),
        kind: "client".into(),
        since: Stamp(waiter.since),
        last_asked: Some(Stamp(waiter.asked)),
    });
    let hosts = site.run.iter().flat_map(|run| {
        let waiting = run.waiting().iter().filter_map(|name| Some((name, run.host(name)?)));
        waiting.filter(|(_, host)| host.group == *group).map(|(name, host)| SlotWaiter {
            id: name.as_str().into(),
            kind: "host".into(),
            since: Stamp(host.since),
            last_asked: None,
        })
    });
    let mut waiters: Vec<_> = clients.chain(hosts).collect();
    waiters.sort_by_key(|waiter| waiter.since.0);
    let failed = site.settings.failed.get(group).copied();
    let of_failed = site.slots.values().filter(|slot| slot.failed && slot.group == *group).count();
    SlotGroup {
        group: group.as_str().into(),
        slots: Some(semaphore.slots),
        failed,
        held: semaphore.holders.len(),
        excess: semaphore.excess().saturating_sub(of_failed.min(failed.unwrap_or(0) as usize)),
        holders,
        waiters,
    }
}

fn of_holder<'a>(site: &'a Site, id: &'a str, holder: &'a Holder, now: DateTime<Utc>) -> SlotHolder<'a> {
    let Holder { since, owner: owned_by, client, hold } = holder;
    let held = |Placed { actor, reason, .. }: &Placed| format!("held by {actor}: {reason}");
    let reasons = [
        owned_by.as_ref().map(|owner| of_owner(site, id, owner)),
        client.then(|| "taken by a FleetLock client".to_owned()),
        hold.as_ref().map(held),
    ];
    let owner = owned_by.as_ref().map(owner);
    let operator = hold.as_ref().map(|_| Behalf::Operator);
    let behalf = [owner.map(|(behalf, ..)| behalf), client.then_some(Behalf::Client), operator];
    SlotHolder {
        id: id.into(),
        since: Stamp(*since),
        on_behalf_of: behalf.into_iter().flatten().map(Word::from).collect(),
        run: owner.and_then(|(_, run, _)| run).map(|run| run.as_str().into()),
        entry: owner.and_then(|(.., entry)| entry),
        hold: hold.as_ref().map(|Placed { actor, reason, since }| Hold {
            actor: actor.into(),
            reason: reason.into(),
            since: Stamp(*since),
        }),
        reason: reasons.into_iter().flatten().collect::<Vec<_>>().join("; "),
        why: None,
        stuck: site.settings.is_stuck(*since, now),
        kept: HostName::new(id).is_ok_and(|host| site.keeps_slot(&host)),
    }
}

fn of_slot<'a>(site: &'a Site, host: &'a HostName, slot: &'a Slot, now: DateTime<Utc>) -> SlotHolder<'a> {
    let since = slot.held_since.unwrap_or(slot.since);
    let (behalf, run, entry) = owner(&slot.owner);
    let refused = || slot.refusal.as_ref().map(|refusal| format!("; {}", describe(refusal)));
    let (reason, not_released) = match slot.state {
        SlotState::Requested => {
            (format!("being requested {}{}", purpose(&slot.owner), refused().unwrap_or_default()), None)
        }
        SlotState::Held => (of_owner(site, host.as_str(), &slot.owner), None),
        SlotState::Releasing { why } => {
            let again = || slot.unlock_again_at().map(|at| format!("; once more at {}", time::format(at)));
            let so_far = refused().or_else(again).unwrap_or_default();
            (format!("being released: {}{so_far}", why.as_str()), slot.refusal.clone())
        }
    };
    SlotHolder {
        id: host.as_str().into(),
        since: Stamp(since),
        on_behalf_of: vec![behalf.into()],
        run: run.map(|run| run.as_str().into()),
        entry,
        hold: None,
        reason,
        why: not_released.map(bodies::why),
        stuck: site.settings.is_stuck(since, now),
        kept: site.keeps_slot(host),
    }
}

/// For what a slot is held, on whose behalf, and its run or entry.
fn owner(owner: &Owner) -> (Behalf, Option<&RunId>, Option<EntryIndex>) {
    match owner {
        Owner::Entry { index, .. } => (Behalf::RebootQueue, None, Some(EntryIndex(*index))),
        Owner::Run(run) => (Behalf::Run, Some(run), None),
    }
}

/// The status of a host in the run that took its slot, or that of the entry.
fn of_owner(site: &Site, id: &str, owner: &Owner) -> String {
    let Some(run) = owner.run() else {
        let entry = site.reboot_queue.of_owner(owner).map(|(_, entry)| entry);
        let status = entry.map_or("taken", |entry| entry.status.as_str());
        let why = entry.and_then(|entry| entry.reason.as_ref());
        let why = why.map(|reason| format!(" ({})", describe(reason))).unwrap_or_default();
        return format!("{status} {}{why}", purpose(owner));
    };
    let host = HostName::new(id).ok();
    let in_run = host
        .and_then(|host| site.known_runs().filter(|known| known.id == *run).find_map(|run| run.host(&host)));
    match in_run {
        Some(in_run) => {
            let why =
                in_run.reason.as_ref().map(|reason| format!(" ({})", describe(reason))).unwrap_or_default();
            let late = in_run.late_answer.map(|late| format!("; {}", describe(&late)));
            format!("{} in run {run}{why}{}", in_run.status, late.unwrap_or_default())
        }
        None => format!("taken {}", purpose(owner)),
    }
}

/// Requests the `operation` on the slot that `about` names.
async fn request_operation(
    api: &Api,
    actor: String,
    about: AboutSlot,
    operation: impl FnOnce(GroupName, ClientId, String) -> SlotOperation,
) -> Result<StatusCode, Problem> {
    let AboutSlot { group, id, reason } = about;
    api.change_and_log(Request::new(actor, operation(group, id, checked_reason(&reason)?))).await
}

async fn hold(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(NoParameters {}): Params<NoParameters>,
    Body(about): Body<AboutSlot>,
) -> Result<StatusCode, Problem> {
    request_operation(&api, actor, about, |group, id, reason| SlotOperation::Hold { group, id, reason }).await
}

async fn release(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(NoParameters {}): Params<NoParameters>,
    Body(about): Body<AboutSlot>,
) -> Result<StatusCode, Problem> {
    request_operation(&api, actor, about, |group, id, reason| SlotOperation::Release { group, id, reason })
        .await
}

async fn reclaim(
    State(api): State<Api>,
    Actor(actor): Actor,
    Names([group, id]): Names<2>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<StatusCode, Problem> {
    let group = GroupName::new(&group).map_err(|error| Problem::bad_request(format!("group: {error}")))?;
    let id = ClientId::new(&id).map_err(|error| Problem::bad_request(format!("id: {error}")))?;
    api.change_and_log(Request::new(actor, SlotOperation::Reclaim { group, id })).await
}
