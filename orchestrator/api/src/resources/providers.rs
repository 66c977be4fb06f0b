//! `/v1/state/config-providers` and `/v1/state/desired`: where configuration of hosts comes from, and how far it is.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::query::{NoParameters, Validate};
use os_upgrade_api_types::routes::providers::{
    LIST, POLL, Poll, Provider, ProviderHooks, ProviderHost, ProviderHosts, ProviderTest, Providers, READ,
    RESUME, ROTATE_TOKEN, ResumeDelivery, TEST, TestProvider, WITHHELD, WithheldHost, WithheldHosts,
};
use os_upgrade_api_types::word::{TestOutcome, Word};
use os_upgrade_calendar::Duration;
use os_upgrade_console::describe;
use os_upgrade_kernel::{
    ConfigProvider, DesiredOperation, DesiredRefusal, ItemState, ProviderKind, Request, Resumption,
    Withholding,
};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::one_line;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_site::provider_tests::{self, Tested};
use os_upgrade_site::published_state::PublishedState;

use crate::bodies::configuration;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Name, OptionalBody, Params};
use crate::http::reply;
use crate::resources::hosts;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&LIST, list)
        .route(&READ, read)
        .route(&POLL, poll)
        .route(&TEST, test)
        .route(&ROTATE_TOKEN, rotate_token)
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
    reply::json(&Providers { providers, left_over: configuration::left_over(&published) })
}

async fn read(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let provider = find(&published, &name)?;
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

async fn test(
    State(api): State<Api>,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
    Body(TestProvider { host }): Body<TestProvider>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let provider = find(&published, &name)?;
    let known = HostName::new(&host).ok().filter(|host| hosts::is_known(&published, host));
    let host = known.ok_or_else(|| Problem::not_found(format!("there is no host {host:?}")))?;
    let tested = api.options.provider_tests.test(provider, &host).await;
    let Tested { outcome, took } = tested.ok_or_else(|| {
        Problem::unavailable(
            "this instance asks as many providers as it may; try again in a moment".to_owned(),
        )
    })?;
    let (outcome, bytes, failure) = match outcome {
        provider_tests::TestOutcome::Content { bytes } => (TestOutcome::Content, Some(bytes as u64), None),
        provider_tests::TestOutcome::Nothing => (TestOutcome::Nothing, None, None),
        provider_tests::TestOutcome::Unchanged => (TestOutcome::Unchanged, None, None),
        provider_tests::TestOutcome::Failed(failure) => {
            (TestOutcome::Failed, None, Some(describe(&failure).to_string()))
        }
    };
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    reply::json(&ProviderTest { outcome: Word::Known(outcome), bytes, failure, millis })
}

async fn rotate_token(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(params): Params<Validate>,
) -> Result<StatusCode, Problem> {
    let operation = DesiredOperation::RotateToken { provider: provider_name(&name)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn withheld(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let (state, view) = (&published.state, &published.view);
    let hosts = state.withheld_hosts(view).map(|(host, why)| {
        let Resumption { gains, loses } = state.resumption(view, host);
        let shown = |name| one_line(name, configuration::ERROR_CHARS_MAX).into();
        WithheldHost {
            host: host.as_str().into(),
            ahead: why == Withholding::Ahead,
            gains: gains.into_iter().map(Into::into).collect(),
            loses: loses.into_iter().map(shown).collect(),
        }
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

/// The provider `name`.
fn find<'a>(published: &'a PublishedState, name: &str) -> Result<&'a ConfigProvider, Problem> {
    let name = provider_name(name)?;
    let provider = published.state.config.as_ref().and_then(|config| config.provider(&name));
    provider.ok_or_else(|| {
        let unknown = DesiredRefusal::UnknownProvider { provider: name.clone() };
        Problem::not_found(describe(&unknown).to_string())
    })
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
pub(crate) fn selected<'a>(
    published: &'a PublishedState,
    provider: &'a ConfigProvider,
) -> impl Iterator<Item = &'a HostName> {
    let hosts = published.view.hosts.keys();
    hosts.filter(|host| published.state.enrolled(host).takes_part() && provider.selects(host))
}

fn on_host<'a>(
    published: &'a PublishedState,
    provider: &ConfigProvider,
    host: &'a HostName,
) -> ProviderHost<'a> {
    let device = published.state.hook_device(&provider.name, host);
    let pending = device.into_iter().flat_map(|device| device.pending.keys());
    let poll_interval = device.and_then(|device| device.poll_interval).map(Duration::from_secs);
    ProviderHost {
        host: host.as_str().into(),
        progress: configuration::progress(published, provider, host),
        pending_events: pending.map(|event| event.as_str().into()).collect(),
        poll_interval: poll_interval.map(|interval| interval.to_string().into()),
    }
}

fn hooks(published: &PublishedState, provider: &ConfigProvider) -> ProviderHooks<'static> {
    let known = published.state.desired.hooks.get(&provider.name);
    let heard = HookEvent::ALL.into_iter().filter(|event| provider.hears(*event));
    let devices = known.into_iter().flat_map(|known| known.devices.values());
    ProviderHooks {
        events: heard.map(|event| event.as_str().into()).collect(),
        batch_size: provider.batch_size,
        tokens: known.map_or(0, |known| known.tokens.len()),
        pending: devices.map(|device| device.pending.len()).sum(),
    }
}

const fn kind(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Http => "http",
        ProviderKind::Hooks => "hooks",
    }
}

fn summary<'a>(published: &'a PublishedState, provider: &'a ConfigProvider) -> Provider<'a> {
    let (state, view) = (&published.state, &published.view);
    let (mut hosts, mut applied, mut confirmed, mut failing) = (0, 0, 0, 0);
    let mut failure = None;
    for host in selected(published, provider) {
        hosts += 1;
        let is_applied = state.item_state(view, host, &provider.name) == ItemState::Applied;
        applied += usize::from(is_applied);
        let Some(poll) = configuration::last_poll(published, provider, host) else { continue };
        confirmed += usize::from(poll.confirmed_at.is_some());
        if let Some(how) = &poll.failure {
            failing += 1;
            failure.get_or_insert((host, how));
        }
    }
    Provider {
        name: provider.name.as_str().into(),
        kind: kind(provider.kind).into(),
        url: provider.url.as_str().into(),
        required: provider.required,
        hosts,
        applied,
        confirmed: view.polls.as_ref().map(|_| confirmed),
        failing: view.polls.as_ref().map(|_| failing),
        failing_host: failure.map(|(host, _)| host.as_str().into()),
        failure: failure.map(|(_, how)| describe(how).to_string()),
        failed_since: state.desired.failed.get(&provider.name).map(|failed| Stamp(failed.since)),
        hooks: provider.is_hooks().then(|| hooks(published, provider)),
    }
}
