//! `/v1/state/os-upgrade/runs`: the history, read from the projection as soon as that has what the present state shows.
//!
//! `?limit=&after=` pages through runs, newest first; `next` of one page is `after` of the next. A single run comes
//! with all of its hosts and its facts; those beyond `facts-limit` are had with `facts-after`, which is the `facts-next`
//! of the page before.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use os_upgrade_protocol::RunId;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Name, Parameters, Params, parameters};
use super::listing::{self, Asked, Count, Entry, Wanted, entry, paged};
use super::openapi::types::{self, ActionWord, HostStatusWord, PhaseWord, ReasonKindWord, RunResultWord};
use super::openapi::{lists, tag};
use super::reply::{self, Stamp};
use crate::store::{FactCursor, FactRow, HostRow, RunDetail, RunPage, RunRow};

/// Facts in an answer, when nothing is asked for, and at most: all facts of a run of some 2 000 hosts.
const FACTS_MAX: u32 = 10_000;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list)).routes(routes!(read))
}

paged!(ListParameters by RunId, described by RunIdText);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case")]
struct RunParameters {
    /// How many facts at most.
    #[param(minimum = 1, maximum = 10_000, default = 10_000)]
    #[serde(default, deserialize_with = "listing::limit::<_, FACTS_MAX>")]
    facts_limit: Option<u32>,
    /// The `facts-next` of the page before.
    #[serde(default, deserialize_with = "listing::cursor")]
    #[param(value_type = Option<types::FactKeyText>)]
    facts_after: Option<FactCursor>,
}

impl Parameters for RunParameters {
    const NAMES: &'static [&'static str] = &["facts-limit", "facts-after"];
}

/// Reads the query of the list: the limit, and the run to begin after.
pub(super) fn read_list_query(uri: &Uri) -> Result<(Option<u32>, Option<RunId>), Problem> {
    parameters::<ListParameters>(uri).map(|query| (query.limit, query.after))
}

/// Reads the query of a run: the limit, and the fact to begin after.
pub(super) fn read_run_query(uri: &Uri) -> Result<(Option<u32>, Option<FactCursor>), Problem> {
    parameters::<RunParameters>(uri).map(|query| (query.facts_limit, query.facts_after))
}

/// 200 with the page; 400 when there is no run `after`.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/runs", operation_id = "list-runs", tag = tag::UPGRADES,
    summary = "List the runs, newest first",
    params(ListParameters),
    responses(
        (status = 200, description = "a page of them", body = lists::RunList),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    let Asked { wanted, limit, after } = params.asked();
    let history = api.history().await;
    if wanted == Wanted::Count {
        return reply::json(&Count { count: history.count_runs().await? });
    }
    let page = history.runs(limit, after.as_ref()).await?;
    reply::json(&RunList::of(&page, wanted))
}

/// 200, or 404 when there is no such run.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/runs/{id}", operation_id = "read-run", tag = tag::UPGRADES,
    summary = "Read a run: its hosts, and its facts in order",
    params(("id" = types::RunIdText, Path, description = "the id of a run"), RunParameters),
    responses(
        (status = 200, description = "the run", body = DetailBody),
        (status = 404, description = "there is no such run"),
    )
)]
async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(params): Params<RunParameters>,
) -> Result<Response, Problem> {
    let not_found = || Problem::not_found(format!("there is no run {name:?}"));
    let id = RunId::new(&name).map_err(|_| not_found())?;
    let limit = params.facts_limit.unwrap_or(FACTS_MAX);
    let detail = api.history().await.run(&id, limit, params.facts_after).await?.ok_or_else(not_found)?;
    let size = detail.hosts.len().max(detail.facts.items.len());
    api.render(size, move || serde_json::to_vec(&DetailBody::of(&detail))).await
}

#[derive(Serialize)]
struct RunList<'a> {
    items: Vec<Entry<&'a str, RunItem<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

impl<'a> RunList<'a> {
    fn of(page: &'a RunPage, wanted: Wanted) -> Self {
        let shown = |run: &'a RunRow| entry(wanted, || run.id.as_str(), || RunItem::of(run));
        Self { items: page.items.iter().map(shown).collect(), next: page.next.as_deref() }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Run)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RunItem<'a> {
    id: &'a str,
    /// What started it.
    trigger: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    start_time: Stamp,
    not_after: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunResultWord>)]
    result: Option<&'a str>,
    /// How far it is, or was at its end.
    #[schema(value_type = PhaseWord)]
    phase: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::StopCauseBody>)]
    stopping: Option<&'a RawValue>,
    #[schema(value_type = types::RolloutBody)]
    rollout: &'a RawValue,
    #[schema(value_type = types::CountsBody)]
    counts: &'a RawValue,
}

impl<'a> RunItem<'a> {
    fn of(run: &'a RunRow) -> Self {
        Self {
            id: &run.id,
            trigger: &run.trigger_kind,
            actor: run.actor.as_deref(),
            start_time: Stamp(run.started_at),
            not_after: Stamp(run.not_after),
            end_time: run.ended_at.map(Stamp),
            result: run.result.as_deref(),
            phase: &run.phase,
            stopping: run.stopping.as_deref(),
            rollout: &run.rollout,
            counts: &run.counts,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunInFull)]
#[serde(rename_all = "kebab-case")]
struct DetailBody<'a> {
    #[serde(flatten)]
    run: RunItem<'a>,
    hosts: Vec<HostItem<'a>>,
    facts: Vec<FactItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts_next: Option<String>,
}

impl<'a> DetailBody<'a> {
    fn of(detail: &'a RunDetail) -> Self {
        Self {
            run: RunItem::of(&detail.run),
            hosts: detail.hosts.iter().map(HostItem::of).collect(),
            facts: detail.facts.items.iter().map(FactItem::of).collect(),
            facts_next: detail.facts.next.map(|next| next.to_string()),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = HostOfRunInFull)]
#[serde(rename_all = "kebab-case")]
struct HostItem<'a> {
    hostname: &'a str,
    application: &'a str,
    group: &'a str,
    #[schema(value_type = HostStatusWord)]
    status: &'a str,
    since: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReasonKindWord>)]
    reason_kind: Option<&'a str>,
    /// When its slot was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<Stamp>,
    /// When its part in the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<CommandItem<'a>>,
}

/// A host's current command, or its last.
#[derive(Serialize, ToSchema)]
#[schema(as = Command)]
struct CommandItem<'a> {
    #[schema(value_type = ActionWord)]
    action: &'a str,
    /// Where it stands in the control stream, once it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

impl<'a> HostItem<'a> {
    fn of(host: &'a HostRow) -> Self {
        let command = |action| CommandItem { action, sequence: host.command_sequence };
        Self {
            hostname: &host.host,
            application: &host.application,
            group: &host.group,
            status: &host.status,
            since: Stamp(host.since),
            reason: host.reason.as_deref(),
            reason_kind: host.reason_kind.as_deref(),
            start_time: host.started_at.map(Stamp),
            end_time: host.ended_at.map(Stamp),
            command: host.command_action.as_deref().map(command),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Fact)]
pub(super) struct FactItem<'a> {
    /// Of its record in the journal.
    sequence: u64,
    /// In that record, from 0.
    place: u64,
    #[schema(value_type = Stamp)]
    time: Millis,
    #[serde(rename = "type")]
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    /// The whole of it; its kinds differ.
    #[schema(value_type = Object)]
    fact: &'a RawValue,
}

impl<'a> FactItem<'a> {
    pub(super) fn of(fact: &'a FactRow) -> Self {
        Self {
            sequence: fact.sequence,
            place: fact.place,
            time: Millis(fact.at),
            name: &fact.name,
            event: fact.event.as_deref(),
            actor: fact.actor.as_deref(),
            host: fact.host.as_deref(),
            fact: &fact.fact,
        }
    }
}

/// RFC 3339 in UTC with milliseconds: many facts share a second.
pub(super) struct Millis(pub(super) DateTime<Utc>);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}
