//! `/v1/state/os-upgrade/runs/{id}/hosts/{hostname}/output`: what a host's commands printed in a run, as far as that is kept.

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::outputs::{OutputOfCommand, Outputs, READ};
use os_upgrade_protocol::{HostName, Output, RunId};
use os_upgrade_site::host_reports::Stored;
use serde_json::json;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Names;
use crate::http::reply;
use crate::resources::run_hosts;
use crate::routes::Routes;

/// How many outputs of a host are kept.
const KEPT: usize = 3;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&READ, read)
}

async fn read(State(api): State<Api>, Names([run, host]): Names<2>) -> Result<Response, Problem> {
    let (id, name, _) = run_hosts::detail(&api, &run, &host).await?;
    let kept = api.options.reports.outputs(&name).await;
    let kept = kept.map_err(|error| Problem::unavailable(format!("the output cannot be read: {error}")))?;
    let items: Vec<OutputOfCommand> =
        kept.iter().filter(|stored| stored.report.command.run == id).map(shown).collect();
    if items.is_empty() {
        return Err(absent(&id, &name, &kept));
    }
    reply::json(&Outputs { items })
}

fn shown(stored: &Stored<Output>) -> OutputOfCommand {
    let command = &stored.report.command;
    OutputOfCommand {
        action: command.action.as_str().into(),
        attempt: command.attempt,
        time: Stamp(stored.at),
        text: stored.report.tail.to_string(),
    }
}

/// Why there is nothing of this run. Later runs have later ids.
fn absent(run: &RunId, host: &HostName, kept: &[Stored<Output>]) -> Problem {
    let runs: Vec<&str> = kept.iter().map(|stored| stored.report.command.run.as_str()).collect();
    if kept.len() >= KEPT && runs.iter().all(|kept| *kept > run.as_str()) {
        let message = format!("newer output of {host} has taken the place of that of run {run}");
        return Problem::not_found(message).with_info(json!({ "kind": "displaced", "kept-of-runs": runs }));
    }
    let message = format!(
        "no output of {host} in run {run} is kept: its commands printed nothing, its worker sends none or may not send it, or \
         it is older than 30 days"
    );
    Problem::not_found(message).with_info(json!({ "kind": "not-kept", "kept-of-runs": runs }))
}
