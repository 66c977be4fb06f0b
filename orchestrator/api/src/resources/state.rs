//! `/v1/state/os-upgrade`: the configuration in force, and the progress of upgrades.
//!
//! Only requested fields are computed, because the run shares the machine with readers of a large site.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{HostOfRun, Stamp, TwoSided, Why};
use os_upgrade_api_types::openapi::fields_of;
use os_upgrade_api_types::routes::state::{
    CurrentUpgrade, HostState, InForce, LastUpgrade, Nodes, NotReached, OldestSuccess, Paused, READ,
    ReadParameters, ScheduledWorker, State,
};
use os_upgrade_api_types::word::Word;
use os_upgrade_calendar::Duration;
use os_upgrade_console::sentence;
use os_upgrade_kernel::config::WorkerApplication;
use os_upgrade_kernel::{
    Explainer, Forecast, NOT_REACHED_RUNS, Pause, Run, RunHost, SeenHost, State as Kernel, denied,
    lasting_warnings,
};
use os_upgrade_protocol::HostName;
use os_upgrade_site::published_state::PublishedState;

use crate::bodies;
use crate::context::{Api, LARGE_HOSTS};
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::http::fields::{self, Keep};
use crate::http::reply;
use crate::http::shared_answer::Source;
use crate::resources::config;
use crate::resources::hosts;
use crate::resources::reboot_queue;
use crate::routes::Routes;

/// Estimated size of a host in the answer, in bytes: in the list of workers, in two runs, and as an entry of its own.
const BYTES_PER_HOST: usize = 512;

/// The paths of all fields.
pub(crate) static FIELDS: LazyLock<Vec<String>> = LazyLock::new(fields_of::<State<'_>>);

pub(crate) fn routes() -> Routes {
    Routes::default().route(&READ, read)
}

/// The fields that the parameters select.
fn keep(params: &ReadParameters) -> Result<Keep, Problem> {
    let keep = params.fields.as_ref().map_or(Ok(Keep::All), |fields| Keep::parse(fields, &FIELDS))?;
    let is_configured = |name: &str| config::FIELDS.iter().any(|configured| configured == name);
    Ok(match params.content {
        None => keep,
        Some(Nodes::Config) => keep.retain(&FIELDS, is_configured),
        Some(Nodes::Nonconfig) => keep.retain(&FIELDS, |name| !is_configured(name)),
    })
}

async fn read(Shared(api): Shared<Api>, Params(params): Params<ReadParameters>) -> Result<Response, Problem> {
    match keep(&params)? {
        Keep::All => read_all(&api).await,
        keep @ Keep::Only(_) => {
            let published = api.published()?;
            let hosts = longest_list(&published, &keep);
            api.render(hosts, move || write(&published, &keep, Utc::now())).await
        }
    }
}

/// The whole state. On a large site that is much to render, and there are readers who ask again and again.
async fn read_all(api: &Api) -> Result<Response, Problem> {
    let (shown, rendered) = (api.clone(), api.clone());
    let source = move || {
        let published = shown.site.published();
        let leader_startable = shown.published()?.view.leader_startable.clone();
        let is_large = longest_list(&published, &Keep::All) >= LARGE_HOSTS;
        Ok(Source { published, leader_startable, now: Utc::now(), is_large })
    };
    let render = async move || {
        let published = rendered.published()?;
        let hosts = longest_list(&published, &Keep::All);
        let written = rendered.render_bytes(hosts, move || write(&published, &Keep::All, Utc::now()));
        written.await.map(Bytes::from)
    };
    api.whole_state.get(source, render).await.map(reply::json_bytes)
}

/// The length of the longest list of hosts in the answer.
fn longest_list(published: &PublishedState, keep: &Keep) -> usize {
    let of_run =
        |name: &str, run: Option<&Run>| run.filter(|_| keep.has(name)).map_or(0, |run| run.hosts().len());
    let of_hosts = ["hosts", "scheduled-workers", "pending-hosts", "config-warnings"];
    let seen = if of_hosts.iter().any(|name| keep.has(name)) {
        published.view.hosts.len().max(published.versions.len())
    } else {
        0
    };
    let state = &published.state;
    let (whole, targeted) = last_runs(state);
    seen.max(of_run("current-upgrade-info", state.run.as_ref()))
        .max(of_run("last-upgrade-info", whole))
        .max(of_run("last-targeted-info", targeted))
}

/// Serializes the selected fields of the state at `now`.
pub(crate) fn write(
    published: &Arc<PublishedState>,
    keep: &Keep,
    now: DateTime<Utc>,
) -> serde_json::Result<Vec<u8>> {
    let needs_forecast =
        ["next-upgrade-in", "next-upgrade-at", "next-upgrade-why", "window-used-by", "hosts"];
    let forecast = needs_forecast.iter().any(|name| keep.has(name)).then(|| published.forecast(now));
    let mut bytes = Vec::with_capacity(1_024 + longest_list(published, keep) * BYTES_PER_HOST);
    fields::write(&mut bytes, &state(published, forecast.as_ref(), now, keep), keep)?;
    Ok(bytes)
}

/// The answer. Costly fields that are not selected are left out.
fn state<'a>(
    published: &'a PublishedState,
    forecast: Option<&'a Forecast>,
    now: DateTime<Utc>,
    keep: &Keep,
) -> State<'a> {
    let state = &published.state;
    let config = state.config.as_deref();
    let applications = config.map(|config| config.worker_applications.as_slice());
    let start = forecast.and_then(Forecast::start).map(|start| start.at);
    let workers = applications.filter(|_| keep.has("scheduled-workers"));
    let waiting = keep.has("pending-hosts").then(|| hosts::pending(published));
    let warnings = keep.has("config-warnings").then(|| lasting_warnings(state, &published.view));
    let current = state.run.as_ref().filter(|_| keep.has("current-upgrade-info"));
    let (whole, targeted) = last_runs(state);
    let whole = whole.filter(|_| keep.has("last-upgrade-info"));
    let targeted = targeted.filter(|_| keep.has("last-targeted-info"));
    let queue = keep.has("reboot-queue").then(|| reboot_queue::in_brief(published, now)).flatten();
    let denied = keep.has("denied-until").then(|| denied(state, &published.view, now)).flatten();
    let explainer = Explainer::new(state, &published.view, now);
    let explaining = forecast.filter(|_| keep.has("hosts"));
    State {
        config: InForce(config),
        status: state.run.as_ref().map_or("idle", |run| run.phase.as_str()).into(),
        paused: state.pause.as_ref().map(paused),
        next_upgrade_in: start.map(|at| until(at, now)),
        next_upgrade_at: start.map(Stamp),
        next_upgrade_why: forecast
            .and_then(Forecast::blocker)
            .map(|by| Why::new(by.clone().into(), sentence(by))),
        window_used_by: forecast.and_then(|forecast| Some(TwoSided::Sent(&forecast.used.as_ref()?.by))),
        denied_until: denied.map(|denied| Stamp(denied.end)),
        pending_hosts: waiting.filter(|hosts| *hosts > 0),
        not_reached: keep.has("not-reached").then(|| not_reached(published)).flatten(),
        oldest_success: keep.has("oldest-success").then(|| oldest_success(published)).flatten(),
        config_warnings: warnings
            .map(|found| found.into_iter().map(bodies::warning).collect())
            .unwrap_or_default(),
        scheduled_workers: workers.map(|applications| scheduled_workers(published, applications)),
        reboot_queue: queue,
        delivery: keep.has("delivery").then(|| bodies::configuration::trouble(published, now)).flatten(),
        units: keep.has("units").then(|| bodies::units::trouble(published, now)).flatten(),
        current_upgrade_info: current.map(|run| current_upgrade(&explainer, run)),
        last_upgrade_info: whole.and_then(|run| last_upgrade(&explainer, run)),
        last_targeted_info: targeted.and_then(|run| last_upgrade(&explainer, run)),
        hosts: explaining.map(|forecast| explanations(published, &explainer, forecast)),
    }
}

/// The last run of the whole site, and the last one of chosen hosts if that ended after it.
fn last_runs(state: &Kernel) -> (Option<&Run>, Option<&Run>) {
    match &state.last_run {
        Some(last) if last.trigger.is_targeted() => (state.last_whole_run.as_deref(), Some(last)),
        last => (last.as_ref(), None),
    }
}

fn not_reached(published: &PublishedState) -> Option<NotReached> {
    let hosts = hosts::not_reached(published);
    (hosts > 0).then_some(NotReached { runs: NOT_REACHED_RUNS, hosts })
}

fn oldest_success(published: &PublishedState) -> Option<OldestSuccess<'_>> {
    let (at, host) = hosts::oldest_success(published)?;
    Some(OldestSuccess { hostname: host.as_str().into(), time: Stamp(at) })
}

fn paused(Pause { cause, since, until }: &Pause) -> Paused<'_> {
    let (actor, reason) = (cause.actor().into(), cause.reason().map(Cow::from));
    Paused { actor, reason, since: Stamp(*since), until: until.map(Stamp) }
}

/// The time from `now` to `at`, in whole seconds; zero if it is past.
fn until(at: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    Duration::from_secs((at - now).num_seconds().try_into().unwrap_or(0))
}

/// Every known host, by name, and why it is not moving.
fn explanations<'a>(
    published: &'a PublishedState,
    explainer: &Explainer<'_>,
    forecast: &Forecast,
) -> Vec<HostState<'a>> {
    let host = |name: &'a HostName| {
        let explanation = explainer.explain(forecast, name);
        let (why, also) = bodies::whys(explanation.whys);
        HostState {
            hostname: name.as_str().into(),
            status: explanation.status.map(Word::from),
            why,
            also,
            progress: hosts::progress(published, name),
            node: bodies::node(&published.state, name),
            key: hosts::unapproved_key(published, name).map(Word::from),
            reboot_ineffective: published
                .view
                .hosts
                .get(name)
                .and_then(|seen| seen.reboot_ineffective.as_deref())
                .map(Cow::from),
        }
    };
    hosts::known(published).into_iter().map(host).collect()
}

/// Every worker of the configured applications on a host that takes part in runs, by host, then as configured. The first
/// one of a host handles it.
fn scheduled_workers<'a>(
    published: &'a PublishedState,
    applications: &'a [WorkerApplication],
) -> Vec<ScheduledWorker<'a>> {
    let takes_part = |(host, _): &(&'a HostName, _)| published.state.enrolled(host).takes_part();
    let workers = |(host, seen): (&'a HostName, &'a SeenHost)| {
        let names = applications.iter().map(|configured| &configured.name);
        let names = names.filter(|name| seen.applications.contains(*name));
        names.map(|name| ScheduledWorker { host: host.as_str().into(), application: name.as_str().into() })
    };
    published.view.hosts.iter().filter(takes_part).flat_map(workers).collect()
}

fn current_upgrade<'a>(explainer: &Explainer<'_>, run: &'a Run) -> CurrentUpgrade<'a> {
    CurrentUpgrade {
        id: run.id.as_str().into(),
        reason: run.trigger.reason().map(Cow::from),
        start_time: Stamp(run.started_at),
        not_after: Stamp(run.not_after),
        stopping: run.stopping.as_ref().map(TwoSided::Sent),
        counts: (&run.counts()).into(),
        hosts: hosts_of(explainer, run),
    }
}

fn last_upgrade<'a>(explainer: &Explainer<'_>, run: &'a Run) -> Option<LastUpgrade<'a>> {
    let ended = run.ended?;
    Some(LastUpgrade {
        id: run.id.as_str().into(),
        reason: run.trigger.reason().map(Cow::from),
        start_time: Stamp(run.started_at),
        end_time: Stamp(ended.at),
        result: ended.result.into(),
        counts: (&run.counts()).into(),
        hosts: hosts_of(explainer, run),
    })
}

/// The hosts of a run, by name.
fn hosts_of<'a>(explainer: &Explainer<'_>, run: &'a Run) -> Vec<HostOfRun<'a>> {
    let host = |(name, host): (&'a HostName, &'a RunHost)| {
        let last_upgrade = explainer.last_upgrade(name);
        bodies::host_of_run(name, host, explainer.in_run(run, name), last_upgrade)
    };
    run.hosts().iter().map(host).collect()
}
