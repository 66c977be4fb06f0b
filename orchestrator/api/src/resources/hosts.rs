//! `/v1/state/os-upgrade/hosts`: every known host, the versions it runs, and why it is not moving.
//!
//! The answer is a JSON list by hostname, or a page of it with `limit` or `after`. `/hosts/{hostname}` is one entry,
//! which a worker may read at its start to compare versions. A host is known once a worker has announced it or
//! published its versions, or an operator has approved or withdrawn it; and without a worker, while it is a node of the Kubernetes
//! cluster, holds a slot, or is in the reboot queue.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::extract;
use axum::response::Response;
use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_api_types::body::{Count, Entry as ListEntry, Page, Progress, Stamp};
use os_upgrade_api_types::query::{ListMode, NoParameters};
use os_upgrade_api_types::routes::hosts::{
    Deferred, Host, HostSlot, InQueue, KeyOfHost, LIST, LastResult, ListParameters, READ,
};
use os_upgrade_api_types::routes::reboot_queue::EntryIndex;
use os_upgrade_api_types::text::ENROLMENTS;
use os_upgrade_api_types::word::{Enrolment, Word};
use os_upgrade_kernel::reboot_queue::Entry as QueueEntry;
use os_upgrade_kernel::{
    Approval, Deferral, Enrolled, Explainer, Forecast, KeyState, LastEnd, NOT_REACHED_RUNS, State, Withdrawal,
};
use os_upgrade_protocol::{ApplicationName, HostName};
use os_upgrade_shell::inventory::HostVersions;
use os_upgrade_site::published_state::PublishedState;
use serde::{Serialize, Serializer};

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Name, Params};
use crate::http::reply;
use crate::routes::Routes;

/// Estimated size of a host with few versions in the list, in bytes.
const BYTES_PER_HOST: usize = 512;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&LIST, list).route(&READ, read)
}

async fn list(
    extract::State(api): extract::State<Api>,
    Params(params): Params<ListParameters>,
) -> Result<Response, Problem> {
    let (only_pending, params) = params.split();
    let published = api.published()?;
    let nodes = published.view.nodes.as_ref().map_or(0, OrdMap::len);
    let hosts = published.view.hosts.len().max(published.versions.len()).max(nodes);
    let mode = params.mode();
    api.render(hosts, move || {
        let mut known = all(&published);
        if only_pending {
            known.retain(|host| is_pending(&published, host));
        }
        if mode == ListMode::Count {
            return serde_json::to_vec(&Count { count: known.len() as u64 });
        }
        let (names, next) = params.page(known.into_iter(), ToString::to_string);
        let now = Utc::now();
        let forecast = &published.forecast(now);
        let reboots = &first_reboots(&published);
        let explainer = &Explainer::new(&published.state, &published.view, now);
        let whole = |name| Entry { published: &published, explainer, forecast, reboots, name };
        let mut bytes = Vec::with_capacity(names.len() * BYTES_PER_HOST);
        let items: Vec<_> =
            names.into_iter().map(|name| ListEntry::of(mode, || name, || whole(name))).collect();
        if params.is_paged() {
            serde_json::to_writer(&mut bytes, &Page { items, next })?;
        } else {
            serde_json::to_writer(&mut bytes, &items)?;
        }
        Ok(bytes)
    })
    .await
}

/// Whether `host` is announced and waits for approval.
fn is_pending(published: &PublishedState, host: &HostName) -> bool {
    published.view.hosts.contains_key(host) && published.state.enrolled(host) == Enrolled::Pending
}

/// The number of announced hosts by enrolment.
pub(crate) fn by_enrolment(published: &PublishedState) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = ENROLMENTS.iter().map(|word| (*word, 0)).collect();
    for host in published.view.hosts.keys() {
        *counts.entry(published.state.enrolled(host).as_str()).or_default() += 1;
    }
    counts
}

/// How many hosts wait for approval.
pub(crate) fn pending(published: &PublishedState) -> usize {
    published.view.hosts.keys().filter(|host| is_pending(published, host)).count()
}

/// Every known host, by name, but for those without a worker on which nothing is or was under way.
pub(crate) fn known(published: &PublishedState) -> Vec<&HostName> {
    sorted(concerned(published))
}

/// Every known host, by name.
fn all(published: &PublishedState) -> Vec<&HostName> {
    let PublishedState { state, view, .. } = published;
    let nodes = view.nodes.iter().flat_map(OrdMap::keys).filter(|host| state.settings.has_node(host));
    let queued = state.reboot_queue.entries.values().map(|entry| &entry.host);
    sorted(concerned(published).chain(nodes).chain(queued))
}

fn concerned(published: &PublishedState) -> impl Iterator<Item = &HostName> {
    let PublishedState { state, view, versions, .. } = published;
    let enrolment = &state.enrolment;
    let decided =
        enrolment.approved.keys().chain(enrolment.withdrawn.keys()).chain(enrolment.deferred.keys());
    let held = state.slots.keys().chain(state.nodes.keys());
    view.hosts.keys().chain(versions.keys()).chain(decided).chain(held)
}

fn sorted<'a>(hosts: impl Iterator<Item = &'a HostName>) -> Vec<&'a HostName> {
    let mut hosts: Vec<&HostName> = hosts.collect();
    // A few sorted lists, which a stable sort merges.
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Whether the list has `host`.
pub(crate) fn is_known(published: &PublishedState, host: &HostName) -> bool {
    let PublishedState { state, view, versions, .. } = published;
    let is_node =
        || view.nodes.as_ref().is_some_and(|nodes| nodes.contains_key(host)) && state.settings.has_node(host);
    view.hosts.contains_key(host)
        || versions.contains_key(host)
        || state.enrolment.knows(host)
        || state.enrolment.deferred.contains_key(host)
        || state.slots.contains_key(host)
        || state.nodes.contains_key(host)
        || is_node()
        || state.reboot_queue.entries.values().any(|entry| entry.host == *host)
}

async fn read(
    extract::State(api): extract::State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    match HostName::new(&name).ok().filter(|host| is_known(&published, host)) {
        Some(name) => {
            let now = Utc::now();
            let forecast = &published.forecast(now);
            let reboots = &first_reboots(&published);
            let explainer = &Explainer::new(&published.state, &published.view, now);
            reply::json(&Entry { published: &published, explainer, forecast, reboots, name: &name })
        }
        None => Err(Problem::not_found(format!("there is no host {name:?}"))),
    }
}

/// One entry of the list, assembled when it is serialized.
struct Entry<'a> {
    published: &'a PublishedState,
    explainer: &'a Explainer<'a>,
    forecast: &'a Forecast,
    reboots: &'a FirstReboots<'a>,
    name: &'a HostName,
}

/// The first entry of the reboot queue of each host that has one.
type FirstReboots<'a> = BTreeMap<&'a HostName, InQueue>;

fn first_reboots(published: &PublishedState) -> FirstReboots<'_> {
    let entries = published.state.reboot_queue.entries.iter().rev();
    let shown =
        |index: &u64, entry: &QueueEntry| InQueue { index: EntryIndex(*index), status: entry.status.into() };
    // Of several entries of a host the first one is the last to be collected.
    entries.map(|(index, entry)| (&entry.host, shown(index, entry))).collect()
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { published, explainer, forecast, reboots, name } = *self;
        let explanation = explainer.explain(forecast, name);
        let (why, also) = bodies::whys(explanation.whys);
        let seen = published.view.hosts.get(name);
        let silence = seen.and_then(|seen| seen.silence);
        let node = published.view.nodes.as_ref().and_then(|nodes| nodes.get(name));
        let reported = published.versions.get(name);
        let default_group = &published.state.settings.default_group;
        let enrolled = published.state.enrolled(name);
        let decided = decided(enrolled);
        let body = Host {
            hostname: name.as_str().into(),
            without_worker: seen.is_none(),
            applications: seen.map(|seen| names(&seen.applications)).unwrap_or_default(),
            refused_applications: seen.map(|seen| names(&seen.refused)).unwrap_or_default(),
            labels: seen.map(|seen| labels(&seen.labels)).unwrap_or_default(),
            boot_id: seen.and_then(|seen| seen.boot_id.as_deref()).map(Cow::from),
            reboot_required: seen.and_then(|seen| seen.reboot_required.as_deref()).map(Cow::from),
            reboot_ineffective: seen.and_then(|seen| seen.reboot_ineffective.as_deref()).map(Cow::from),
            reboot_queue: reboots.get(name).cloned(),
            reboots_on_request: seen.is_some_and(|seen| seen.reboots_on_request && seen.boot_id.is_some()),
            group: seen.and_then(|seen| seen.group.as_ref()).unwrap_or(default_group).as_str().into(),
            slot: slot(&published.state, name),
            reachability: seen.map(|seen| seen.reachability).unwrap_or_default().as_str().into(),
            unreachable_since: silence.map(|silence| Stamp(silence.since)),
            last_heard_at: silence.and_then(|silence| silence.heard_at).map(Stamp),
            enrolment: Enrolment::from(enrolled).into(),
            decided_by: decided.map(|(actor, _)| actor.into()),
            decided_at: decided.map(|(_, since)| Stamp(since)),
            deferred: published.state.enrolment.deferred.get(name).map(deferred),
            key: key(published, name),
            configurations: bodies::configuration::of_host(published, name),
            announced_at: seen.and_then(|seen| seen.announced_at).map(Stamp),
            last_upgraded_at: published.state.last_upgrades.of(name).copied().map(Stamp),
            last_result: last_result(&published.state, name),
            versions: reported.map(|HostVersions { versions, .. }| Cow::Borrowed(versions)),
            versions_time: reported.map(|HostVersions { published_at, .. }| Stamp(*published_at)),
            status: explanation.status.map(Word::from),
            since: explanation.since.map(Stamp),
            why,
            also,
            progress: progress(published, name),
            kubernetes_node: node.map(|node| node.name.as_str().into()),
            node: bodies::node(&published.state, name),
        };
        body.serialize(serializer)
    }
}

/// The progress of the worker of `host` with the command under way; `None` if it reports none.
pub(crate) fn progress<'a>(published: &'a PublishedState, host: &HostName) -> Option<Progress<'a>> {
    let progress = published.progress_of(host)?;
    Some(Progress { percent: progress.percent, text: progress.text.as_str().into() })
}

/// The key of `host`.
fn key<'a>(published: &'a PublishedState, host: &HostName) -> Option<KeyOfHost<'a>> {
    let (announced, pinned) = (published.view.announced_key(host), published.state.enrolment.keys.get(host));
    let seen = published.view.hosts.get(host);
    let configures = seen.and_then(|seen| seen.configures.as_ref());
    Some(KeyOfHost {
        status: published.state.enrolment.key_state(host, announced)?.into(),
        approved: pinned.map(|pinned| pinned.key),
        approved_by: pinned.and_then(|pinned| pinned.actor.as_deref()).map(Cow::from),
        approved_at: pinned.map(|pinned| Stamp(pinned.since)),
        announced: announced.copied(),
        application: configures.map(|configures| configures.application.as_str().into()),
        refused_applications: seen.map(|seen| names(&seen.configures_refused)).unwrap_or_default(),
    })
}

/// How many announced hosts have a key in this `state`.
pub(crate) fn with_key(published: &PublishedState, state: KeyState) -> usize {
    let enrolment = &published.state.enrolment;
    let key_state = |host| enrolment.key_state(host, published.view.announced_key(host));
    published.view.hosts.keys().filter(|host| key_state(host) == Some(state)).count()
}

/// That the key of `host`, which takes part, is not the approved one.
pub(crate) fn unapproved_key(published: &PublishedState, host: &HostName) -> Option<KeyState> {
    let announced = published.view.announced_key(host);
    let state = published.state.enrolment.key_state(host, announced)?;
    let counts = state != KeyState::Pinned && published.state.enrolled(host).takes_part();
    counts.then_some(state)
}

/// The slot of a host.
fn slot<'a>(state: &'a State, host: &HostName) -> Option<HostSlot<'a>> {
    let slot = state.slots.get(host)?;
    let kept = state.keeps_slot(host);
    Some(HostSlot {
        group: slot.group.as_str().into(),
        since: Stamp(slot.held_since.unwrap_or(slot.since)),
        run: slot.owner.run().map(|run| run.as_str().into()),
        entry: slot.owner.entry().map(EntryIndex),
        kept,
        awaits_worker: kept && slot.command.is_some(),
    })
}

/// How a host ended in the last run in which it took part and that is over.
fn last_result<'a>(state: &'a State, name: &HostName) -> Option<LastResult<'a>> {
    let LastEnd { run, at: _, status, reason, failed_at: _, not_reached } = state.turns.last_end(name)?;
    let last_run = state.known_runs().find(|known| known.id == *run);
    Some(LastResult {
        run: run.as_str().into(),
        status: (*status).into(),
        why: reason.clone().map(bodies::why),
        late_answer: last_run.and_then(|run| bodies::late_answer(run.host(name)?)),
        not_reached: *not_reached,
    })
}

/// The announced hosts that take part in runs.
fn taking_part(published: &PublishedState) -> impl Iterator<Item = &HostName> {
    published.view.hosts.keys().filter(|host| published.state.enrolled(host).takes_part())
}

/// How many hosts that take part have not been reached in any of the last [`NOT_REACHED_RUNS`] runs.
pub(super) fn not_reached(published: &PublishedState) -> usize {
    let last_end = |host| published.state.turns.last_end(host);
    taking_part(published).filter_map(last_end).filter(|end| end.not_reached >= NOT_REACHED_RUNS).count()
}

/// The host that takes part and was upgraded longest ago, and when that was; hosts that never were do not count.
pub(super) fn oldest_success(published: &PublishedState) -> Option<(DateTime<Utc>, &HostName)> {
    let upgraded = |host| Some((*published.state.last_upgrades.of(host)?, host));
    taking_part(published).filter_map(upgraded).min()
}

fn deferred(Deferral { actor, reason, since, until }: &Deferral) -> Deferred<'_> {
    let (actor, reason) = (actor.into(), reason.into());
    Deferred { actor, reason, since: Stamp(*since), until: until.map(Stamp) }
}

/// Who decided whether a host takes part, and when.
fn decided(enrolled: Enrolled<'_>) -> Option<(&str, DateTime<Utc>)> {
    match enrolled {
        Enrolled::Approved(Approval { actor, since })
        | Enrolled::Withdrawn(Withdrawal { actor, since, .. }) => Some((actor, *since)),
        Enrolled::Auto | Enrolled::Pending => None,
    }
}

fn names<'a>(applications: impl IntoIterator<Item = &'a ApplicationName>) -> Vec<Cow<'a, str>> {
    applications.into_iter().map(|name| name.as_str().into()).collect()
}

fn labels(labels: &OrdMap<String, String>) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    labels.iter().map(|(key, value)| (key.into(), value.into())).collect()
}
