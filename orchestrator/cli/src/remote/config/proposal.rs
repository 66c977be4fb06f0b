//! A proposed change: what the API says of it, whether the operator agrees, and the change itself, under the tag of the
//! configuration that was read.

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::route::{Call, JSON};
use os_upgrade_api_types::routes::config::{self as routes, NextStarts, Warning};
use os_upgrade_console::Zone;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_shell::not_done::NotDone;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::difference;
use crate::Failure;
use crate::consent::Consent;
use crate::failure::Refused;
use crate::output::{Canvas, Output, View, errln};
use crate::rest::{self, Client, Reply, Sent};

/// The media type of YAML.
const YAML: &str = "application/yaml";

/// The configuration as it was read.
#[derive(Debug)]
pub(super) struct Read {
    /// As JSON; null if there is none.
    pub(super) configuration: Value,
    /// Its tag; absent if there is none.
    tag: Option<String>,
}

impl Read {
    /// Reads the configuration in force.
    pub(super) async fn of(client: &Client) -> Result<Self, Failure> {
        match client.exchange(&routes::READ.call(), Sent::default()).await {
            Ok(reply) => {
                let configuration = reply.json().map_err(Failure::unchanged)?;
                Ok(Self { configuration, tag: reply.etag })
            }
            Err(error) if status_of(&error) == Some(StatusCode::NOT_FOUND) => {
                Ok(Self { configuration: Value::Null, tag: None })
            }
            Err(error) => Err(Failure::unchanged(error)),
        }
    }

    /// The condition that the configuration is still this one.
    fn condition(&self) -> (&'static str, String) {
        match &self.tag {
            Some(tag) => ("if-match", tag.clone()),
            None => ("if-none-match", "*".to_owned()),
        }
    }
}

/// The status with which the API has refused a request.
fn status_of(error: &anyhow::Error) -> Option<StatusCode> {
    error.downcast_ref::<Refused>().map(|refused| refused.status)
}

/// A change of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// Another configuration instead.
    Replace {
        /// The configuration.
        text: Vec<u8>,
        /// What the text is.
        media_type: &'static str,
    },
    /// A merge patch.
    Patch(Value),
}

impl Change {
    /// Replaces the configuration by a text in JSON or YAML.
    pub(super) fn of_text(text: Vec<u8>) -> Self {
        // YAML 1.2 contains JSON, but the API's messages about JSON are better.
        let media_type = if text.trim_ascii_start().starts_with(b"{") { JSON } else { YAML };
        Self::Replace { text, media_type }
    }

    async fn send(&self, client: &Client, current: &Read, purpose: Purpose) -> anyhow::Result<Reply> {
        let mut headers = vec![current.condition()];
        headers.extend((purpose == Purpose::Preview).then(rest::prefer_result));
        let reply = match self {
            Self::Replace { text, media_type } => {
                let sent = Sent { headers, body: Some((media_type, text.clone())) };
                client.exchange(&purpose.of(routes::REPLACE.call()), sent).await
            }
            Self::Patch(patch) => {
                let sent = Sent { headers, body: Some((JSON, serde_json::to_vec(patch)?)) };
                client.exchange(&purpose.of(routes::CHANGE.call()), sent).await
            }
        };
        reply.map_err(|error| match status_of(&error) {
            Some(StatusCode::PRECONDITION_FAILED) => NotDone::unchanged(
                "somebody else has changed the configuration since it was read: run the command again to see what is in force",
            )
            .into(),
            _ => error,
        })
    }
}

/// What a change is sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To learn what would follow.
    Preview,
    /// To be made.
    Change,
}

impl Purpose {
    fn of<B>(self, call: Call<B>) -> Call<B> {
        match self {
            Self::Preview => call.with("validate", "true"),
            Self::Change => call,
        }
    }
}

/// What the API says of a change.
#[derive(Debug)]
pub(super) struct Preview {
    /// The answer.
    answer: Value,
    warnings: Vec<Warning>,
}

/// What the change does to the next start; `None` if nothing. In a window that is open at `now` something may keep a run from
/// starting; the warnings speak of a run that starts at once.
fn change_of_start(next: NextStarts, zone: Zone, now: DateTime<Utc>) -> Option<String> {
    let is_open = |time: Stamp| time.0 <= now;
    match (next.before, next.after) {
        (before, after) if before == after => None,
        (_, Some(after)) if is_open(after) => None,
        (Some(before), Some(after)) if is_open(before) => {
            Some(format!("the next run starts at {}", zone.stamp(after)))
        }
        (Some(before), None) if is_open(before) => Some("no run starts automatically".to_owned()),
        (Some(before), Some(after)) => {
            Some(format!("the next run starts at {} instead of {}", zone.stamp(after), zone.stamp(before)))
        }
        (None, Some(after)) => {
            Some(format!("the next run starts at {}; so far none starts automatically", zone.stamp(after)))
        }
        (Some(before), None) => {
            Some(format!("no run starts automatically; so far the next starts at {}", zone.stamp(before)))
        }
        (None, None) => None,
    }
}

/// A change that is shown: people see the difference, and when the next run starts if that differs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Shown {
    before: Value,
    configuration: Value,
    /// Absent if the instance is of a version that does not say.
    next_upgrade_at: Option<NextStarts>,
}

impl View for Shown {
    fn text(&self, canvas: &Canvas) -> String {
        let difference = difference::between(&self.before, &self.configuration, console::colors_enabled());
        let starts = self.next_upgrade_at.and_then(|next| change_of_start(next, canvas.zone, Utc::now()));
        difference + &starts.map(|starts| format!("\n\n{starts}")).unwrap_or_default()
    }
}

/// Asks the API what would be in force after `change`, and what would follow. Nothing is changed.
pub(super) async fn preview(client: &Client, current: &Read, change: &Change) -> anyhow::Result<Preview> {
    let reply = change.send(client, current, Purpose::Preview).await.map_err(certainly_unchanged)?;
    anyhow::ensure!(
        reply.status == StatusCode::OK,
        "this instance is of a version that does not say what would follow: use its own os-upgrade"
    );
    let answer: Value = reply.json()?;
    let warnings = Vec::deserialize(&answer["warnings"]).context("unexpected response")?;
    Ok(Preview { answer, warnings })
}

/// A preview changes nothing, whatever became of it.
fn certainly_unchanged(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<NotDone>() {
        Ok(not_done) => NotDone::unchanged(not_done.why()).into(),
        Err(refused) => refused,
    }
}

/// Shows `change`, and makes it if the operator agrees. Without a `consent` it is only shown.
pub(super) async fn make(
    client: &Client,
    current: &Read,
    change: &Change,
    consent: Option<Consent>,
    output: Output,
) -> Result<(), Failure> {
    let preview = preview(client, current, change).await.map_err(Failure::unchanged)?;
    carry_out(client, current, change, &preview, consent, output).await
}

/// Shows `change` as `preview` has it, and makes it if the operator agrees. Without a `consent` it is only shown.
pub(super) async fn carry_out(
    client: &Client,
    current: &Read,
    change: &Change,
    preview: &Preview,
    consent: Option<Consent>,
    output: Output,
) -> Result<(), Failure> {
    let Preview { answer, warnings } = preview;
    if answer["configuration"] == current.configuration {
        output.note("nothing changes");
        return Ok(());
    }
    let shown = json!({
        "before": current.configuration, "configuration": answer["configuration"], "warnings": answer["warnings"],
        "next-upgrade-at": answer["next-upgrade-at"],
    });
    // Whoever agreed in advance and wants quiet is told nothing; programs get their document.
    let is_told = !output.is_quiet() || consent != Some(Consent::Given);
    if is_told || !output.is_for_people() {
        output.show::<Shown>(&shown)?;
    }
    for Warning { message, .. } in warnings.iter().filter(|_| is_told) {
        errln!("warning: {}", sanitized(message));
    }
    let Some(consent) = consent else { return Ok(()) };
    consent.confirm("Make this change?")?;
    change.send(client, current, Purpose::Change).await?;
    output.note("changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_of_the_next_start_is_said() {
        let said = |before: Option<&str>, after: Option<&str>| {
            let time = |time: Option<&str>| {
                time.map(|day| Stamp(format!("2026-11-{day}T01:00:00Z").parse().unwrap()))
            };
            let now = "2026-11-20T01:00:00Z".parse().unwrap();
            let next = NextStarts { before: time(before), after: time(after) };
            change_of_start(next, Zone::Utc, now)
        };
        for (before, after, expected) in [
            (None, None, None),
            (Some("21"), Some("21"), None),
            (None, Some("20"), None),
            (Some("20"), Some("28"), Some("the next run starts at 2026-11-28T01:00:00Z")),
            (Some("20"), None, Some("no run starts automatically")),
            (
                Some("21"),
                Some("28"),
                Some("the next run starts at 2026-11-28T01:00:00Z instead of 2026-11-21T01:00:00Z"),
            ),
            (
                None,
                Some("28"),
                Some("the next run starts at 2026-11-28T01:00:00Z; so far none starts automatically"),
            ),
            (
                Some("21"),
                None,
                Some("no run starts automatically; so far the next starts at 2026-11-21T01:00:00Z"),
            ),
        ] {
            assert_eq!(said(before, after).as_deref(), expected, "{before:?} {after:?}");
        }
    }
}
