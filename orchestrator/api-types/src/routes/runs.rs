//! `/v1/state/os-upgrade/runs`, `/trigger-upgrade-site`, `/cancel` and `/give-up-host`: lists runs, starts a run,
//! stops it, or continues it without a host; `/missed-runs` lists those that did not start. The last two are extensions
//! of the specification.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{FactCursor, HostStatus, Retry, RunResult};
use os_upgrade_protocol::{HostName, RunId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::body::{Counts, HostWithReason, Stamp, TwoSided, Why};
use crate::headers::{self, Preferences};
use crate::lists::list;
use crate::query::{self, FactList, Parameters, True, Validate};
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::routes::config::{Rollout, rollout};
use crate::routes::events::{self, Event};
use crate::text::{
    ActionWord, AuditReasonText, FactKeyText, HostStatusWord, NameText, PastRunResultWord, PhaseWord,
    RetryWord, RunIdText, RunResultWord, TimeoutText,
};
use crate::word::Word;

/// Most events in an answer: all events of a run of some 2 000 hosts.
pub const EVENTS_MAX: u32 = 10_000;

/// A page of runs; 400 if the run in `after` does not exist.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/runs",
    VIEWER,
    Tag::Upgrades,
    "list-runs",
    "List the runs, newest first",
)
.query::<ListParameters>()
.answers(&[Answer::json("a page of the list", Shape::of::<RunList>(), || json!({"items": [run()]}))]);

/// A run, or 404 when there is no such run.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/runs/{id}",
    VIEWER,
    Tag::Upgrades,
    "read-run",
    "Read a run: its hosts, and what happened in it, in order",
)
.names(&[PathName::new("id", "the id of a run", Shape::of::<RunIdText>(), None)])
.query::<ReadParameters>()
.answers(&[
    Answer::json("the run", Shape::of::<RunInFull<'static>>(), run_in_full),
    Answer::new(404, "there is no such run"),
]);

/// The runs that were due in a maintenance window and did not start, newest first. They are no runs: none has an id or a
/// result.
pub const MISSED: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/missed-runs",
    VIEWER,
    Tag::Upgrades,
    "list-missed-runs",
    "List the runs that were due in a maintenance window and did not start, newest first",
)
.query::<FactList>()
.answers(&[Answer::json(
    "a page of the list",
    Shape::of::<MissedRunList>(),
    || json!({"items": [missed_run()]}),
)]);

/// 204 once the run is durable; 404 without a configuration, 409 while a run is active or without a host.
pub const TRIGGER: Route<Trigger> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/trigger-upgrade-site",
    OPERATOR,
    Tag::Upgrades,
    "trigger-upgrade-site",
    "Trigger an upgrade on this site now, whatever the maintenance windows",
)
.optional_body::<Trigger>(|| json!({"timeout": "4h", "reason": "a security update"}))
.headers::<Preferences>()
.query::<Validate>()
.answers(&[
    Answer::created(
        "the run has started, and the client prefers to see it",
        Shape::of::<RunInFull<'static>>(),
        run_in_full,
    )
    .with_headers(STARTED),
    Answer::json(
        "what the run would be of; to a client that only validates and prefers to see it",
        Shape::of::<RunPreview>(),
        || {
            json!({
                "not-after": "2026-11-21T05:00:00Z",
                "hosts": [
                    {"hostname": "h02", "group": "default"},
                    {
                        "hostname": "h01",
                        "group": "default",
                        "why": {"kind": "host-deferred", "actor": "anna", "reason": "a demo", "text": "deferred by anna: a demo"},
                    },
                ],
            })
        },
    ),
    Answer::new(204, "the run has started, or could be").with_headers(STARTED),
    Answer::new(404, "there is no configuration"),
    Answer::new(409, "a run is active, or no host could take part, or a host that is named cannot"),
]);

/// 204 once it is durable that no further host is started; 409 when no run is active.
pub const CANCEL: Route<Cancel> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/cancel",
    OPERATOR,
    Tag::Upgrades,
    "cancel-upgrade",
    "Start no further host in the active run",
)
.optional_body::<Cancel>(|| json!({"reason": "the power is about to fail"}))
.answers(&[Answer::new(204, "no further host is started"), Answer::new(409, "no run is active")]);

/// 204 once it is durable that the run no longer waits for the host. If the host had begun its upgrade, its slot stays
/// held, whatever `[fleet-lock] on-failure` is, until it reports completion or an operator releases it.
pub const GIVE_UP: Route<HostWithReason> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/give-up-host",
    OPERATOR,
    Tag::Upgrades,
    "give-up-host",
    "Continue the active run without a host",
)
.body::<HostWithReason>(|| json!({"host": "h01", "reason": "power supply failed"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the run no longer waits for the host, or would not"),
    Answer::new(404, "the host is not in the active run"),
    Answer::new(409, "no run is active, the host has already finished, or its last command is not known yet"),
]);

/// The headers of an answer to a trigger; a request that is only validated starts no run, so that it has none of them.
const STARTED: &[(&str, Option<&str>)] =
    &[("Location", Some("the path of the run")), (headers::RUN, Some("the id of the run"))];

fn run() -> Value {
    json!({
        "id": "019aa3f0-0000-7000-8000-000000000001",
        "trigger": "operator",
        "actor": "api 127.0.0.1",
        "reason": "a security update",
        "start-time": "2026-11-21T01:00:00Z",
        "not-after": "2026-11-21T05:00:00Z",
        "end-time": "2026-11-21T01:24:07Z",
        "result": "completed",
        "phase": "upgrading",
        "rollout": rollout(json!({})),
        "counts": {"upgraded": 1},
    })
}

fn missed_run() -> Value {
    json!({
        "window-start": "2026-11-21T01:00:00Z",
        "latest-start": "2026-11-21T04:00:00Z",
        "window-end": "2026-11-21T05:00:00Z",
        "recorded-at": "2026-11-21T09:12:31Z",
        "why": {"kind": "no-leader", "text": "no orchestrator led"},
    })
}

fn run_in_full() -> Value {
    let mut run = run();
    run["hosts"] = json!([{
        "hostname": "h01",
        "application": "os-upgrade-debian",
        "group": "default",
        "status": "upgraded",
        "since": "2026-11-21T01:24:07Z",
        "start-time": "2026-11-21T01:00:03Z",
        "end-time": "2026-11-21T01:24:07Z",
        "command": {"action": "upgrade", "sequence": 6},
    }]);
    run["events"] = json!([events::example()]);
    run
}

/// The parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// The maximum number of entries; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "query::page")]
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    #[param(value_type = Option<RunIdText>)]
    pub after: Option<RunId>,
    /// Return only runs with this host in them.
    #[param(value_type = Option<NameText>)]
    pub host: Option<HostName>,
    /// Return only runs that ended with this result.
    #[param(value_type = Option<RunResultWord>)]
    pub result: Option<RunResult>,
    /// Return only runs that started at this time or later, RFC 3339.
    #[param(value_type = Option<Stamp>)]
    pub from: Option<DateTime<Utc>>,
    /// Return only runs that started before this time, RFC 3339.
    #[param(value_type = Option<Stamp>)]
    pub to: Option<DateTime<Utc>>,
    /// Return only the keys of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Return only the number of entries on all pages. Takes precedence over `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for ListParameters {
    const NAMES: &'static [&'static str] =
        &["limit", "after", "host", "result", "from", "to", "keys", "count"];
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case")]
pub struct ReadParameters {
    /// The maximum number of events. There may be fewer, and more to come.
    #[param(minimum = 1, maximum = 10_000, default = 10_000)]
    #[serde(default, deserialize_with = "query::limit::<_, EVENTS_MAX>")]
    pub events_limit: Option<u32>,
    /// The `events-next` of the previous page.
    #[param(value_type = Option<FactKeyText>)]
    pub events_after: Option<FactCursor>,
}

impl Parameters for ReadParameters {
    const NAMES: &'static [&'static str] = &["events-limit", "events-after"];
}

/// Options of a run.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// The upgrade is aborted if not all hosts are upgraded within this time. By default it is 4h; a run of chosen hosts also ends when the
    /// next one starts automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TimeoutText>, default = "4h")]
    pub timeout: Option<Duration>,
    /// Only these hosts. One that cannot take part is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<NameText>>, min_items = 1, max_items = 10_000)]
    pub hosts: Option<Vec<HostName>>,
    /// Only the hosts, or only those of `hosts`, whose part in their last run ended so: `failed` (or timed out, and not upgraded since) or
    /// `not-reached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RetryWord>)]
    pub retry: Option<Retry>,
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

/// What a run would be of that starts now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunPreview {
    /// When it would end at the latest.
    pub not_after: Stamp,
    /// The hosts in the order of turns, then those that would be skipped.
    pub hosts: Vec<HostInPreview>,
    /// When the next run starts automatically, if this one may still be active then: it would keep it from starting. Absent for a run
    /// of the whole site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs_start_at: Option<Stamp>,
}

/// A host of a run that would start now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostInPreview {
    pub hostname: String,
    /// The lock group whose slot it needs.
    pub group: String,
    /// Why it would be skipped; absent if it takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Options of a cancel.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

list! {
    /// A page of runs, newest first; or of their ids; or their number.
    RunList = page of Run<'static>, or RunIdText
}

list! {
    /// A page of missed runs, newest first; or of the keys of their facts; or their number.
    MissedRunList = page of MissedRun, or FactKeyText
}

/// A run that was due in a maintenance window and did not start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MissedRun {
    /// When the window opened.
    pub window_start: Stamp,
    /// Until when the run could have started.
    pub latest_start: Stamp,
    /// When the window closed, or will close.
    pub window_end: Stamp,
    /// When a leader recorded it.
    pub recorded_at: Stamp,
    /// Why it did not start.
    pub why: Why,
    /// How many runs were missed before it that are not listed one by one; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Run<'a> {
    pub id: Cow<'a, str>,
    /// What started the run.
    pub trigger: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, str>>,
    /// Why, as the operator says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    pub start_time: Stamp,
    pub not_after: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PastRunResultWord>)]
    pub result: Option<Word<RunResult>>,
    /// The phase of the run, or its last phase.
    #[schema(value_type = PhaseWord)]
    pub phase: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<StopCause>)]
    pub stopping: Option<TwoSided<&'a RawValue, StopCause>>,
    #[schema(value_type = Rollout)]
    pub rollout: TwoSided<&'a RawValue, Value>,
    #[schema(value_type = Counts)]
    pub counts: TwoSided<&'a RawValue, Counts>,
    /// Whether it is a run of chosen hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub targeted: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunInFull<'a> {
    #[serde(flatten)]
    pub run: Run<'a>,
    pub hosts: Vec<HostOfRunInFull<'a>>,
    /// What happened, as `/v1/state/os-upgrade/events` sends it.
    #[serde(default)]
    #[schema(required, value_type = Vec<Event>)]
    pub events: Vec<TwoSided<Event, Event>>,
    /// What to continue `events-after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_next: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostOfRunInFull<'a> {
    pub hostname: Cow<'a, str>,
    pub application: Cow<'a, str>,
    pub group: Cow<'a, str>,
    #[schema(value_type = HostStatusWord)]
    pub status: Word<HostStatus>,
    pub since: Stamp,
    /// Why it waits or did not succeed; absent if nothing of that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// When its slot was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Stamp>,
    /// When its part in the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Command<'a>>,
}

/// A host's current or last command.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Command<'a> {
    #[schema(value_type = ActionWord)]
    pub action: Cow<'a, str>,
    /// Its sequence in the control stream; absent until it is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

/// Why no further host is started: the failure of a host, an operator who cancelled the run, or a restored site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StopCause {
    /// More hosts failed than permitted.
    Failed {
        /// The host whose failure stopped the run.
        host: String,
    },
    /// An operator cancelled the run.
    Cancelled {
        /// The operator.
        actor: String,
        /// Why, as the operator says.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The site was restored while the run was active.
    Restored {
        /// Who restored the site.
        actor: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_with_events_of_a_newer_version_is_read() {
        let mut run = run_in_full();
        run["events"].as_array_mut().unwrap().push(json!({ "id": "new", "kind": "of-a-newer-version" }));
        let read: RunInFull<'_> = serde_json::from_value(run).unwrap();
        assert!(matches!(&read.events[..], [TwoSided::Read(Event { .. }), TwoSided::Other(_)]), "{read:?}");
    }
}
