//! `/v1/state/os-upgrade/config-history`: who changed what in the configuration, and when; read from the projection.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::body::{Millis, TwoSided};
use os_upgrade_api_types::query::FactList;
use os_upgrade_api_types::routes::config::{Change, HISTORY};
use os_upgrade_kernel::Difference;
use os_upgrade_store::{Audit, FactRow};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::resources::audit::{AuditResult, read};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&HISTORY, list)
}

async fn list(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    AuditResult::read(&api, Audit::Configuration, params.into_query()).await?.answer(change)
}

/// The fields that are read from the fact.
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
        actor: fact.actor.as_deref().map(Cow::from),
        difference: replaced.difference,
        configuration: replaced.config.map(TwoSided::Sent),
    })
}
