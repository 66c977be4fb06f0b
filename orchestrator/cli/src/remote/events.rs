//! `os-upgrade events`: what happened on the site, and what happens now.

pub(crate) mod news;

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::events::{Event, EventId, FOLLOW, Kinds, SiteEvent};
use os_upgrade_api_types::routes::runs;
use os_upgrade_console::describe;
use os_upgrade_protocol::HostName;
use os_upgrade_settings::HttpUrl;
use serde_json::Value;

use super::completion;
use super::hosts::selection::note_unknown;
use super::options::Remote;
use crate::Failure;
use crate::lines::errln;
use crate::moment::moment;
use crate::output::Output;
use crate::rest::stream::EventStream;
use crate::rest::{Client, may_pass};

/// An id of no journal: the answer begins with the earliest event there is.
const BEGINNING: &str = "0.0.0";
/// How long to wait before a stream that has ended is requested again.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Go on with what happens from now on, or after --after, until interrupted; connects again by itself
    #[arg(short, long)]
    follow: bool,
    /// Only these kinds, separated by commas, such as run-started,run-ended
    #[arg(long, value_name = "KINDS", value_parser = checked_kinds)]
    kinds: Option<String>,
    /// Only events of this run, or of the last one
    #[arg(long, value_name = "ID|last", add = completion::runs())]
    run: Option<String>,
    /// Only events about this host
    #[arg(long, value_name = "NAME", add = completion::hosts())]
    host: Option<HostName>,
    /// Begin after the event with this id, which -o json shows
    #[arg(long, value_name = "ID")]
    after: Option<EventId>,
    /// Only what has happened since then: today, yesterday, 2h or 3d ago, HH:MM of today, YYYY-MM-DD, or a time in RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    since: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

fn checked_kinds(text: &str) -> Result<String, String> {
    text.parse::<Kinds>().map(|_| text.to_owned())
}

/// Prints events, one a line.
pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let client = options.remote.client()?;
    let run = match options.run.as_deref() {
        Some("last") => last_run(&client).await?,
        other => other.map(ToOwned::to_owned),
    };
    let output = options.remote.output;
    if options.run.is_some() && run.is_none() {
        output.aside("there has been no run");
        return Ok(());
    }
    let call = options.call(run);
    let zone = output.canvas().zone;
    let since =
        options.since.as_ref().map(|since| moment(zone, since).map_err(Failure::Usage)).transpose()?;
    let after = options.after.map(|id| id.to_string());
    if options.follow {
        // What has happened since then comes first.
        let after = after.or_else(|| since.map(|_| BEGINNING.to_owned()));
        follow(&client, &call, after, since, output).await
    } else {
        options.show(&client, &call, after, since).await
    }
}

/// What happens on a site from one moment on.
#[derive(Debug)]
pub struct Events {
    client: Client,
    /// The last event before.
    last: EventId,
}

impl Events {
    /// What happens from now on on the site of the instance at `url`, which is asked without a token.
    ///
    /// # Errors
    /// The instance refuses it, or cannot be reached.
    pub async fn from_now(url: &HttpUrl) -> anyhow::Result<Self> {
        let client = Client::without_token(url)?;
        let last = position(&mut client.stream(&FOLLOW.call(), None).await?).await?;
        Ok(Self { client, last })
    }

    /// Prints it, an event on a line, and never returns unless events are refused.
    ///
    /// # Errors
    /// Events are refused.
    pub async fn print(self) -> Result<(), Failure> {
        follow(&self.client, &FOLLOW.call(), Some(self.last.to_string()), None, Output::default()).await
    }
}

impl Options {
    /// What to ask for, of this `run` only, if given.
    fn call(&self, run: Option<String>) -> Call {
        let host = self.host.as_ref().map(ToString::to_string);
        let filters = [("kinds", self.kinds.clone()), ("run", run), ("host", host)];
        let add = |call: Call, (name, value): (&'static str, Option<String>)| match value {
            Some(value) => call.with(name, value),
            None => call,
        };
        filters.into_iter().fold(FOLLOW.call(), add)
    }

    /// Prints what has happened so far.
    async fn show(
        &self,
        client: &Client,
        call: &Call,
        after: Option<String>,
        mut since: Option<DateTime<Utc>>,
    ) -> Result<(), Failure> {
        let until = position(&mut client.stream(call, None).await?).await?;
        let from = after.as_deref().unwrap_or(BEGINNING);
        let mut stream = client.stream(call, Some(from)).await?;
        let mut is_empty = true;
        while let Some(block) = stream.next().await? {
            if let Some(data) = &block.data {
                is_empty &= !print(data, after.is_some(), &mut since, self.remote.output)?;
            }
            let id: Option<EventId> = block.id.as_deref().and_then(|id| id.parse().ok());
            if id.is_some_and(|id| id.fact >= until.fact) {
                if is_empty {
                    self.remote.output.aside("there is no such event");
                    if let Some(host) = &self.host {
                        note_unknown(client, host, self.remote.output).await;
                    }
                }
                return Ok(());
            }
        }
        Err(anyhow::anyhow!("the stream of events has ended early").into())
    }
}

/// Prints what happens after the event `last`, or from now on, and never returns unless events are refused.
async fn follow(
    client: &Client,
    call: &Call,
    mut last: Option<String>,
    mut since: Option<DateTime<Utc>>,
    output: Output,
) -> Result<(), Failure> {
    let asks_for_all = since.is_none();
    let mut is_first = true;
    loop {
        match client.stream(call, last.as_deref()).await {
            Ok(mut stream) => {
                while let Some(block) = stream.next().await? {
                    if let Some(data) = &block.data {
                        // Nobody asked for what was there before the first event.
                        print(data, asks_for_all || !is_first, &mut since, output)?;
                    }
                    last = block.id.or(last);
                }
            }
            Err(error) if !is_first && may_pass(&error) => errln!("{error:#}; trying again"),
            Err(error) => return Err(error.into()),
        }
        is_first = false;
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

/// Prints an event, unless it happened before `since`, and says whether it did. `since` is over with the first event after it.
/// `shows_reset` is whether the operator has asked for what may be missing.
fn print(
    data: &str,
    shows_reset: bool,
    since: &mut Option<DateTime<Utc>>,
    output: Output,
) -> Result<bool, Failure> {
    let data: Value = serde_json::from_str(data).map_err(anyhow::Error::from)?;
    if data["kind"] == (SiteEvent::Reset { earliest: None }).kind() {
        if !shows_reset {
            return Ok(false);
        }
    } else if let Some(begin) = *since {
        if happened_before(&data, begin) {
            return Ok(false);
        }
        *since = None;
    }
    output.show_one_of_many(&data, |zone| line(&data, |time| zone.time(time)))?;
    Ok(true)
}

/// Whether an event happened before `since`. Progress has no time: it is of the event before it.
fn happened_before(data: &Value, since: DateTime<Utc>) -> bool {
    let at = data["time"].as_str().and_then(|time| time.parse::<DateTime<Utc>>().ok());
    at.is_none_or(|at| at < since)
}

/// The id of the last event so far, with which a stream begins.
async fn position(stream: &mut EventStream) -> anyhow::Result<EventId> {
    while let Some(block) = stream.next().await? {
        if let Some(id) = block.id {
            return Ok(id.parse()?);
        }
    }
    anyhow::bail!("the stream of events has ended early")
}

/// The id of the last run, if there has been one.
async fn last_run(client: &Client) -> anyhow::Result<Option<String>> {
    let page = client.call(runs::LIST.call().with("limit", "1").with("keys", "true")).await?;
    Ok(page["items"][0].as_str().map(ToOwned::to_owned))
}

/// An event on a line. Kinds that a later version adds are shown by their name.
fn line(data: &Value, time: impl Fn(&str) -> String) -> String {
    let event: Result<Event, _> = serde::Deserialize::deserialize(data);
    let what = match &event {
        Ok(event) => describe(&event.what).to_string(),
        Err(_) => data["kind"].as_str().unwrap_or("an event without a kind").to_owned(),
    };
    let what = os_upgrade_protocol::text::one_line(&what, usize::MAX);
    match data["time"].as_str() {
        Some(at) => format!("{}  {what}", time(at)),
        // Under the others, which have a time.
        None => match event.map(|event| event.what) {
            Ok(SiteEvent::Progress { .. }) => format!("{:25}  {what}", ""),
            _ => what,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_before_a_time_are_left_out() {
        let since = "2026-11-21T01:00:00Z".parse().unwrap();
        let before = |data: Value| happened_before(&data, since);
        assert!(before(json!({"time": "2026-11-21T00:59:59.999Z"})));
        assert!(!before(json!({"time": "2026-11-21T01:00:00.000Z"})));
        // Of something that is before, unless an event has come since.
        assert!(before(json!({"kind": "progress"})));
    }

    #[test]
    fn events_are_lines() {
        let shown = |data: Value| line(&data, ToOwned::to_owned);
        let at = "2026-11-21T01:24:07.120Z";
        for (data, expected) in [
            (
                json!({
                    "time": at, "kind": "run-started", "run": "r1", "trigger": "operator", "actor": "eve",
                    "reason": "a security update", "not-after": at, "hosts": 2, "skipped": 1,
                }),
                format!("{at}  run r1 started by eve (2 hosts, 1 skipped): a security update"),
            ),
            (
                json!({
                    "time": at, "kind": "run-stopping", "run": "r1", "cause": "cancelled", "actor": "eve",
                    "reason": "the power fails",
                }),
                format!("{at}  run r1 starts no further host, cancelled by eve: the power fails"),
            ),
            (
                json!({
                    "time": at, "kind": "config-changed", "actor": "eve", "deleted": false,
                    "changed": ["rollout/max-failures", "start-jitter"], "changed-more": 3,
                }),
                format!("{at}  configuration changed by eve: rollout/max-failures, start-jitter and 3 more"),
            ),
            (
                json!({"time": at, "kind": "config-changed", "actor": "eve", "deleted": false}),
                format!("{at}  configuration changed by eve"),
            ),
            (
                json!({"time": at, "kind": "run-ended", "run": "r1", "result": "failed"}),
                format!("{at}  run r1 failed"),
            ),
            (
                json!({
                    "time": at, "kind": "host", "run": "r1", "host": "h\u{1b}1", "status": "failed", "step": "failed",
                    "why": { "kind": "worker-error", "text": "upgrade failed: no space" },
                }),
                format!("{at}  h\u{fffd}1 failed: upgrade failed: no space"),
            ),
            (
                json!({"kind": "progress", "run": "r1", "host": "h1", "action": "upgrade", "percent": 40, "text": "x"}),
                format!("{:25}  h1 upgrade 40 % x", ""),
            ),
            (
                json!({"time": at, "kind": "node", "host": "h1", "step": "waiting", "reason": "pod shop/db-0 is terminating"}),
                format!("{at}  node of h1 waits: pod shop/db-0 is terminating"),
            ),
            (
                json!({"time": at, "kind": "node", "host": "h1", "step": "uncordon-requested", "reason": "mended", "actor": "eve"}),
                format!("{at}  node of h1 is to be uncordoned by eve: mended"),
            ),
            (
                json!({"time": at, "kind": "node", "host": "h1", "step": "uncordoned"}),
                format!("{at}  node of h1 uncordoned"),
            ),
            (json!({"time": at, "kind": "of-a-later-version"}), format!("{at}  of-a-later-version")),
            (json!({"kind": "reset"}), "events are missing here: they are no longer kept".to_owned()),
        ] {
            assert_eq!(shown(data), expected);
        }
    }
}
