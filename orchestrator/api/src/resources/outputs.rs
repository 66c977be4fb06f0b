//! `/v1/state/os-upgrade/runs/{id}/hosts/{hostname}/output`: what a host's commands printed in a run, as far as that is kept.

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::outputs::{OutputOfCommand, Outputs, READ};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_site::outputs::StoredOutput;
use serde_json::json;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Names;
use crate::http::reply;
use crate::routes::Routes;

/// How many outputs of a host are kept.
const KEPT: usize = 3;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&READ, read)
}

async fn read(State(api): State<Api>, Names([run, host]): Names<2>) -> Result<Response, Problem> {
    let no_run = || Problem::not_found(format!("there is no run {run:?}"));
    let not_in_run = || Problem::not_found(format!("the host {host:?} is not in run {run}"));
    let id = RunId::new(&run).map_err(|_| no_run())?;
    let detail = api.history().await.run(&id, 1, None).await?.ok_or_else(no_run)?;
    let name = HostName::new(&host).map_err(|_| not_in_run())?;
    if !detail.hosts.iter().any(|row| row.host == name.as_str()) {
        return Err(not_in_run());
    }
    let kept = api.options.outputs.of_host(&name).await;
    let kept = kept.map_err(|error| Problem::unavailable(format!("the output cannot be read: {error}")))?;
    let items: Vec<OutputOfCommand> =
        kept.iter().filter(|stored| stored.output.command.run == id).map(shown).collect();
    if items.is_empty() {
        return Err(absent(&id, &name, &kept));
    }
    reply::json(&Outputs { items })
}

fn shown(stored: &StoredOutput) -> OutputOfCommand {
    let command = &stored.output.command;
    OutputOfCommand {
        action: command.action.as_str(),
        attempt: command.attempt,
        time: Stamp(stored.stored_at),
        text: stored.output.tail.to_string(),
    }
}

/// Why there is nothing of this run. Later runs have later ids.
fn absent(run: &RunId, host: &HostName, kept: &[StoredOutput]) -> Problem {
    let runs: Vec<&str> = kept.iter().map(|stored| stored.output.command.run.as_str()).collect();
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
