//! `/v1/state/strongbox/history`: who had which secrets kept and removed, and when; from the projection. What was sealed
//! is not shown.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::audit::{Done, read};
use crate::api::error::Problem;
use crate::api::extract::Params;
use crate::api::listing::{self, paged};
use crate::api::openapi::types::{SecretNameText, StrongboxWord};
use crate::api::openapi::{lists, tag};
use crate::api::reply;
use crate::api::runs::Millis;
use crate::store::{Audit, FactCursor, FactRow};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(list))
}

paged!(ListParameters by FactCursor, described by FactKeyText, read by "listing::cursor");

/// 200 with a page, newest first.
#[utoipa::path(
    get, path = "/v1/state/strongbox/history", operation_id = "list-strongbox-changes", tag = tag::ORCHESTRATOR,
    summary = "List who had which secrets kept and removed, newest first",
    params(ListParameters),
    responses(
        (status = 200, description = "a page of it", body = lists::StrongboxHistory),
    )
)]
async fn list(State(api): State<Api>, Params(params): Params<ListParameters>) -> Result<Response, Problem> {
    Done::read(&api, Audit::Strongbox, params.asked()).await?.answer(StrongboxItem::of)
}

/// What was done about secrets.
#[derive(Serialize, ToSchema)]
#[schema(as = StrongboxChange)]
pub(in crate::api) struct StrongboxItem<'a> {
    /// Of its record in the journal.
    sequence: u64,
    /// In that record, from 0.
    place: u64,
    #[schema(value_type = reply::Stamp)]
    time: Millis,
    /// `strongbox-made` where the first secret was sealed with a key, in the same record as that.
    #[serde(rename = "type")]
    #[schema(value_type = StrongboxWord)]
    kind: &'a str,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// Of the secret, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SecretNameText>)]
    name: Option<String>,
}

/// What is read of the fact.
#[derive(Deserialize)]
struct About {
    name: Option<String>,
}

impl<'a> StrongboxItem<'a> {
    fn of(fact: &'a FactRow) -> Result<Self, Problem> {
        let About { name } = read(fact)?;
        Ok(Self {
            sequence: fact.sequence,
            place: fact.place,
            time: Millis(fact.at),
            kind: &fact.name,
            actor: fact.actor.as_deref(),
            name,
        })
    }
}
