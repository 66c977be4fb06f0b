//! `/v1/state/os-upgrade/config-history`: who changed the configuration, when, and what of it; from the projection.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use axum::extract::State;
use axum::response::Response;
use os_upgrade_kernel::config::Difference;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::audit::{Done, read};
use super::error::Problem;
use super::extract::Params;
use super::listing::{self, paged};
use super::openapi::types;
use super::openapi::{lists, tag};
use super::reply;
use super::runs::Millis;
use crate::store::{Audit, FactCursor, FactRow};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list))
}

paged!(ListParameters by FactCursor, described by FactKeyText, read by "listing::cursor");

/// 200 with a page, newest first.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/config-history", operation_id = "list-configuration-changes",
    tag = tag::CONFIGURATION,
    summary = "List the changes of the configuration, newest first",
    params(ListParameters),
    responses(
        (status = 200, description = "a page of them", body = lists::ChangeList),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    Done::read(&api, Audit::Configuration, params.asked()).await?.answer(ChangeItem::of)
}

/// A change of the configuration.
#[derive(Serialize, ToSchema)]
#[schema(as = Change)]
pub(super) struct ChangeItem<'a> {
    /// Of its record in the journal.
    sequence: u64,
    /// In that record, from 0.
    place: u64,
    #[schema(value_type = reply::Stamp)]
    time: Millis,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// What it changed.
    #[schema(value_type = Vec<types::DifferenceBody>)]
    difference: Vec<Difference>,
    /// The whole from then on; absent where it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::ConfigBody>)]
    configuration: Option<Box<RawValue>>,
}

/// What is read of the fact.
#[derive(Deserialize)]
struct Replaced {
    config: Option<Box<RawValue>>,
    #[serde(default)]
    difference: Vec<Difference>,
}

impl<'a> ChangeItem<'a> {
    fn of(fact: &'a FactRow) -> Result<Self, Problem> {
        let replaced: Replaced = read(fact)?;
        Ok(Self {
            sequence: fact.sequence,
            place: fact.place,
            time: Millis(fact.at),
            actor: fact.actor.as_deref(),
            difference: replaced.difference,
            configuration: replaced.config,
        })
    }
}
