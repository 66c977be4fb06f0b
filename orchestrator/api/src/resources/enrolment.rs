//! `/v1/state/os-upgrade/approve-hosts`, `/withdraw-host`, `/remove-host`, `/defer-host`, `/end-deferral`, `/uncordon-host` and `/enrolment-history`: operators
//! decide which hosts may take part in runs, and that the node of a failed one is used again. The enrolment of each host is shown
//! with the hosts. An extension of the specification.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_api_types::body::HostWithReason;
use os_upgrade_api_types::query::{FactList, Validate};
use os_upgrade_api_types::routes::hosts::{
    APPROVE, DEFER, DeferralToEnd, END_DEFERRAL, HISTORY, HostToDefer, HostsToApprove, REMOVE, UNCORDON,
    WITHDRAW,
};
use os_upgrade_kernel::{EnrolmentOperation, NodeOperation, Request};
use os_upgrade_store::Audit;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Params, checked_reason};
use crate::resources::audit::AuditResult;
use crate::resources::runs::fact;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&APPROVE, approve)
        .route(&WITHDRAW, withdraw)
        .route(&REMOVE, remove)
        .route(&DEFER, defer)
        .route(&END_DEFERRAL, end_deferral)
        .route(&UNCORDON, uncordon)
        .route(&HISTORY, history)
}

async fn approve(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostsToApprove { hosts, keys, machines }): Body<HostsToApprove>,
) -> Result<StatusCode, Problem> {
    let operation = EnrolmentOperation::Approve { hosts, keys, machines };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn withdraw(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostWithReason { host, reason }): Body<HostWithReason>,
) -> Result<StatusCode, Problem> {
    let operation = EnrolmentOperation::Withdraw { host, reason: checked_reason(&reason)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn remove(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostWithReason { host, reason }): Body<HostWithReason>,
) -> Result<StatusCode, Problem> {
    let operation = EnrolmentOperation::Remove { host, reason: checked_reason(&reason)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn defer(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostToDefer { host, reason, until }): Body<HostToDefer>,
) -> Result<StatusCode, Problem> {
    let (reason, until) = (checked_reason(&reason)?, until.map(|until| until.0));
    let operation = EnrolmentOperation::Defer { host, reason, until };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn end_deferral(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(DeferralToEnd { host, reason }): Body<DeferralToEnd>,
) -> Result<StatusCode, Problem> {
    let reason = reason.as_deref().map(checked_reason).transpose()?;
    let operation = EnrolmentOperation::EndDeferral { host, reason };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn uncordon(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostWithReason { host, reason }): Body<HostWithReason>,
) -> Result<StatusCode, Problem> {
    let operation = NodeOperation::Uncordon { host, reason: checked_reason(&reason)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn history(State(api): State<Api>, Params(params): Params<FactList>) -> Result<Response, Problem> {
    AuditResult::read(&api, Audit::Enrolment, params.into_query()).await?.answer(|row| Ok(fact(row)))
}
