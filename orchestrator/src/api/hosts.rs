//! `/v1/state/os-upgrade/hosts`: every host that is known, the versions it runs, and why it is not moving.
//!
//! A JSON list by hostname, or with `limit` or `after` a page of it; `/hosts/{hostname}` is one entry of it, which a worker may read at its start to compare
//! versions. A host is known when a worker has announced itself on it or has published versions for it, or an operator has
//! approved or withdrawn it.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::{
    Approval, Blocker, Cause, Enrolled, Forecast, HostStatus, Reachability, SeenHost, Withdrawal, explain,
};
use os_upgrade_protocol::{ApplicationName, HostName, Versions};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Name, Nothing, Parameters, Params, True};
use super::listing::{self, Count, Listing, Wanted, entry};
use super::openapi::types::{BlockerBody, EnrolmentWord, HostStatusWord, ReachabilityWord};
use super::openapi::{lists, tag};
use super::reply::{self, ReasonFields, Stamp};
use crate::site::{HostVersions, Present};

/// What may be said of whether a host takes part in runs.
pub(super) const ENROLMENTS: [&str; 4] = ["approved", "auto", "pending", "withdrawn"];

/// About how many bytes a host takes in the list, when its versions are few.
const BYTES_PER_HOST: usize = 512;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(read))
}

#[utoipa::path(
    get, path = "/v1/state/os-upgrade/hosts", operation_id = "list-hosts", tag = tag::UPGRADES,
    summary = "List the hosts, by name: their versions, and why they are not moving",
    params(HostListing),
    responses(
        (status = 200, description = "every host that is known, or a page of them", body = lists::HostList),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<HostListing>) -> Result<Response, Problem> {
    let (only_pending, params) = params.split();
    let present = api.present()?;
    let hosts = present.view.hosts.len().max(present.versions.len());
    let wanted = params.wanted();
    api.render(hosts, move || {
        let mut known = known(&present);
        if only_pending {
            known.retain(|host| is_pending(&present, host));
        }
        if wanted == Wanted::Count {
            return serde_json::to_vec(&Count { count: known.len() as u64 });
        }
        let (names, next) = params.page(known.into_iter(), ToString::to_string);
        let forecast = &present.forecast(Utc::now());
        let whole = |name| Entry { present: &present, forecast, name };
        let mut bytes = Vec::with_capacity(names.len() * BYTES_PER_HOST);
        let items: Vec<_> = names.into_iter().map(|name| entry(wanted, || name, || whole(name))).collect();
        if params.is_paged() {
            serde_json::to_writer(&mut bytes, &HostPage { items, next })?;
        } else {
            serde_json::to_writer(&mut bytes, &items)?;
        }
        Ok(bytes)
    })
    .await
}

/// The parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct HostListing {
    /// How many entries at most; all unless given.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "listing::page")]
    limit: Option<u32>,
    /// The `next` of the page before: entries whose names come after this one.
    after: Option<String>,
    /// Only those that have announced themselves and wait for approval.
    #[param(inline)]
    pending: Option<True>,
    /// Only the keys of the entries.
    #[param(inline)]
    keys: Option<True>,
    /// Only how many entries there are. It goes before `keys`.
    #[param(inline)]
    count: Option<True>,
}

impl Parameters for HostListing {
    const NAMES: &'static [&'static str] = &["limit", "after", "pending", "keys", "count"];
}

impl HostListing {
    fn split(self) -> (bool, Listing) {
        let Self { limit, after, pending, keys, count } = self;
        (pending.is_some(), Listing::of(limit, after, keys, count))
    }
}

/// Whether `host` has announced itself and waits for approval.
fn is_pending(present: &Present, host: &HostName) -> bool {
    present.view.hosts.contains_key(host) && present.state.enrolled(host) == Enrolled::Pending
}

/// How many of the hosts that have announced themselves take part in runs, and how many do not, by the word for it.
pub(super) fn by_enrolment(present: &Present) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = ENROLMENTS.map(|word| (word, 0)).into();
    for host in present.view.hosts.keys() {
        *counts.entry(present.state.enrolled(host).as_str()).or_default() += 1;
    }
    counts
}

/// How many hosts wait for approval.
pub(super) fn pending(present: &Present) -> usize {
    present.view.hosts.keys().filter(|host| is_pending(present, host)).count()
}

/// A page of the list.
#[derive(Serialize)]
struct HostPage<'a> {
    items: Vec<listing::Entry<&'a HostName, Entry<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Every host that is known, by name.
pub(super) fn known(present: &Present) -> BTreeSet<&HostName> {
    let enrolment = &present.state.enrolment;
    let decided = enrolment.approved.keys().chain(enrolment.withdrawn.keys());
    present.view.hosts.keys().chain(present.versions.keys()).chain(decided).collect()
}

/// 404 for a host that is not known.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/hosts/{hostname}", operation_id = "read-host", tag = tag::UPGRADES,
    summary = "Read a host",
    params(("hostname" = String, Path, description = "the name of a host", example = "h01")),
    responses(
        (status = 200, description = "the host", body = EntryBody),
        (status = 404, description = "there is no such host"),
    )
)]
async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, Problem> {
    let present = api.present()?;
    let is_known = |host: &HostName| {
        let Present { state, view, versions, .. } = &*present;
        view.hosts.contains_key(host) || versions.contains_key(host) || state.enrolment.knows(host)
    };
    match HostName::new(&name).ok().filter(is_known) {
        Some(name) => {
            let forecast = &present.forecast(Utc::now());
            reply::json(&Entry { present: &present, forecast, name: &name })
        }
        None => Err(Problem::not_found(format!("there is no host {name:?}"))),
    }
}

/// One entry of the list, put together as it is written.
struct Entry<'a> {
    present: &'a Present,
    forecast: &'a Forecast,
    name: &'a HostName,
}

/// A host as it stands in the list.
#[derive(Serialize, ToSchema)]
#[schema(as = Host)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EntryBody<'a> {
    hostname: &'a str,
    /// Those whose workers have announced themselves on it.
    applications: Vec<&'a str>,
    /// The lock group whose slot it needs.
    group: &'a str,
    #[schema(value_type = ReachabilityWord)]
    reachability: &'static str,
    /// Whether it takes part in runs.
    #[schema(value_type = EnrolmentWord)]
    enrolment: &'static str,
    /// Who approved or withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'a str>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Stamp>,
    /// When the bus took the last announcement of a worker on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    announced_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashMap<String, String>>)]
    versions: Option<&'a Versions>,
    /// When the bus took those versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions_time: Option<Stamp>,
    /// Where it is in the active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostStatusWord>)]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Stamp>,
    /// Why it is not moving.
    why: &'a str,
    #[serde(flatten)]
    reason: ReasonFields<'a>,
    /// When, at the latest, that changes by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Stamp>,
    /// What keeps it from moving, the decisive one first.
    #[schema(value_type = Vec<BlockerBody>)]
    blockers: Vec<BlockerOfHost<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressBody<'a>>,
}

/// Something that keeps a host from moving.
#[derive(Serialize)]
struct BlockerOfHost<'a> {
    #[serde(flatten)]
    cause: &'a Cause,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Stamp>,
}

impl<'a> BlockerOfHost<'a> {
    fn of(Blocker { cause, until }: &'a Blocker) -> Self {
        Self { cause, until: until.map(Stamp) }
    }
}

/// How far its worker is with the command under way, as it says.
#[derive(Serialize, ToSchema)]
#[schema(as = Progress)]
pub(super) struct ProgressBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    percent: Option<u8>,
    text: &'a str,
}

impl<'a> ProgressBody<'a> {
    pub(super) fn of(present: &'a Present, host: &HostName) -> Option<Self> {
        present.progress_of(host).map(|progress| Self { percent: progress.percent, text: &progress.text })
    }
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { present, forecast, name } = *self;
        let explanation = explain(&present.state, &present.view, forecast, name);
        let seen = present.view.hosts.get(name);
        let published = present.versions.get(name);
        let default_group = &present.state.settings.default_group;
        let enrolled = present.state.enrolled(name);
        let decided = decided(enrolled);
        let body = EntryBody {
            hostname: name.as_str(),
            applications: seen.map(applications).unwrap_or_default(),
            group: seen.and_then(|seen| seen.group.as_ref()).unwrap_or(default_group).as_str(),
            reachability: reachability(seen.map(|seen| seen.reachability).unwrap_or_default()),
            enrolment: enrolled.as_str(),
            decided_by: decided.map(|(actor, _)| actor),
            decided_at: decided.map(|(_, since)| Stamp(since)),
            announced_at: seen.and_then(|seen| seen.announced_at).map(Stamp),
            versions: published.map(|HostVersions { versions, .. }| versions),
            versions_time: published.map(|HostVersions { published_at, .. }| Stamp(*published_at)),
            status: explanation.status.map(HostStatus::as_str),
            since: explanation.since.map(Stamp),
            why: &explanation.to_string(),
            reason: ReasonFields::of(explanation.reason.as_ref()),
            until: explanation.until().map(Stamp),
            blockers: explanation.blockers.iter().map(BlockerOfHost::of).collect(),
            progress: ProgressBody::of(present, name),
        };
        body.serialize(serializer)
    }
}

/// Who decided whether a host takes part, and when.
fn decided(enrolled: Enrolled<'_>) -> Option<(&str, DateTime<Utc>)> {
    match enrolled {
        Enrolled::Approved(Approval { actor, since })
        | Enrolled::Withdrawn(Withdrawal { actor, since, .. }) => Some((actor, *since)),
        Enrolled::Auto | Enrolled::Pending => None,
    }
}

fn applications(seen: &SeenHost) -> Vec<&str> {
    seen.applications.iter().map(ApplicationName::as_str).collect()
}

/// The word in the API.
const fn reachability(reachability: Reachability) -> &'static str {
    match reachability {
        Reachability::Unknown => "unknown",
        Reachability::Awaited => "awaited",
        Reachability::Reachable => "reachable",
        Reachability::Unreachable => "unreachable",
    }
}
