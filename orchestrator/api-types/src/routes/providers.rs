//! `/v1/state/config-providers` and `/v1/state/desired`: where configuration of hosts comes from, and how far it is. Extensions of the
//! specification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::query::Validate;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{DurationText, HookEventWord, ItemStateWord, TestOutcomeWord};
use crate::word::{ItemStep, TestOutcome, Word};

const NAMES: &[PathName] =
    &[PathName::new("name", "the name of a provider", Shape::inline::<String>(), Some("app"))];

/// Every provider of the configuration, in its order.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/config-providers",
    VIEWER,
    Tag::Configuration,
    "list-config-providers",
    "List the providers of hosts' configuration, and how far it is",
)
.answers(&[Answer::json("the providers", Shape::of::<Providers<'static>>(), || {
    json!({"providers": [{
        "name": "app",
        "kind": "http",
        "url": "https://files.example/{host}/app.conf",
        "required": true,
        "hosts": 60,
        "applied": 59,
        "confirmed": 59,
        "failing": 1,
        "failing-host": "h17",
        "failure": "it refuses the request with status 403: check `url` and `credentials`",
    }], "left-over": [{"name": "net", "hosts": 2, "first": "h01"}]})
})]);

/// A provider with each host that it selects.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/config-providers/{name}",
    VIEWER,
    Tag::Configuration,
    "read-config-provider",
    "Read how far the configuration of each host is that a provider selects",
)
.names(NAMES)
.answers(&[
    Answer::json("the provider with its hosts", Shape::of::<ProviderHosts<'static>>(), || {
        json!({
            "name": "app",
            "kind": "hooks",
            "url": "https://hooks.example/",
            "required": true,
            "hosts": 1,
            "applied": 0,
            "confirmed": 1,
            "failing": 0,
            "hooks": {"events": ["ON_FLEET_JOIN", "ON_DEVICE_SPEC_UPDATE"], "batch-size": 10, "tokens": 1, "pending": 1},
            "on": [{
                "host": "h01",
                "state": "failed",
                "detail": "no such directory",
                "since": "2026-11-21T12:00:00Z",
                "confirmed-at": "2026-11-21T12:00:00Z",
                "pending-events": ["ON_DEVICE_SPEC_UPDATE"],
                "poll-interval": "30m",
            }],
        })
    }),
    Answer::new(404, "there is no such provider"),
]);

/// 204 once it is durable that the provider is to be asked; the answers follow.
pub const POLL: Route<Poll> = Route::new(
    Method::Post,
    "/v1/state/config-providers/{name}/poll",
    OPERATOR,
    Tag::Configuration,
    "poll-config-provider",
    "Ask a provider at once, about one host or all",
)
.names(NAMES)
.optional_body::<Poll>(|| json!({"host": "h01"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the provider is asked, or would be"),
    Answer::new(404, "there is no such provider"),
    Answer::new(409, "the provider selects no such host, or no key of the host is approved"),
]);

/// The instance that is asked asks the provider. Nothing follows from the answer, and nobody gets the content.
pub const TEST: Route<TestProvider> = Route::new(
    Method::Post,
    "/v1/state/config-providers/{name}/test",
    OPERATOR,
    Tag::Configuration,
    "test-config-provider",
    "Ask a provider about a host, and tell whether and what it answers",
)
.names(NAMES)
.body::<TestProvider>(|| json!({"host": "h01"}))
.answers(&[
    Answer::json(
        "what the provider says",
        Shape::of::<ProviderTest>(),
        || json!({"outcome": "content", "bytes": 412, "millis": 23}),
    ),
    Answer::new(404, "there is no such provider, or no such host"),
]);

/// 204 once it is durable that no call-back token of the provider counts any more; it is sent a new one with the next call.
pub const ROTATE_TOKEN: Route = Route::new(
    Method::Post,
    "/v1/state/config-providers/{name}/rotate-token",
    OPERATOR,
    Tag::Configuration,
    "rotate-call-back-token",
    "Let no call-back token of a provider count any more; it is sent a new one",
)
.names(NAMES)
.query::<Validate>()
.answers(&[
    Answer::new(204, "its tokens count no more, or would not"),
    Answer::new(404, "there is no such provider"),
    Answer::new(409, "the provider is not of kind `hooks`, so it has no token"),
]);

/// The hosts that are not told what they are to have, until somebody says so.
pub const WITHHELD: Route = Route::new(
    Method::Get,
    "/v1/state/desired",
    VIEWER,
    Tag::Configuration,
    "list-withheld-configuration",
    "List the hosts whose configuration is withheld, and what they would gain and lose",
)
.description(
    "After a restoration no host is told what it is to have until somebody resumes that; nor is a host that has something newer than the \
     site knows of.",
)
.answers(&[Answer::json("the hosts", Shape::of::<WithheldHosts<'static>>(), || {
    json!({"hosts": [{"host": "h01", "ahead": false, "gains": ["app", "ping.service"], "loses": ["net"]}]})
})]);

/// 204 once it is durable that hosts are told again, also if they were before.
pub const RESUME: Route<ResumeDelivery> = Route::new(
    Method::Post,
    "/v1/state/desired/resume",
    OPERATOR,
    Tag::Configuration,
    "resume-delivery",
    "Tell hosts again what they are to have, after a restoration, or one that has something newer",
)
.optional_body::<ResumeDelivery>(|| json!({"host": "h01"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the hosts are told, or would be"),
    Answer::new(404, "the host neither is to have something nor says that it has"),
    Answer::new(409, "the host tells of the last epoch that there can be"),
]);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Providers<'a> {
    pub providers: Vec<Provider<'a>>,
    /// What hosts have of providers that give it to them no more, by name, the first 32; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub left_over: Vec<LeftOver<'a>>,
}

/// What hosts have, or are to have, of a provider that is gone, no longer selects them, or of which they were withdrawn. Each host says what
/// becomes of it there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LeftOverConfiguration)]
pub struct LeftOver<'a> {
    pub name: Cow<'a, str>,
    /// On how many hosts.
    pub hosts: usize,
    /// The first one by name.
    pub first: Cow<'a, str>,
}

/// A provider of hosts' configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigProviderState)]
#[serde(rename_all = "kebab-case")]
pub struct Provider<'a> {
    pub name: Cow<'a, str>,
    /// How it is asked: `http`, by a GET for each host, or `hooks`, by a POST of events.
    #[serde(default)]
    #[schema(required)]
    pub kind: Cow<'a, str>,
    /// Where the configuration of a host is; `{host}` stands for its name.
    pub url: Cow<'a, str>,
    /// Whether a host is prepared only once it has what the provider says.
    pub required: bool,
    /// How many hosts take part that it selects.
    pub hosts: usize,
    /// How many of them have what they are to have.
    pub applied: usize,
    /// About how many it has said something to this leader; absent on other instances, which do not ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<usize>,
    /// About how many asking it has failed since; absent on other instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<usize>,
    /// The first of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_host: Option<Cow<'a, str>>,
    /// How asking about that one failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Since when it fails for every host; absent if it answers about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<Stamp>,
    /// How its hooks are; absent if it is of another kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<ProviderHooks<'a>>,
}

/// How the hooks of a provider are.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigProviderHooks)]
#[serde(rename_all = "kebab-case")]
pub struct ProviderHooks<'a> {
    /// The events of which it is told, in the order of delivery.
    #[schema(value_type = Vec<HookEventWord>)]
    pub events: Vec<Cow<'a, str>>,
    /// About how many hosts one call may be.
    pub batch_size: u32,
    /// How many call-back tokens count: the last 16, of each leader one.
    pub tokens: usize,
    /// How many events it is still to be told of, those of all hosts together.
    pub pending: usize,
}

/// A provider with each host that it selects.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigProviderHosts)]
#[serde(rename_all = "kebab-case")]
pub struct ProviderHosts<'a> {
    #[serde(flatten)]
    pub provider: Provider<'a>,
    pub on: Vec<ProviderHost<'a>>,
}

/// About which host a provider is tested.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestProvider {
    pub host: String,
}

/// What a provider says about a host.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProviderTest {
    #[schema(value_type = TestOutcomeWord)]
    pub outcome: Word<TestOutcome>,
    /// How many bytes the content has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// A host that a provider selects, and how far what it gave is there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigProviderHost)]
#[serde(rename_all = "kebab-case")]
pub struct ProviderHost<'a> {
    pub host: Cow<'a, str>,
    #[serde(flatten)]
    pub progress: ConfigurationProgress,
    /// The events of the host of which a provider of kind `hooks` is still to be told, in the order of delivery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<HookEventWord>, required = false)]
    pub pending_events: Vec<Cow<'a, str>>,
    /// How often the provider wants to be asked about the host; absent if it has not said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DurationText>)]
    pub poll_interval: Option<Cow<'a, str>>,
}

/// A provider that selects a host, or did, and how far what it gave is there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostConfiguration<'a> {
    pub provider: Cow<'a, str>,
    /// Whether the provider gives it no more, because it is gone or no longer selects the host, or the host takes no part; `detail` says what
    /// becomes of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub left_over: bool,
    #[serde(flatten)]
    pub progress: ConfigurationProgress,
}

/// How far what a provider gave for a host is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ConfigurationProgress {
    #[schema(value_type = ItemStateWord)]
    pub state: Word<ItemStep>,
    /// Why it is not applied, as the host's worker says, how asking the provider failed last, or what becomes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Since when the host is to have what it is to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// When the provider last said something about it, to this leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Stamp>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WithheldHosts<'a> {
    pub hosts: Vec<WithheldHost<'a>>,
}

/// A host that is not told what it is to have.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WithheldHost<'a> {
    pub host: Cow<'a, str>,
    /// Whether it has something newer than the site knows of; it must be named to be told again. Otherwise the site was restored.
    pub ahead: bool,
    /// The configurations that it would get and has not, or in another version, and the units that it would get and has not.
    pub gains: Vec<Cow<'a, str>>,
    /// The configurations that would be revoked, and the units that would be stopped.
    pub loses: Vec<Cow<'a, str>>,
}

/// About which host a provider is asked.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = PollProvider)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// The host; absent for all that it selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Which host is told again.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeDelivery {
    /// The host; absent for all, but for those that have something newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}
