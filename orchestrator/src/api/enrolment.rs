//! `/v1/state/os-upgrade/approve-hosts`, `/withdraw-host` and `/enrolment-history`: which hosts may take part in runs, as
//! operators decide it. How each stands is shown with the hosts. An extension of the specification.

#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_kernel::{EnrolmentOperation, Request};
use os_upgrade_protocol::HostName;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::audit::Done;
use super::error::Problem;
use super::extract::{Actor, Body, Params, Validate, checked_reason};
use super::listing::paged;
use super::openapi::{lists, tag, types};
use super::runs::FactItem;
use crate::store::{Audit, FactCursor};

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(approve)).routes(routes!(withdraw)).routes(routes!(history))
}

/// Hosts that are to take part.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HostsToApprove)]
#[serde(deny_unknown_fields)]
struct Approve {
    /// Their names; also of such as have not announced themselves yet.
    #[schema(value_type = Vec<types::NameText>, min_items = 1, max_items = 1000)]
    hosts: Vec<HostName>,
}

/// 204 once it is durable that they take part from the next run on, all of them or none.
#[utoipa::path(
    post, path = "/v1/state/os-upgrade/approve-hosts", operation_id = "approve-hosts", tag = tag::UPGRADES,
    summary = "Let hosts take part in runs",
    params(Validate),
    request_body = Approve,
    responses(
        (status = 204, description = "they take part, or could"),
        (status = 409, description = "there is no place for so many hosts"),
    )
)]
async fn approve(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(Approve { hosts }): Body<Approve>,
) -> Result<StatusCode, Problem> {
    let operation = EnrolmentOperation::Approve { hosts };
    api.order(Request { actor, validate: params.only(), operation }).await
}

/// A host that is to take part no more.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HostToWithdraw)]
#[serde(deny_unknown_fields)]
struct Withdraw {
    /// Its name.
    #[schema(value_type = types::NameText)]
    host: HostName,
    /// Why, for the audit.
    #[schema(value_type = types::AuditReasonText)]
    reason: String,
    /// Keep no note of it: while its announcement is there, or once it announces itself again, it waits for approval like one
    /// that has never been seen.
    #[serde(default)]
    #[schema(required = false)]
    forget: bool,
}

/// 204 once it is durable that it takes no part any more. In the active run it is not started; where it has its slot
/// already, it goes on to its end there.
#[utoipa::path(
    post, path = "/v1/state/os-upgrade/withdraw-host", operation_id = "withdraw-host", tag = tag::UPGRADES,
    summary = "Let a host take part in runs no more, also where hosts are approved by themselves",
    params(Validate),
    request_body = Withdraw,
    responses(
        (status = 204, description = "it takes no part any more, or would not"),
        (status = 404, description = "there is no such host"),
        (status = 409, description = "forgotten, it would take part again at once; or there is no place for another"),
    )
)]
async fn withdraw(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(Withdraw { host, reason, forget }): Body<Withdraw>,
) -> Result<StatusCode, Problem> {
    let operation = EnrolmentOperation::Withdraw { host, reason: checked_reason(&reason)?, forget };
    api.order(Request { actor, validate: params.only(), operation }).await
}

paged!(HistoryParameters by FactCursor, described by FactKeyText, read by "crate::api::listing::cursor");

/// 200 with who approved and withdrew which hosts, newest first.
#[utoipa::path(
    get, path = "/v1/state/os-upgrade/enrolment-history", operation_id = "list-enrolments", tag = tag::UPGRADES,
    summary = "List which hosts operators approved and withdrew, newest first",
    params(HistoryParameters),
    responses(
        (status = 200, description = "a page of it", body = lists::EnrolmentList),
    )
)]
async fn history(
    State(api): State<Api>,
    Params(params): Params<HistoryParameters>,
) -> Result<Response, Problem> {
    Done::read(&api, Audit::Enrolment, params.asked()).await?.answer(|fact| Ok(FactItem::of(fact)))
}
