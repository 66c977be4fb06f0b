//! `/v1/config/os-upgrade` and `/v1/state/os-upgrade/config-history`: the configuration that operators write, and its
//! history.
//!
//! The kernel defines the configuration; this file describes it.

mod provider;

use std::borrow::Cow;

use os_upgrade_kernel::Config;
use os_upgrade_kernel::config as kernel;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

pub use self::provider::{ConfigProvider, Selector};
use crate::body::{Kind, Millis, Stamp, TwoSided};
use crate::headers;
use crate::lists::list;
use crate::query::{FactList, Parameters, True, Validate};
use crate::route::{ADMIN, Answer, Content, Method, Route, Shape, Tag, VIEWER};
use crate::text::{
    DateText, DaysText, DurationText, FactKeyText, NameText, PatchWord, PercentText, TagsText, TimeText,
    TimeoutText, UnreachableWord, WarningWord, WindowDurationText,
};

const PATH: &str = "/v1/config/os-upgrade";

/// The configuration.
pub const READ: Route = Route::new(
    Method::Get,
    PATH,
    VIEWER,
    Tag::Configuration,
    "read-configuration",
    "Retrieve the upgrade configuration",
)
.headers::<TagsOfReads>()
.query::<ReadParameters>()
.answers(&[
    Answer::json("the configuration", Shape::of::<ConfigBody>(), sample)
        .with_headers(&[("ETag", Some("identifies this configuration in this form"))]),
    Answer::new(304, "the client has the current configuration"),
    Answer::new(404, "there is no configuration"),
    Answer::new(412, "the configuration has none of the tags in If-Match"),
]);

/// 201 when there was none, 204 when there was.
pub const REPLACE: Route<Config> = Route::new(
    Method::Put,
    PATH,
    ADMIN,
    Tag::Configuration,
    "replace-configuration",
    "Replace or create the upgrade configuration",
)
.body_described::<Config, ConfigBody>(|| {
    sample_with(json!({"rollout": rollout(json!({"max-concurrent": 2, "max-failures": 1}))}))
})
.description(
    "A window that is open now starts a run at once, unless it has had its run or its cancel. An active run continues \
        with its old configuration: cancel it to stop it.",
)
.headers::<TagsOfWrites>()
.query::<Validate>()
.answers(&[
    VALIDATED,
    Answer::new(201, "the configuration was created").with_headers(WARNED),
    Answer::new(204, "the configuration was replaced, or is valid").with_headers(WARNED),
    Answer::new(412, "If-Match or If-None-Match expects another configuration"),
]);

/// 204; 404 without a configuration, 412 when a `test` of a JSON Patch fails.
pub const CHANGE: Route<Value> = Route::new(
    Method::Patch,
    PATH,
    ADMIN,
    Tag::Configuration,
    "change-configuration",
    "Update the upgrade configuration",
)
.body_described::<Value, ConfigPatch>(merge_patch)
.other_bodies(&[
    Content::new("application/merge-patch+json", Shape::of::<ConfigPatch>(), merge_patch),
    Content::new("application/json-patch+json", Shape::list_of::<PatchStep>(), || {
        json!([
            {"op": "test", "path": "/rollout/max-concurrent", "value": 1},
            {"op": "replace", "path": "/rollout/max-concurrent", "value": 2},
        ])
    }),
])
.description(
    "A merge patch (RFC 7396), also as plain JSON or YAML, or a JSON Patch (RFC 6902). A merge patch \
        replaces lists as a whole; a JSON Patch changes one entry, such as /config-providers/0/poll-interval. Without \
        If-Match the patch is applied to the current configuration, whatever it is.",
)
.headers::<TagsOfWrites>()
.query::<Validate>()
.answers(&[
    VALIDATED,
    Answer::new(204, "the configuration was changed, or could be").with_headers(WARNED),
    Answer::new(404, "there is no configuration"),
    Answer::new(412, "If-Match or If-None-Match expects another configuration, or a test failed"),
]);

/// 204; 404 without a configuration.
pub const DELETE: Route = Route::new(
    Method::Delete,
    PATH,
    ADMIN,
    Tag::Configuration,
    "delete-configuration",
    "Delete the upgrade configuration",
)
.description("An active run continues to its end: cancel it to stop it.")
.headers::<TagsOfWrites>()
.query::<Validate>()
.answers(&[
    VALIDATED,
    Answer::new(204, "the configuration was deleted, or could be").with_headers(WARNED),
    Answer::new(404, "there is no configuration"),
    Answer::new(412, "If-Match or If-None-Match expects another configuration"),
]);

/// The methods and the patch formats.
pub const DESCRIBE: Route = Route::new(
    Method::Options,
    PATH,
    VIEWER,
    Tag::Configuration,
    "describe-configuration",
    "List the methods and patch formats of the upgrade configuration",
)
.answers(&[Answer::new(204, "the methods and patch formats are in the headers")
    .with_headers(&[("Allow", Some("the methods")), ("Accept-Patch", Some("the media types of patches"))])]);

/// The changes of the configuration, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/config-history",
    VIEWER,
    Tag::Configuration,
    "list-configuration-changes",
    "List the changes of the configuration, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of the list", Shape::of::<ChangeList>(), || json!({"items": [change()]}))]);

/// What a write that is only checked may answer.
const VALIDATED: Answer = Answer::json(
    "it is valid, and the client prefers to see what would follow",
    Shape::of::<Validated<'static>>(),
    validated,
);

/// The headers of an answer to a write.
const WARNED: &[(&str, Option<&str>)] = &[(
    headers::WARNING,
    Some(
        "what follows, or would follow: one field for each warning, at most 16 of at most 400 bytes in ASCII",
    ),
)];

fn validated() -> Value {
    json!({"configuration": sample(), "warnings": [{
        "kind": "starts-run",
        "message": "a window is open now: this starts a run of 9 hosts at once",
        "hosts": 9,
        "open-until": "2026-11-21T05:00:00Z",
    }], "next-upgrade-at": {"before": "2026-11-28T01:00:00Z", "after": "2026-11-21T01:24:07Z"}})
}

fn merge_patch() -> Value {
    json!({"rollout": {"max-concurrent": 2}})
}

/// The specification's sample of a configuration.
pub fn sample() -> Value {
    json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "maintenance-windows": [{
            "days-of-week": "Friday, Saturday",
            "start-time": "01:00",
            "timezone": "site-local",
            "duration": "4h",
        }],
    })
}

/// The sample, with `more` fields added.
pub(crate) fn sample_with(more: Value) -> Value {
    let mut whole = sample();
    if let (Value::Object(fields), Value::Object(more)) = (&mut whole, more) {
        fields.extend(more);
    }
    whole
}

/// A rollout as the API shows it: `settings`, and defaults for all others.
///
/// # Panics
/// `settings` is not a valid rollout.
pub fn rollout(settings: Value) -> Value {
    let rollout: kernel::Rollout = serde_json::from_value(settings).expect("settings of a rollout");
    serde_json::to_value(rollout).expect("a rollout has string keys and no fallible part")
}

fn change() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-20T12:00:00.000Z",
        "actor": "anna",
        "difference": [{"path": "rollout/max-concurrent", "before": 1, "after": 2}],
        "configuration": {
            "worker-applications": [{"name": "os-upgrade-debian"}],
            "rollout": rollout(json!({"max-concurrent": 2})),
        },
    })
}

/// The conditions of a read.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct TagsOfReads {
    /// Only if the configuration has one of these tags.
    #[param(rename = "If-Match", value_type = Option<TagsText>)]
    pub matching: Option<String>,
    /// Only if it has none of these tags; otherwise 304.
    #[param(rename = "If-None-Match", value_type = Option<TagsText>)]
    pub not_matching: Option<String>,
}

/// The conditions of a write.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct TagsOfWrites {
    /// Only if the configuration has one of these tags.
    #[param(rename = "If-Match", value_type = Option<TagsText>)]
    pub matching: Option<String>,
    /// Only if it has none of these tags; `*` means only if there is no configuration.
    #[param(rename = "If-None-Match", value_type = Option<TagsText>)]
    pub not_matching: Option<String>,
    /// `return=representation` (RFC 7240): a request that is only validated is answered with what would follow. Other
    /// preferences are ignored.
    #[param(rename = "Prefer", example = "return=representation")]
    pub prefer: Option<String>,
}

/// A valid configuration, and what would follow from it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Validated<'a> {
    /// The configuration that would be in force; absent if there would be none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ConfigBody>)]
    pub configuration: Option<&'a Config>,
    /// What an operator should know, the most important first.
    pub warnings: Vec<Warning>,
    pub next_upgrade_at: NextStarts,
}

/// When the next run starts automatically, with the configuration in force and with the other one. An active run counts as
/// ended.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub struct NextStarts {
    /// Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Stamp>,
    /// Absent if none would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Stamp>,
}

/// What an operator should know before a configuration takes effect.
#[derive(Debug, Serialize, Deserialize)]
pub struct Warning {
    /// The sentence.
    pub message: String,
    #[serde(flatten)]
    warning: TwoSided<os_upgrade_kernel::Warning, Kind>,
}

impl Warning {
    /// The warning that `message` says.
    pub const fn new(message: String, warning: os_upgrade_kernel::Warning) -> Self {
        Self { message, warning: TwoSided::Sent(warning) }
    }

    /// The word for its kind, for a client.
    pub fn kind(&self) -> Option<&str> {
        self.warning.read().map(|read| read.kind.as_str())
    }
}

impl PartialSchema for Warning {
    fn schema() -> RefOr<Schema> {
        let meaning = "What an operator should know before a configuration takes effect. Details, such as an application or \
                       a number of hosts, are in further fields, which differ by kind.";
        let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(meaning));
        let object = object.property("kind", WarningWord::schema()).required("kind");
        let object = object.property("message", ObjectBuilder::new().schema_type(Type::String));
        let object = object.required("message");
        object.additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}

impl ToSchema for Warning {
    fn name() -> Cow<'static, str> {
        "Warning".into()
    }
}

/// The query parameters of a read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadParameters {
    /// Validate the request but do not actually perform the requested operation. A read changes nothing, and is
    /// answered as usual.
    #[param(inline)]
    pub validate: Option<True>,
    /// Retrieve only requested fields from the resource: names, nested with `/`, separated by commas. An empty list is
    /// refused, as is an unknown name.
    #[param(min_length = 1, example = "worker-applications/name,rollout")]
    pub fields: Option<String>,
}

impl Parameters for ReadParameters {
    const NAMES: &'static [&'static str] = &["validate", "fields"];
}

list! {
    /// A page of changes, newest first; or of their keys; or their number.
    ChangeList = page of Change<'static>, or FactKeyText
}

/// A change of the configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Change<'a> {
    /// The sequence of its record in the journal.
    pub sequence: u64,
    /// Its place in that record, from 0.
    pub place: u64,
    #[schema(value_type = Stamp)]
    pub time: Millis,
    /// Who made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, str>>,
    /// The changed fields.
    #[serde(default)]
    #[schema(value_type = Vec<Difference>, required)]
    pub difference: Vec<os_upgrade_kernel::Difference>,
    /// The whole configuration after the change; absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ConfigBody>)]
    pub configuration: Option<TwoSided<Box<RawValue>, Value>>,
}

/// The intended configuration of a site's upgrades.
#[derive(Debug, ToSchema)]
#[schema(as = Config, rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub struct ConfigBody {
    /// The applications that take part in upgrades, with every host on which one is announced. If several are, the
    /// first one in this list handles the host.
    #[schema(required = false)]
    pub worker_applications: Vec<WorkerApplication>,
    /// When runs start automatically: whenever one of these is open. A window that is open now starts a run at once,
    /// unless it has had its run or its cancel, which `window-used-by` in the state says.
    /// Without windows no run starts automatically.
    #[schema(required = false)]
    pub maintenance_windows: Vec<Window>,
    /// When no run starts automatically, even if a maintenance window is open. An active run is not affected: cancel
    /// it to stop it.
    #[schema(required = false)]
    pub deny_windows: Vec<Window>,
    /// The longest delay from the start of an occurrence to the start of a run, which spreads sites with the same
    /// windows. Limited so that `minimum-remaining` is left of the occurrence.
    #[schema(required = false, value_type = DurationText)]
    pub start_jitter: String,
    /// How much of an occurrence must be left for a run to start.
    #[schema(required = false, value_type = DurationText)]
    pub minimum_remaining: String,
    #[schema(required = false)]
    pub rollout: Rollout,
    /// Where configuration of hosts comes from; at most 32.
    #[schema(required = false)]
    pub config_providers: Vec<ConfigProvider>,
}

/// The fields of [`ConfigBody`], as part of a larger object.
#[derive(Debug)]
pub struct ConfigFields;

impl PartialSchema for ConfigFields {
    fn schema() -> RefOr<Schema> {
        let mut schema = ConfigBody::schema();
        if let RefOr::T(Schema::Object(whole)) = &mut schema {
            whole.additional_properties = None;
            whole.description = None;
        }
        schema
    }
}

impl ToSchema for ConfigFields {
    fn name() -> Cow<'static, str> {
        "ConfigFields".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ConfigBody::schemas(schemas);
    }
}

/// Recurring times, each with a duration: on days of the week at a local time, or by a cron schedule.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// English names such as `Friday` or `Fri`, and ranges such as `Mon-Fri`, each day at most once; shown in full. Requires `start-time`, and excludes `cron`.
    #[schema(required = false, value_type = DaysText)]
    pub days_of_week: String,
    /// The local time at which the window opens.
    #[schema(required = false, value_type = TimeText)]
    pub start_time: String,
    /// Second (a single one), minute, hour, day of the month, month, day of the week, and optionally year; or
    /// `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. Both the day of the month and the day of the week must
    /// match. Write days of the week by name, such as `0 0 1 * * Mon-Fri`: numbers count from 1, which is Sunday. Five
    /// fields are a crontab's, and are shown as what they mean. The list of windows shows the resulting times.
    #[schema(required = false)]
    pub cron: String,
    /// An IANA name, or `site-local`, the default.
    #[schema(required = false)]
    pub timezone: String,
    /// How long the window stays open; at most 366 days.
    #[schema(value_type = WindowDurationText)]
    pub duration: String,
    /// The first day, in its time zone, on which the window opens.
    #[schema(required = false, value_type = DateText)]
    pub not_before: String,
    /// The last day, in its time zone, on which the window opens.
    #[schema(required = false, value_type = DateText)]
    pub not_after: String,
    /// When a window ends if the local clock is changed during it; the default is `elapsed`.
    #[schema(required = false)]
    pub dst: DstPolicy,
}

/// When a window ends if the local clock is changed during it: when the duration has `elapsed`, or when the
/// `wall-clock` shows the start plus the duration, an hour later or earlier.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum DstPolicy {
    Elapsed,
    WallClock,
}

/// A merge patch (RFC 7396) of the configuration: the fields to set; `null` removes one.
#[derive(Debug)]
pub struct ConfigPatch;

impl PartialSchema for ConfigPatch {
    fn schema() -> RefOr<Schema> {
        let mut schema = removable(ConfigBody::schema());
        if let RefOr::T(Schema::Object(whole)) = &mut schema {
            whole.description =
                Some("A merge patch (RFC 7396): the fields to set; null removes one.".to_owned());
            // It is merged too; lists are replaced as a whole.
            whole.properties.insert("rollout".to_owned(), or_null(removable(Rollout::schema())));
        }
        schema
    }
}

/// The schema of an object in a merge patch: each of its fields may be null.
fn removable(mut schema: RefOr<Schema>) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        for field in object.properties.values_mut() {
            *field = or_null(std::mem::take(field));
        }
    }
    schema
}

fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(schema).item(null).into()
}

impl ToSchema for ConfigPatch {
    fn name() -> Cow<'static, str> {
        "ConfigPatch".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ConfigBody::schemas(schemas);
        Rollout::schemas(schemas);
    }
}

/// A step of a JSON Patch (RFC 6902).
#[derive(Debug, ToSchema)]
pub struct PatchStep {
    #[schema(value_type = PatchWord)]
    pub op: String,
    /// The target, a JSON Pointer (RFC 6901).
    pub path: String,
    /// The source of `move` and `copy`, a JSON Pointer. Other operations ignore it, but it must be a string.
    #[schema(required = false)]
    pub from: String,
    /// The value for `add`, `replace` and `test`.
    #[schema(required = false)]
    pub value: serde_json::Value,
}

/// An application that implements the worker's side of an upgrade.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerApplication {
    /// The name that its workers announce: 1 to 255 bytes without control characters.
    #[schema(value_type = NameText)]
    pub name: String,
}

/// How a run proceeds through the hosts. The defaults are the specification's behaviour.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// How many hosts may be upgraded at once. The slots of their groups limit them too.
    #[schema(required = false, minimum = 1, maximum = 4_294_967_295_u64, default = 1)]
    pub max_concurrent: u64,
    /// How many hosts may fail. After more failures no further host is started.
    #[schema(required = false, value_type = MaxFailures, default = 0)]
    pub max_failures: u64,
    #[schema(required = false, value_type = UnreachableWord, default = "skip")]
    pub unreachable: String,
    /// How many hosts may be preparing, or prepared and not begun; one of each group may in any case, and those that hold a slot do not
    /// count. Hosts are upgraded as they are prepared, and not once all are. Absent: all are prepared at once.
    #[schema(required = false, minimum = 1, maximum = 4_294_967_295_u64)]
    pub max_preparing: u64,
    /// Whether hosts are prepared again whose worker answered an error. Hosts are upgraded as they are prepared, and not once all are.
    /// Absent: none is.
    #[schema(required = false, value_type = Retries)]
    pub retries: Retries,
    /// How long a host may take to answer `prepare`, at least 1 s. One that takes longer counts as failed, and the run goes on without it.
    /// Absent: as long as the run lasts.
    #[schema(required = false, value_type = TimeoutText)]
    pub prepare_timeout: String,
    /// How long a host may take to answer `upgrade`, at least 1 s. One that takes longer is overdue: it counts as failed and keeps its slot,
    /// the run goes on without it, and its upgrade is finished if it answers while the run lives. Absent: as long as the run lasts.
    #[schema(required = false, value_type = TimeoutText)]
    pub upgrade_timeout: String,
    /// How long a host may take to answer `reboot`, including its boot and its worker's health check; at least 1 s.
    #[schema(required = false, value_type = TimeoutText, default = "30m")]
    pub boot_timeout: String,
    /// How long a host takes from its slot until it is back, at least 1 s: with less than that left of the run none is begun, and with less
    /// than that left of a window no run starts by itself. Absent: no bound.
    #[schema(required = false, value_type = TimeoutText)]
    pub expected_duration: String,
    /// How long a run waits for hosts that lack configuration of a required provider, once it waits for nothing else; at least 1 s.
    /// Absent: 15 minutes.
    #[schema(required = false, value_type = TimeoutText)]
    pub provider_wait: String,
}

/// A number of hosts, or a percentage of those that take part, rounded down.
pub struct MaxFailures;

impl PartialSchema for MaxFailures {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(u32::MAX));
        OneOfBuilder::new().item(number).item(PercentText::schema()).into()
    }
}

impl ToSchema for MaxFailures {
    fn name() -> Cow<'static, str> {
        "MaxFailures".into()
    }
}

/// How often a host is prepared again in a run whose worker answered an error that names its command. It counts as failed after its last attempt.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// How many times, after the first.
    #[schema(required = false, maximum = 4_294_967_295_u64, default = 2)]
    pub prepare: u64,
    /// The pause before the second attempt, at least 1 s. It doubles each time.
    #[schema(required = false, value_type = TimeoutText, default = "5m")]
    pub backoff: String,
    /// The longest pause, at least 1 s. Up to `backoff` is added, differently for each host.
    #[schema(required = false, value_type = TimeoutText, default = "1h")]
    pub max_backoff: String,
}

/// A changed place in the configuration.
#[derive(Debug, ToSchema)]
pub struct Difference {
    /// The path, such as `rollout/max-failures`; empty for the whole configuration.
    pub path: String,
    /// The value before the change; absent if there was none.
    #[schema(required = false)]
    pub before: serde_json::Value,
    /// The value after the change; absent if there is none.
    #[schema(required = false)]
    pub after: serde_json::Value,
}
