//! `/v1/state/os-upgrade/runs`: the history of runs, read from the projection once it has caught up with the current
//! state.
//!
//! `?limit=&after=` pages through runs, newest first; `next` of one page is `after` of the next; `?host=&result=&from=&to=`
//! chooses among them. A single run is shown
//! with all of its hosts, and what happened in it, up to `events-limit`. `events-after` continues with the `events-next` of
//! the previous page.

use std::borrow::Cow;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{Count, Entry, Fact, Millis, Page, Stamp, TwoSided, Why};
use os_upgrade_api_types::query::{FactList, ListMode, PAGE_DEFAULT};
use os_upgrade_api_types::routes::events::EventId;
use os_upgrade_api_types::routes::runs::{
    Command, EVENTS_MAX, HostOfRunInFull, LIST, ListParameters, MISSED, MissedRun, READ, ReadParameters, Run,
    RunInFull,
};
use os_upgrade_api_types::word::Word;
use os_upgrade_kernel::{self as kernel, Explainer, FactCursor, Reason};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_store::{Audit, FactRow, HostRow, RunDetail, RunFilter, RunRow};

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Name, Params, parameters};
use crate::http::reply;
use crate::resources::audit::{self, AuditResult};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&LIST, list).route(&READ, read).route(&MISSED, list_missed)
}

/// Reads the query of the list: the limit, and the run to begin after.
pub(crate) fn read_list_query(uri: &Uri) -> Result<(Option<u32>, Option<RunId>), Problem> {
    parameters::<ListParameters>(uri).map(|query| (query.limit, query.after))
}

/// Reads the query of a run: the limit, and the event to begin after.
pub(crate) fn read_run_query(uri: &Uri) -> Result<(Option<u32>, Option<FactCursor>), Problem> {
    parameters::<ReadParameters>(uri).map(|query| (query.events_limit, query.events_after))
}

async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    let ListParameters { limit, after, host, result, from, to, keys, count } = params;
    let mode = ListMode::of(keys, count);
    let result = result.map(|result| result.as_str().to_owned());
    let filter = RunFilter { result, from, to, host };
    let history = api.history().await;
    if mode == ListMode::Count {
        return reply::json(&Count { count: history.count_runs(&filter).await? });
    }
    let page = history.runs(&filter, limit.unwrap_or(PAGE_DEFAULT), after.as_ref()).await?;
    let items = page.items.iter().map(|run| Entry::of(mode, || run.id.as_str(), || brief(run)));
    reply::json(&Page { items: items.collect(), next: page.next })
}

async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(params): Params<ReadParameters>,
) -> Result<Response, Problem> {
    let not_found = || Problem::not_found(format!("there is no run {name:?}"));
    let id = RunId::new(&name).map_err(|_| not_found())?;
    let limit = params.events_limit.unwrap_or(EVENTS_MAX);
    render(&api, &id, limit, params.events_after).await?.ok_or_else(not_found)
}

/// A run with its hosts and the events of at most `limit` of its facts, those after `after` if given; `None` if the history
/// has no such run.
pub(crate) async fn render(
    api: &Api,
    id: &RunId,
    limit: u32,
    after: Option<FactCursor>,
) -> Result<Option<Response>, Problem> {
    let history = api.history().await;
    let Some(detail) = history.run(id, limit, after).await? else { return Ok(None) };
    let epoch = history.end().await?.map(|end| EventId::epoch_of(end.journal_created_at));
    let size = detail.hosts.len().max(detail.facts.items.len());
    let now = Utc::now();
    // The history is there even while the journal is not.
    let published = api.site.published_for_display(now);
    api.render(size, move || serde_json::to_vec(&in_full(epoch, &detail, &published, now)?)).await.map(Some)
}

async fn list_missed(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    AuditResult::read(&api, Audit::MissedRuns, params.into_query()).await?.answer(missed)
}

fn missed(fact: &FactRow) -> Result<MissedRun, Problem> {
    let kernel::MissedRun { start, latest, end, reason, unrecorded } = audit::read(fact)?;
    Ok(MissedRun {
        window_start: Stamp(start),
        latest_start: Stamp(latest),
        window_end: Stamp(end),
        recorded_at: Stamp(fact.at),
        why: bodies::why(reason),
        unrecorded: (unrecorded > 0).then_some(unrecorded),
    })
}

fn brief(run: &RunRow) -> Run<'_> {
    Run {
        id: run.id.as_str().into(),
        trigger: run.trigger_kind.as_str().into(),
        actor: run.actor.as_deref().map(Cow::from),
        reason: run.reason.as_deref().map(Cow::from),
        start_time: Stamp(run.started_at),
        not_after: Stamp(run.not_after),
        end_time: run.ended_at.map(Stamp),
        result: run.result.as_deref().map(Word::read),
        phase: run.phase.as_str().into(),
        stopping: run.stopping.as_deref().map(TwoSided::Sent),
        rollout: TwoSided::Sent(&run.rollout),
        counts: TwoSided::Sent(&run.counts),
        targeted: run.targeted,
    }
}

/// The run, whose events are of the journal of this `epoch`. What the hosts of an active one wait for is in no history.
fn in_full<'a>(
    epoch: Option<i64>,
    detail: &'a RunDetail,
    published: &PublishedState,
    now: DateTime<Utc>,
) -> serde_json::Result<RunInFull<'a>> {
    let explainer = Explainer::new(&published.state, &published.view, now);
    let events = detail.facts.items.iter().filter_map(|row| bodies::event(epoch, row).transpose());
    let events = events.map(|event| event.map(TwoSided::Sent));
    Ok(RunInFull {
        run: brief(&detail.run),
        hosts: detail.hosts.iter().map(|row| host(&detail.run.id, row, published, &explainer)).collect(),
        events: events.collect::<Result<_, _>>()?,
        events_next: detail.facts.next.map(|next| next.to_string()),
    })
}

/// A host of a run as the API shows it, with what it waits for if the run is active.
pub(crate) fn host<'a>(
    run: &str,
    host: &'a HostRow,
    published: &PublishedState,
    explainer: &Explainer<'_>,
) -> HostOfRunInFull<'a> {
    let shown = || {
        let active = published.state.run.as_ref().filter(|active| active.id.as_str() == run)?;
        let name = HostName::new(&host.host).ok()?;
        // The history may be behind the state.
        let is_same = active.host(&name)?.status.as_str() == host.status;
        is_same.then(|| explainer.in_run(active, &name).map(bodies::why))
    };
    let why = shown().unwrap_or_else(|| recorded(host));
    let command = |action: &'a str| Command { action: action.into(), sequence: host.command_sequence };
    HostOfRunInFull {
        hostname: host.host.as_str().into(),
        application: host.application.as_str().into(),
        group: host.group.as_str().into(),
        status: Word::read(&host.status),
        since: Stamp(host.since),
        why,
        start_time: host.started_at.map(Stamp),
        end_time: host.ended_at.map(Stamp),
        command: host.command_action.as_deref().map(command),
    }
}

/// Why a host did not succeed. What a newer version has recorded is shown by its sentence.
fn recorded(host: &HostRow) -> Option<Why> {
    let known = host.reason_json.as_deref().and_then(|json| serde_json::from_str::<Reason>(json).ok());
    let newer = || Some(Why::of_newer(host.reason_kind.as_deref()?, host.reason.clone()?));
    known.map(bodies::why).or_else(newer)
}

/// A fact as the API shows it.
pub(crate) fn fact(fact: &FactRow) -> Fact<'_> {
    Fact {
        sequence: fact.sequence,
        place: fact.place,
        time: Millis(fact.at),
        name: fact.name.as_str().into(),
        event: fact.event.as_deref().map(Cow::from),
        actor: fact.actor.as_deref().map(Cow::from),
        host: fact.host.as_deref().map(Cow::from),
        fact: TwoSided::Sent(&fact.fact),
    }
}
