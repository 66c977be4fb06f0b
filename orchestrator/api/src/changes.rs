//! `/v1/state/os-upgrade/config-history`: who changed the configuration, when, and what of it; from the projection.

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::body::Millis;
use os_upgrade_api_types::config::{Change, HISTORY};
use os_upgrade_api_types::query::FactList;
use os_upgrade_kernel::config::Difference;
use os_upgrade_store::{Audit, FactRow};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Api;
use super::audit::{Done, read};
use super::error::Problem;
use super::extract::Params;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().route(&HISTORY, list)
}

async fn list(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    Done::read(&api, Audit::Configuration, params.asked()).await?.answer(change)
}

/// What is read of the fact.
#[derive(Deserialize)]
struct Replaced {
    config: Option<Box<RawValue>>,
    #[serde(default)]
    difference: Vec<Difference>,
}

fn change(fact: &FactRow) -> Result<Change<'_>, Problem> {
    let replaced: Replaced = read(fact)?;
    Ok(Change {
        sequence: fact.sequence,
        place: fact.place,
        time: Millis(fact.at),
        actor: fact.actor.as_deref(),
        difference: replaced.difference,
        configuration: replaced.config,
    })
}
