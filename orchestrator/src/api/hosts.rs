//! `/v1/state/os-upgrade/hosts`: every host that is known, the versions it runs, and why it is not moving.
//!
//! A JSON list by hostname, or with `limit` or `after` a page of it; `/hosts/{hostname}` is one entry of it, which a worker may read at its start to compare
//! versions. A host is known when a worker has announced itself on it or has published versions for it.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_kernel::{Explanation, HostStatus, Outlook, Reachability, SeenHost, explain};
use os_upgrade_protocol::{ApplicationName, HostName, Versions};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Name, Nothing, Params};
use super::listing::{self, Count, Listing, Wanted, entry};
use super::openapi::types::{HostStatusWord, ReachabilityWord};
use super::openapi::{lists, tag};
use super::reply::{self, ReasonFields, Stamp};
use crate::site::{HostVersions, Present};

/// About how many bytes a host takes in the list, when its versions are few.
const BYTES_PER_HOST: usize = 512;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(read))
}

#[utoipa::path(
    get, path = "/v1/state/os-upgrade/hosts", operation_id = "list-hosts", tag = tag::UPGRADES,
    summary = "List the hosts, by name: their versions, and why they are not moving",
    params(Listing),
    responses(
        (status = 200, description = "every host that is known, or a page of them", body = lists::HostList),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<Listing>) -> Result<Response, Problem> {
    let present = api.present()?;
    let hosts = present.view.hosts.len().max(present.versions.len());
    let wanted = params.wanted();
    api.render(hosts, move || {
        let known = known(&present);
        if wanted == Wanted::Count {
            return serde_json::to_vec(&Count { count: known.len() as u64 });
        }
        let (names, next) = params.page(known.into_iter(), ToString::to_string);
        let outlook = &present.outlook(Utc::now());
        let whole = |name| Entry { present: &present, outlook, name };
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

/// A page of the list.
#[derive(Serialize)]
struct HostPage<'a> {
    items: Vec<listing::Entry<&'a HostName, Entry<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Every host that is known, by name.
pub(super) fn known(present: &Present) -> BTreeSet<&HostName> {
    present.view.hosts.keys().chain(present.versions.keys()).collect()
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
    let known = HostName::new(&name)
        .ok()
        .filter(|host| present.view.hosts.contains_key(host) || present.versions.contains_key(host));
    match known {
        Some(name) => {
            let outlook = &present.outlook(Utc::now());
            reply::json(&Entry { present: &present, outlook, name: &name })
        }
        None => Err(Problem::not_found(format!("there is no host {name:?}"))),
    }
}

/// One entry of the list, put together as it is written.
struct Entry<'a> {
    present: &'a Present,
    outlook: &'a Outlook,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressBody<'a>>,
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
        let Self { present, outlook, name } = *self;
        let Explanation { status, since, why, reason, until } =
            explain(&present.state, &present.view, outlook, name);
        let seen = present.view.hosts.get(name);
        let published = present.versions.get(name);
        let default_group = &present.state.settings.default_group;
        let body = EntryBody {
            hostname: name.as_str(),
            applications: seen.map(applications).unwrap_or_default(),
            group: seen.and_then(|seen| seen.group.as_ref()).unwrap_or(default_group).as_str(),
            reachability: reachability(seen.map(|seen| seen.reachability).unwrap_or_default()),
            versions: published.map(|HostVersions { versions, .. }| versions),
            versions_time: published.map(|HostVersions { published_at, .. }| Stamp(*published_at)),
            status: status.map(HostStatus::as_str),
            since: since.map(Stamp),
            why: &why,
            reason: ReasonFields::of(reason.as_ref()),
            until: until.map(Stamp),
            progress: ProgressBody::of(present, name),
        };
        body.serialize(serializer)
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
