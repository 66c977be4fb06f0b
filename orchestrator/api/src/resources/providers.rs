//! `/v1/state/config-providers` and `/v1/state/desired`: where configuration of hosts comes from, and how far it is.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::query::{NoParameters, Validate};
use os_upgrade_api_types::routes::providers::{
    LIST, POLL, Poll, Provider, ProviderHost, ProviderHosts, Providers, READ, RESUME, ResumeDelivery,
    WITHHELD, WithheldHost, WithheldHosts,
};
use os_upgrade_api_types::word::{ItemStep, Word};
use os_upgrade_console::describe;
use os_upgrade_kernel::{self as kernel, ConfigProvider, DesiredOperation, ItemState, Request};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::one_line;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_site::published_state::PublishedState;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Name, OptionalBody, Params};
use crate::http::reply;
use crate::routes::Routes;

/// The longest error of a worker that is shown, in characters.
const ERROR_CHARS_MAX: usize = 300;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&LIST, list)
        .route(&READ, read)
        .route(&POLL, poll)
        .route(&WITHHELD, withheld)
        .route(&RESUME, resume)
}

async fn list(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let providers = published.state.config.iter().flat_map(|config| &config.config_providers);
    let providers = providers.map(|provider| summary(&published, provider)).collect();
    reply::json(&Providers { providers })
}

async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let name = provider_name(&name)?;
    let provider = published.state.config.as_ref().and_then(|config| config.provider(&name));
    let provider = provider.ok_or_else(|| Problem::not_found(format!("there is no provider {name}")))?;
    let on = selected(&published, provider).map(|host| on_host(&published, provider, host)).collect();
    reply::json(&ProviderHosts { provider: summary(&published, provider), on })
}

async fn poll(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<Poll>,
) -> Result<StatusCode, Problem> {
    let host = host_of(body.unwrap_or_default().host.as_deref())?;
    let operation = DesiredOperation::Poll { provider: provider_name(&name)?, host };
    api.change(Request { actor, validate: params.is_validation(), operation }).await
}

async fn withheld(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let (state, view) = (&published.state, &published.view);
    let hosts = state.withheld_hosts(view).into_iter().map(|withheld| WithheldHost {
        host: withheld.host.as_str().into(),
        ahead: withheld.is_ahead,
        gains: withheld.gains.into_iter().map(|name| name.as_str().into()).collect(),
        loses: withheld.loses.into_iter().map(|name| one_line(name, ERROR_CHARS_MAX).into()).collect(),
    });
    reply::json(&WithheldHosts { hosts: hosts.collect() })
}

async fn resume(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<ResumeDelivery>,
) -> Result<StatusCode, Problem> {
    let host = host_of(body.unwrap_or_default().host.as_deref())?;
    let operation = DesiredOperation::Resume { host };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

fn provider_name(text: &str) -> Result<ProviderName, Problem> {
    ProviderName::new(text).map_err(|error| Problem::bad_request(error.to_string()))
}

fn host_of(name: Option<&str>) -> Result<Option<HostName>, Problem> {
    let parse =
        |name: &str| HostName::new(name).map_err(|error| Problem::bad_request(format!("host: {error}")));
    name.map(parse).transpose()
}

/// The hosts that take part and are selected by `provider`.
fn selected<'a>(
    published: &'a PublishedState,
    provider: &'a ConfigProvider,
) -> impl Iterator<Item = &'a HostName> {
    let hosts = published.view.hosts.keys();
    hosts.filter(|host| published.state.enrolled(host).takes_part() && provider.selects(host))
}

fn last_poll<'a>(
    published: &'a PublishedState,
    provider: &ConfigProvider,
    host: &HostName,
) -> Option<&'a kernel::Poll> {
    published.view.polls.as_ref()?.get(&provider.name)?.get(host)
}

fn summary<'a>(published: &'a PublishedState, provider: &'a ConfigProvider) -> Provider<'a> {
    let (state, view) = (&published.state, &published.view);
    let (mut hosts, mut applied, mut confirmed, mut failing) = (0, 0, 0, 0);
    let mut failure = None;
    for host in selected(published, provider) {
        hosts += 1;
        let is_applied = state.item_state(view, host, &provider.name) == ItemState::Applied;
        applied += usize::from(is_applied);
        let Some(poll) = last_poll(published, provider, host) else { continue };
        confirmed += usize::from(poll.confirmed_at.is_some());
        if let Some(how) = &poll.failure {
            failing += 1;
            failure.get_or_insert((host, how));
        }
    }
    Provider {
        name: provider.name.as_str().into(),
        url: provider.url.as_str().into(),
        required: provider.required,
        hosts,
        applied,
        confirmed: view.polls.as_ref().map(|_| confirmed),
        failing: view.polls.as_ref().map(|_| failing),
        failing_host: failure.map(|(host, _)| host.as_str().into()),
        failure: failure.map(|(_, how)| describe(how).to_string()),
    }
}

fn on_host<'a>(
    published: &'a PublishedState,
    provider: &ConfigProvider,
    host: &'a HostName,
) -> ProviderHost<'a> {
    let (state, view) = (&published.state, &published.view);
    let poll = last_poll(published, provider, host);
    let item = state.desired.item(host, &provider.name);
    let has_key = state.has_approved_key(view, host);
    let (step, error) = match state.item_state(view, host, &provider.name) {
        ItemState::Failed { error } => (ItemStep::Failed, Some(one_line(error, ERROR_CHARS_MAX))),
        ItemState::Applied => (ItemStep::Applied, None),
        ItemState::Withheld => (ItemStep::Withheld, None),
        ItemState::Nothing | ItemState::Pending | ItemState::Revoking if !has_key => (ItemStep::NoKey, None),
        ItemState::Nothing => (ItemStep::Nothing, None),
        ItemState::Pending => (ItemStep::Pending, None),
        ItemState::Revoking => (ItemStep::Revoking, None),
    };
    let failure = poll.and_then(|poll| poll.failure.as_ref());
    ProviderHost {
        host: host.as_str().into(),
        state: Word::Known(step),
        detail: error.or_else(|| failure.map(|how| describe(how).to_string())),
        since: item.map(|item| Stamp(item.since)),
        confirmed_at: poll.and_then(|poll| poll.confirmed_at).map(Stamp),
    }
}
