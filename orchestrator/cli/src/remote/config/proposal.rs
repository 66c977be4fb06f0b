//! A proposed change: what the API says of it, whether the operator agrees, and the change itself, under the tag of the
//! configuration that was read.

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;
use os_upgrade_api_types::headers::REPRESENTATION;
use os_upgrade_api_types::route::{Call, JSON};
use os_upgrade_api_types::routes::config as routes;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_shell::text::sanitized;
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::difference;
use crate::Failure;
use crate::output::{Canvas, Output, View, errln};
use crate::rest::{self, Client, Refused, Reply, Sent};

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
    pub(super) async fn of(client: &Client) -> anyhow::Result<Self> {
        match client.exchange(&routes::READ.call(), Sent::default()).await {
            Ok(reply) => Ok(Self { configuration: reply.json()?, tag: reply.etag }),
            Err(error) if status_of(&error) == Some(StatusCode::NOT_FOUND) => {
                Ok(Self { configuration: Value::Null, tag: None })
            }
            Err(error) => Err(rest::before_change(error)),
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
        headers.extend((purpose == Purpose::Preview).then(|| ("prefer", REPRESENTATION.to_owned())));
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
#[derive(Debug, Deserialize)]
pub(super) struct Preview {
    /// The configuration that would be in force.
    #[serde(default)]
    configuration: Value,
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Warning {
    message: String,
    #[serde(flatten)]
    details: Map<String, Value>,
}

/// A change that is shown: people see the difference.
#[derive(Debug, Deserialize)]
struct Shown {
    before: Value,
    configuration: Value,
}

impl View for Shown {
    fn text(&self, _: &Canvas) -> String {
        difference::between(&self.before, &self.configuration, console::colors_enabled())
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// How the operator agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// In advance.
    Given,
    /// When asked.
    Asked,
    /// Not at all: the change is only shown.
    Refused,
}

/// Asks the API what would be in force after `change`, and what would follow. Nothing is changed.
pub(super) async fn preview(client: &Client, current: &Read, change: &Change) -> anyhow::Result<Preview> {
    let reply = change.send(client, current, Purpose::Preview).await.map_err(certainly_unchanged)?;
    anyhow::ensure!(
        reply.status == StatusCode::OK,
        "this instance is of a version that does not say what would follow: use its own os-upgrade"
    );
    reply.json().context("unexpected response")
}

/// A preview changes nothing, whatever became of it.
fn certainly_unchanged(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<NotDone>() {
        Ok(not_done) => NotDone::unchanged(not_done.why()).into(),
        Err(refused) => refused,
    }
}

/// Shows `change`, and makes it if the operator agrees.
pub(super) async fn make(
    client: &Client,
    current: &Read,
    change: &Change,
    answer: Answer,
    output: Output,
) -> Result<(), Failure> {
    let preview = preview(client, current, change).await?;
    carry_out(client, current, change, &preview, answer, output).await
}

/// Shows `change` as `preview` has it, and makes it if the operator agrees.
pub(super) async fn carry_out(
    client: &Client,
    current: &Read,
    change: &Change,
    preview: &Preview,
    answer: Answer,
    output: Output,
) -> Result<(), Failure> {
    let Preview { configuration, warnings } = preview;
    if *configuration == current.configuration {
        output.note("nothing changes");
        return Ok(());
    }
    let shown = json!({
        "before": current.configuration, "configuration": configuration, "warnings": warnings,
    });
    output.show::<Shown>(&shown)?;
    for Warning { message, .. } in warnings {
        errln!("warning: {}", sanitized(message));
    }
    let agreed = match answer {
        Answer::Given => true,
        Answer::Asked => ask()?,
        Answer::Refused => return Ok(()),
    };
    if !agreed {
        return Err(Failure::Runtime(NotDone::unchanged("it was not agreed to").into()));
    }
    change.send(client, current, Purpose::Change).await?;
    output.note("changed");
    Ok(())
}

/// Asks on the terminal.
fn ask() -> anyhow::Result<bool> {
    let mut said = String::new();
    let mut error = std::io::stderr();
    write!(error, "Make this change? [y/N] ").and_then(|()| error.flush()).context("cannot ask")?;
    std::io::stdin().lock().read_line(&mut said).context("cannot read the answer")?;
    Ok(matches!(said.trim(), "y" | "Y" | "yes"))
}
