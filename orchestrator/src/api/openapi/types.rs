//! Types that stand in bodies and are not the API's own: the kernel's, the protocol's, and words of fixed sets. They
//! are described here and not where they are, because what decides depends on nothing of HTTP. A test holds real
//! answers against these descriptions.

use std::borrow::Cow;

use os_upgrade_kernel::{Cause, HostStatus, Reason, RunResult, WindowBlocker};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::super::reply::Stamp;

/// One line a set: what it is, its name in the document, and its words.
macro_rules! words {
    ($(#[doc = $meaning:literal] $name:ident = $words:expr;)*) => {
        $(
            #[doc = $meaning]
            pub(in crate::api) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().schema_type(Type::String).enum_values(Some($words));
                    object.description(Some($meaning.trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )*
    };
}

words! {
    /// Where a host is in a run.
    HostStatusWord = HostStatus::ALL.map(HostStatus::as_str);
    /// How a run went.
    RunResultWord = RunResult::ALL.map(RunResult::as_str);
    /// How far a run is, or was at its end.
    PhaseWord = ["preparing", "upgrading"];
    /// How upgrades stand.
    SiteStatusWord = ["idle", "preparing", "upgrading", "paused"];
    /// Why no run starts by itself, or what keeps one from starting in a window that is open.
    NextReasonWord = WindowBlocker::kinds();
    /// Whether a host's worker has been heard of lately.
    ReachabilityWord = ["unknown", "awaited", "reachable", "unreachable"];
    /// Whether a host takes part in runs: approved, or by the settings as all are; or not yet, or not any more.
    EnrolmentWord = super::super::hosts::ENROLMENTS;
    /// Why a host waits, or came to an unhappy end.
    ReasonKindWord = Reason::kinds().iter().copied();
    /// What keeps a host from moving.
    BlockerKindWord = Cause::kinds();
    /// What a worker is asked.
    ActionWord = ["prepare", "upgrade", "reboot"];
    /// Who grants slots to hosts of runs: the semaphores here, or another lock server.
    LockProviderWord = ["embedded", "external"];
    /// Whose slots a `DELETE` takes back: nobody's, or theirs who have left the inventory.
    ReclaimWord = ["never", "inventory"];
    /// On whose behalf a slot is held.
    BehalfWord = ["run", "client", "operator"];
    /// Who waits: a host of a run, or a client from outside.
    WaiterWord = ["host", "client"];
    /// What an instance does.
    RoleWord = ["leader", "follower"];
    /// What was done about the strongbox.
    StrongboxWord = ["strongbox-made", "secret-kept", "secret-removed"];
    /// What a step of a JSON Patch does.
    PatchWord = ["add", "remove", "replace", "move", "copy", "test"];
    /// What becomes of a host that is unreachable when a run starts: it is left out, or fails.
    UnreachableWord = ["skip", "fail"];
}

/// Something that keeps a host from moving: its fields differ by its kind.
pub(in crate::api) struct BlockerBody;

impl PartialSchema for BlockerBody {
    fn schema() -> RefOr<Schema> {
        let meaning = "Something that keeps a host from moving. What it is about, such as an action or another host, stands in \
                       fields of its own, which differ by its kind; until is when, at the latest, it changes by time alone.";
        let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(meaning));
        let object = object.property("kind", BlockerKindWord::schema()).required("kind");
        let object = object.property("until", Stamp::schema());
        object.additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}

impl ToSchema for BlockerBody {
    fn name() -> Cow<'static, str> {
        "Blocker".into()
    }
}

impl PartialSchema for Stamp {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC."));
        object.examples([json!("2026-11-21T01:00:00Z")]).into()
    }
}

impl ToSchema for Stamp {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}

/// One line a form of text: what it is, its name in the document, its pattern, and how many characters it has.
macro_rules! texts {
    ($(#[doc = $meaning:literal] $name:ident = $pattern:literal, $lengths:expr;)*) => {
        $(
            #[doc = $meaning]
            pub(in crate::api) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let object = ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern));
                    let (min, max) = $lengths;
                    let object = object.min_length(min).max_length(max);
                    object.description(Some($meaning.trim())).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )*
    };
}

texts! {
    /// A name: 1 to 255 bytes without control characters.
    NameText = r"^[^\x00-\x1f\x7f-\x9f]+$", (Some(1), Some(255));
    /// The id of one that holds a slot: 1 to 256 bytes without control characters.
    ClientText = r"^[^\x00-\x1f\x7f-\x9f]+$", (Some(1), Some(256));
    /// `*`, or tags as in `ETag`, with commas in between.
    TagsText = r#"^(\*|(W/)?"[\x21\x23-\x7e]*"(\s*,\s*(W/)?"[\x21\x23-\x7e]*")*)?$"#, (None, None);
    /// Why an operator did something: one line of at most 1000 bytes that says something.
    AuditReasonText = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$", (Some(1), Some(1_000));
    /// The id of a run.
    RunIdText = "^[A-Za-z0-9_-]+$", (Some(1), Some(64));
    /// The place of a fact in the journal, `<sequence>.<place>`.
    FactKeyText = r"^[0-9]{1,18}\.[0-9]{1,18}$", (Some(3), Some(37));
    /// The name of a lock group.
    GroupText = "^[a-zA-Z0-9.-]+$", (Some(1), Some(255));
    /// The name of a secret.
    SecretNameText = "^[a-zA-Z0-9_-][a-zA-Z0-9._-]*$", (Some(1), Some(64));
    /// A secret: 1 to 8192 bytes.
    SecretText = r"^[\s\S]+$", (Some(1), Some(8_192));
    /// 32 bytes in base64, as `os-upgrade strongbox key` prints them.
    KeyText = "^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$", (Some(44), Some(44));
    /// `[<n>y][<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; 1 s to 100 years.
    TimeoutText = "^(?=.*[1-9])([0-9]{1,2}y)?([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
    /// `[<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; 1 s to 366 days.
    WindowDurationText = "^(?=.*[1-9])((36[0-6]|3[0-5][0-9]|[12]?[0-9]{1,2})d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
    /// Days of the week, separated by commas, such as `Friday, Saturday`.
    DaysText = r"^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day(, *(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)*$", (Some(1), Some(80));
    /// A local time of day, `HH:MM`.
    TimeText = "^([01][0-9]|2[0-3]):[0-5][0-9]$", (Some(1), Some(5));
    /// A day, `YYYY-MM-DD`.
    DateText = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", (Some(1), Some(10));
    /// `[<n>y][<n>d][<n>h][<n>m][<n>s]`, such as `4h` or `1d12h`; at most 100 years.
    DurationText = "^(?=.)([0-9]{1,2}y)?([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$", (Some(1), Some(25));
}

/// The intended configuration of a site's upgrades.
#[derive(ToSchema)]
#[schema(as = Config, rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the kernel's is used; here is its shape")]
pub(in crate::api) struct ConfigBody {
    /// Every host on which one of these has announced itself takes part; where several have, the first counts.
    #[schema(required = false)]
    worker_applications: Vec<WorkerApplicationBody>,
    /// When runs start by themselves: whenever one of these is open, so that one that is open now starts a run at once.
    /// Without any, none does.
    #[schema(required = false)]
    maintenance_windows: Vec<WindowBody>,
    /// When none does, whatever is open. A run under way is not touched: cancel it.
    #[schema(required = false)]
    deny_windows: Vec<WindowBody>,
    /// How long after the start of an occurrence a run starts at the latest: sites with the same windows spread. Cut to what
    /// `minimum-remaining` leaves of the occurrence, where it is longer.
    #[schema(required = false, value_type = DurationText)]
    start_jitter: String,
    /// How much of an occurrence must be left for a run to start in it.
    #[schema(required = false, value_type = DurationText)]
    minimum_remaining: String,
    #[schema(required = false)]
    rollout: RolloutBody,
}

/// Times that come again and again, each for a duration: on days of the week at a local time, or by a cron schedule.
#[derive(ToSchema)]
#[schema(as = Window, rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the kernel's is used; here is its shape")]
pub(in crate::api) struct WindowBody {
    /// Full English names, each at most once; with `start-time`, and without `cron`.
    #[schema(required = false, value_type = DaysText)]
    days_of_week: String,
    /// The local time at which it opens.
    #[schema(required = false, value_type = TimeText)]
    start_time: String,
    /// Second (a single one), minute, hour, day of the month, month, day of the week, and year if wanted; or `@hourly`,
    /// `@daily`, `@weekly`, `@monthly`, `@yearly`. Both the day of the month and the day of the week must fit. Give days of
    /// the week by name, such as `0 0 1 * * Mon-Fri`: numbers count from 1, which is Sunday. The list of windows shows when
    /// it opens.
    #[schema(required = false)]
    cron: String,
    /// An IANA name, or `site-local`, the default.
    #[schema(required = false)]
    timezone: String,
    /// How long it stays open; at most 366 days.
    #[schema(value_type = WindowDurationText)]
    duration: String,
    /// The first day, in its zone, on which it opens.
    #[schema(required = false, value_type = DateText)]
    not_before: String,
    /// The last day, in its zone, on which it opens.
    #[schema(required = false, value_type = DateText)]
    not_after: String,
    /// When a window ends in whose duration the local clock is changed; `elapsed` unless given.
    #[schema(required = false)]
    dst: DstBody,
}

/// When a window ends in whose duration the local clock is changed: when the duration has `elapsed`, or when the
/// `wall-clock` shows the start and the duration, an hour later or earlier.
#[derive(ToSchema)]
#[schema(as = DstPolicy, rename_all = "kebab-case")]
#[expect(dead_code, reason = "the kernel's is used; here is its shape")]
pub(in crate::api) enum DstBody {
    Elapsed,
    WallClock,
}

/// A merge patch (RFC 7396) of the configuration: the fields that become something else; `null` removes one.
pub(in crate::api) struct ConfigPatchBody;

impl PartialSchema for ConfigPatchBody {
    fn schema() -> RefOr<Schema> {
        let meaning = "A merge patch (RFC 7396): the fields that become something else; null removes one.";
        let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(meaning));
        object.additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}

impl ToSchema for ConfigPatchBody {
    fn name() -> Cow<'static, str> {
        "ConfigPatch".into()
    }
}

/// A step of a JSON Patch (RFC 6902).
#[derive(ToSchema)]
#[schema(as = PatchStep)]
#[expect(dead_code, reason = "the library's is used; here is its shape")]
pub(in crate::api) struct PatchStepBody {
    #[schema(value_type = PatchWord)]
    op: String,
    /// Which place it is about (RFC 6901).
    path: String,
    /// Where `move` and `copy` take it from, as a path; others do not look at it.
    #[schema(required = false)]
    from: serde_json::Value,
    /// What `add`, `replace` and `test` are about.
    #[schema(required = false)]
    value: serde_json::Value,
}

/// An application that implements the worker's side of an upgrade.
#[derive(ToSchema)]
#[schema(as = WorkerApplication)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct WorkerApplicationBody {
    /// The name under which its workers announce themselves: 1 to 255 bytes without control characters.
    #[schema(value_type = NameText)]
    name: String,
}

/// How a run goes through the hosts. The defaults are the specification's behaviour.
#[derive(ToSchema)]
#[schema(as = Rollout, rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct RolloutBody {
    /// How many hosts may be under upgrade at once; their groups' slots bound them too.
    #[schema(required = false, minimum = 1, maximum = 4_294_967_295_u64, default = 1)]
    max_concurrent: u64,
    /// How many hosts may fail before no further one is started.
    #[schema(required = false, maximum = 4_294_967_295_u64, default = 0)]
    max_failures: u64,
    #[schema(required = false, value_type = UnreachableWord, default = "skip")]
    unreachable: String,
    /// How long a host may take to answer `reboot`, its boot and its worker's health check included, at least a second.
    #[schema(required = false, value_type = TimeoutText, default = "30m")]
    boot_timeout: String,
}

/// Why no further host is started: the failure of a host, an operator who cancelled the run, or a restored site.
#[derive(ToSchema)]
#[schema(as = StopCause)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) enum StopCauseBody {
    /// More hosts failed than may.
    Failed {
        /// The host whose failure it was.
        host: String,
    },
    /// An operator cancelled it.
    Cancelled {
        /// Who.
        actor: String,
    },
    /// The site was restored while it was active.
    Restored {
        /// Who did it.
        actor: String,
    },
}

/// How many hosts are in which status; those of none are left out.
#[derive(ToSchema)]
#[schema(as = Counts)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct CountsBody(#[schema(inline)] std::collections::BTreeMap<String, u64>);

/// A place of the configuration that a change made different.
#[derive(ToSchema)]
#[schema(as = Difference)]
#[expect(dead_code, reason = "as above")]
pub(in crate::api) struct DifferenceBody {
    /// Which, such as `rollout/max-failures`; empty for the whole.
    path: String,
    /// What stood there; absent when nothing did.
    #[schema(required = false)]
    before: serde_json::Value,
    /// What stands there since; absent when nothing does.
    #[schema(required = false)]
    after: serde_json::Value,
}
