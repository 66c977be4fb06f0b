//! `/v1/state/strongbox/history`: who stored and removed which secrets, and when; read from the projection. The sealed
//! values are not shown.

use axum::extract::State;
use axum::response::Response;
use os_upgrade_api_types::body::Millis;
use os_upgrade_api_types::query::FactList;
use os_upgrade_api_types::routes::strongbox::{HISTORY, StrongboxChange};
use os_upgrade_api_types::word::Word;
use os_upgrade_store::{Audit, FactRow};
use serde::Deserialize;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::Params;
use crate::resources::audit::{AuditResult, read};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&HISTORY, list)
}

async fn list(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    AuditResult::read(&api, Audit::Strongbox, params.into_query()).await?.answer(change)
}

/// The fields that are read from the fact.
#[derive(Deserialize)]
struct About {
    name: Option<String>,
}

fn change(fact: &FactRow) -> Result<StrongboxChange<'_>, Problem> {
    let About { name } = read(fact)?;
    Ok(StrongboxChange {
        sequence: fact.sequence,
        place: fact.place,
        time: Millis(fact.at),
        kind: Word::read(&fact.name),
        actor: fact.actor.as_deref().map(Into::into),
        name,
    })
}
