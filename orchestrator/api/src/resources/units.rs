//! `/v1/state/os-upgrade/units` and `/v1/state/os-upgrade/machines`: which units run where, and why one does not. The handlers that change
//! units are those of fleet's dialects.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::Utc;
use os_upgrade_api_types::query::{FactList, NoParameters};
use os_upgrade_api_types::routes::units::{
    HISTORY, LIST, MACHINES, Machines, PLAN, PlanUnit, READ, Unit, UnitPlan, Units,
};
use os_upgrade_console::describe;
use os_upgrade_kernel::{Fact, UnitOperation, UnitRefusal, dry_run};
use os_upgrade_scheduler::UnitName;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_store::{Audit, FactRow};
use serde_json::Value;

use crate::bodies::units;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Body, Name, Params};
use crate::http::reply;
use crate::resources::audit::AuditResult;
use crate::resources::runs::fact;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&LIST, list)
        .route(&READ, read)
        .route(&PLAN, plan)
        .route(&HISTORY, history)
        .route(&MACHINES, machines)
}

async fn list(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let size = units::size(&published);
    let write = move || {
        let units = published.state.units.existing();
        let units = units.map(|(name, unit)| units::status(&published, name, unit)).collect();
        serde_json::to_vec(&Units { units })
    };
    api.render(size, write).await
}

async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let name = find(&published, &name)?;
    let size = units::size(&published);
    let write = move || {
        let state = &published.state;
        let shown = state.units.unit(&name).map(|unit| Unit {
            status: units::status(&published, &name, unit),
            contents: unit.file.text().into(),
            hash: unit.file.file_hash().to_string(),
            not_on: units::misfits(state, &published.view, &name),
            ignored: units::ignored(&unit.file),
        });
        serde_json::to_vec(&shown)
    };
    api.render(size, write).await
}

async fn plan(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
    Body(PlanUnit { contents, desired }): Body<PlanUnit>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let name = unit_name(&name)?;
    if contents.is_none() {
        find(&published, name.as_str())?;
    }
    let operation = UnitOperation::Put { name: name.clone(), contents, desired, replaces: false };
    // Placing looks at every unit and every machine.
    api.apart(move || planned(&published, &name, &operation)).await?.map(reply::json_bytes)
}

/// What would follow from `operation` on the unit `name`, in JSON.
fn planned(
    published: &PublishedState,
    name: &UnitName,
    operation: &UnitOperation,
) -> Result<Vec<u8>, Problem> {
    let internal = |error: &dyn std::fmt::Display| Problem::internal(error.to_string());
    let (state, view, now) = (&published.state, &published.view, Utc::now());
    let facts = dry_run(state, view, operation, now).map_err(refused)?;
    let mut after = state.clone();
    for fact in &facts {
        after.apply(now, &Fact::Unit(fact.clone())).map_err(|error| internal(&error))?;
    }
    let plan = UnitPlan {
        changes: facts.iter().filter_map(units::change).collect(),
        not_on: units::misfits(&after, view, name),
        ignored: after.units.unit(name).map(|unit| units::ignored(&unit.file)).unwrap_or_default(),
    };
    serde_json::to_vec(&plan).map_err(|error| internal(&error))
}

/// The answer to a change that would be refused, with the status that the change has in fleet's dialects where there is no room.
fn refused(refusal: UnitRefusal) -> Problem {
    let is_full = match refusal {
        UnitRefusal::TooManyUnits { .. } | UnitRefusal::TooManyBytes { .. } => true,
        UnitRefusal::UnknownUnit { .. }
        | UnitRefusal::NoContents { .. }
        | UnitRefusal::OtherContents { .. }
        | UnitRefusal::NoState { .. }
        | UnitRefusal::ActivatesTemplate { .. }
        | UnitRefusal::BadFile { .. }
        | UnitRefusal::BadRequirements { .. } => false,
    };
    let problem = Problem::from(refusal);
    if is_full { problem.with_status(StatusCode::PAYLOAD_TOO_LARGE) } else { problem }
}

async fn history(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    let mut found = AuditResult::read(&api, Audit::Units, params.into_query()).await?;
    found.rows().iter_mut().for_each(leave_out_contents);
    found.answer(|row| Ok(fact(row)))
}

/// Empties the contents of a unit that was submitted: with them a page could have 32 MiB.
fn leave_out_contents(row: &mut FactRow) {
    let Ok(mut fact) = serde_json::from_str::<Value>(row.fact.get()) else { return };
    let Some(contents) = fact.get_mut("contents") else { return };
    *contents = Value::String(String::new());
    if let Ok(shown) = serde_json::value::to_raw_value(&fact) {
        row.fact = shown;
    }
}

async fn machines(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let size = units::size(&published);
    api.render(size, move || serde_json::to_vec(&Machines { machines: units::machines(&published) })).await
}

/// The name of a unit that there is.
fn find(published: &PublishedState, name: &str) -> Result<UnitName, Problem> {
    let name = unit_name(name)?;
    if published.state.units.unit(&name).is_none() {
        return Err(Problem::not_found(describe(&UnitRefusal::UnknownUnit { unit: name }).to_string()));
    }
    Ok(name)
}

fn unit_name(name: &str) -> Result<UnitName, Problem> {
    UnitName::new(name).map_err(|error| Problem::bad_request(error.to_string()))
}
