//! `/v1/state/os-upgrade/runs/{id}/hosts/{hostname}`: what happened to a host in a run, folded from the facts about it.

use std::borrow::Cow;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{LateAnswer, Stamp};
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::routes::run_hosts::{HostPhase, HostReport, READ};
use os_upgrade_kernel::fact::{ControlFact, RunFact};
use os_upgrade_kernel::{Explainer, Fact, HostEvent, HostStatus, LateResult};
use os_upgrade_protocol::{HostName, RunId, Versions};
use os_upgrade_site::host_reports::Stored;
use os_upgrade_store::HostDetail;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Names, Params};
use crate::http::reply;
use crate::resources::{audit, runs};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&READ, read)
}

async fn read(
    State(api): State<Api>,
    Names([run, host]): Names<2>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let (run, name, detail) = detail(&api, &run, &host).await?;
    let facts = detail.facts.iter().map(|row| Ok((row.at, audit::read(row)?)));
    let facts = facts.collect::<Result<Vec<(DateTime<Utc>, Fact)>, Problem>>()?;
    let late_answers = facts.iter().filter_map(|(at, fact)| late_answer(*at, fact)).collect();
    let phases = phases(detail.run_started_at, &facts, &detail.host.status);
    // Without them, the rest is still true.
    let (kept, versions_unavailable) = match api.options.reports.versions(&name).await {
        Ok(kept) => (kept, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let (before, after) = versions(&detail, &kept);
    let (versions_before, versions_after) = (before.map(Cow::Owned), after.map(Cow::Owned));
    let now = Utc::now();
    let published = api.site.published_for_display(now);
    let explainer = Explainer::new(&published.state, &published.view, now);
    let host = runs::host(run.as_str(), &detail.host, &published, &explainer);
    reply::json(&HostReport {
        host,
        phases,
        late_answers,
        versions_before,
        versions_after,
        versions_unavailable,
    })
}

/// The run `run` and the host `host` in it.
pub(crate) async fn detail(
    api: &Api,
    run: &str,
    host: &str,
) -> Result<(RunId, HostName, HostDetail), Problem> {
    let not_in_run = || Problem::not_found(format!("there is no run {run:?} with a host {host:?}"));
    let run = RunId::new(run).map_err(|_| not_in_run())?;
    let host = HostName::new(host).map_err(|_| not_in_run())?;
    let detail = api.history().await.host_of_run(&run, &host).await?.ok_or_else(not_in_run)?;
    Ok((run, host, detail))
}

/// Of the versions that the host has published, oldest first: the last before its upgrade began, and the last since then
/// that belongs to this run.
fn versions(detail: &HostDetail, kept: &[Stored<Bytes>]) -> (Option<Versions>, Option<Versions>) {
    let last = |is_meant: &dyn Fn(DateTime<Utc>) -> bool| {
        let payload = &kept.iter().rfind(|stored| is_meant(stored.at))?.report;
        // What a host publishes besides flat values is left out, as in the inventory.
        Versions::parse_plain(payload).ok().map(|(versions, _)| versions)
    };
    let began = detail.host.started_at;
    let before = last(&|at| at <= began.unwrap_or(detail.run_started_at));
    let is_of_next_run = |at| detail.next_run_at.is_some_and(|next| at >= next);
    let after = began.and_then(|began| last(&|at| at > began && !is_of_next_run(at)));
    (before, after)
}

/// The statuses that follow from `facts`, each with the time that it lasted. A store whose history begins in the middle of
/// the run lacks facts: those that fit nothing known are passed over, and the last phase is left out unless the host's
/// `status` is known to follow. So it is for a host that was skipped, which has none.
fn phases(run_started_at: DateTime<Utc>, facts: &[(DateTime<Utc>, Fact)], status: &str) -> Vec<HostPhase> {
    let mut phases = Vec::new();
    let mut current = (HostStatus::Pending, run_started_at, None);
    for (at, fact) in facts {
        let Fact::Run(RunFact::Host { event, .. }) = fact else { continue };
        let Ok(next) = current.0.after(event) else { continue };
        if next != current.0 {
            phases.push(phase(current, Some(*at)));
            current = (next, *at, None);
        }
        if let HostEvent::CommandSent { attempt, .. } = event {
            current.2 = Some(*attempt);
        }
    }
    if !current.0.is_final() && current.0.as_str() == status {
        phases.push(phase(current, None));
    }
    phases
}

fn phase(
    (status, start, attempts): (HostStatus, DateTime<Utc>, Option<u32>),
    end: Option<DateTime<Utc>>,
) -> HostPhase {
    HostPhase {
        status: status.into(),
        start_time: Stamp(start),
        end_time: end.map(Stamp),
        seconds: end.map(|end| u64::try_from((end - start).num_seconds()).unwrap_or(0)),
        attempts,
    }
}

fn late_answer(at: DateTime<Utc>, fact: &Fact) -> Option<LateAnswer> {
    let Fact::Control(ControlFact::Ignored { reply: Some(reply), .. }) = fact else { return None };
    let result = LateResult::from(&reply.result).into();
    Some(LateAnswer { time: Stamp(at), action: reply.action.as_str().into(), result })
}
