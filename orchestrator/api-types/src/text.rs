//! Texts in bodies: words of fixed sets, and forms such as names and durations. Types that read and write them are the
//! kernel's and the protocol's, and depend on nothing of HTTP; here is how they are described. A test holds real answers
//! against these descriptions.

use std::borrow::Cow;

use os_upgrade_kernel::{Cause, HostStatus, Reason, RunResult, WindowBlocker};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// What may be said of whether a host takes part in runs.
pub const ENROLMENTS: [&str; 4] = ["approved", "auto", "pending", "withdrawn"];

/// One line a set: what it is, its name in the document, and its words.
macro_rules! words {
    ($(#[doc = $meaning:literal] $name:ident = $words:expr;)*) => {
        $(
            #[doc = $meaning]
            pub struct $name;

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
    EnrolmentWord = ENROLMENTS;
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

/// One line a form of text: what it is, its name in the document, its pattern, and how many characters it has.
macro_rules! texts {
    ($(#[doc = $meaning:literal] $name:ident = $pattern:literal, $lengths:expr;)*) => {
        $(
            #[doc = $meaning]
            pub struct $name;

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
