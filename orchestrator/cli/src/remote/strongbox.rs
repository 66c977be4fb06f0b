//! `os-upgrade strongbox`: the site's secrets, and the key that seals them.

use std::io::Read as _;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::strongbox::{
    self as routes, Secret, SecretValue, Secrets, Strongbox, StrongboxChange, StrongboxKey,
};
use os_upgrade_kernel::SecretName;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_provider_rules::Origin;
use os_upgrade_site::strongbox::SECRET_BYTES_MAX;
use os_upgrade_site::strongbox::key::Key;
use zeroize::Zeroizing;

use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View, outln};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a new key
    ///
    /// Keep it safe: without it the secrets are lost. Put it into the file of `[strongbox] key-file` of every instance, or
    /// give it to `unseal` after each start.
    #[command(after_help = examples!["strongbox key"])]
    Key,
    /// Show whether an instance can use the secrets
    #[command(after_help = examples!["strongbox status", "strongbox status -o json"])]
    Status(Remote),
    /// Give an instance the key, which is read from standard input
    #[command(after_help = examples!["strongbox unseal"])]
    Unseal(Remote),
    /// Store a secret, which is read from standard input; one line break at its end is dropped
    #[command(after_help = examples!["strongbox put smtp-password", "strongbox put files --origin https://files.example"])]
    Put(PutOptions),
    /// List the secrets, without their values
    #[command(after_help = examples!["strongbox list", "strongbox list -o name"])]
    List(Remote),
    /// Remove a secret
    #[command(after_help = examples!["strongbox remove smtp-password"])]
    Remove(SecretOptions),
    /// Show who stored and removed which secrets, newest first
    #[command(after_help = examples!["strongbox history", "strongbox history --limit 10"])]
    History(HistoryOptions),
}

#[derive(Debug, Args)]
pub(crate) struct HistoryOptions {
    /// How many to show, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct SecretOptions {
    /// The name of the secret
    #[arg(value_name = "NAME", value_parser = SecretName::new)]
    name: SecretName,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct PutOptions {
    /// The name of the secret
    #[arg(value_name = "NAME", value_parser = SecretName::new)]
    name: SecretName,
    /// The only server to which providers of configuration may send it
    #[arg(long, value_name = "URL", value_parser = Origin::new)]
    origin: Option<Origin>,
    #[command(flatten)]
    remote: Remote,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Key => {
            let key = Key::random().map_err(anyhow::Error::from)?;
            outln!("{}", *key.reveal());
            Ok(())
        }
        Command::Status(remote) => {
            let status = remote.client()?.call(&routes::READ).await?;
            remote.output.show::<Strongbox>(&status)
        }
        Command::Unseal(remote) => {
            let key = standard_input()?;
            let body = StrongboxKey { key: key.trim().to_owned() };
            remote.client()?.call_with_body(&routes::UNSEAL, &body).await?;
            remote.output.note("unsealed");
            Ok(())
        }
        Command::Put(PutOptions { name, origin, remote }) => {
            let value = standard_input()?;
            let value = value.strip_suffix('\n').unwrap_or(&value);
            let body = SecretValue { value: value.to_owned(), origin: origin.map(Into::into) };
            remote.client()?.call_with_body(routes::PUT.named([name.as_str()]), &body).await?;
            remote.output.done("stored", &[name.as_str()])
        }
        Command::List(remote) => {
            let list = remote.client()?.call(&routes::LIST).await?;
            remote.output.show::<Secrets<Secret<'_>>>(&list)
        }
        Command::Remove(SecretOptions { name, remote }) => {
            remote.client()?.call(routes::REMOVE.named([name.as_str()])).await?;
            remote.output.done("removed", &[name.as_str()])
        }
        Command::History(HistoryOptions { limit, remote }) => {
            let call = routes::HISTORY.call().with("limit", limit.to_string());
            let history = remote.client()?.call(call).await?;
            remote.output.show::<Page<StrongboxChange<'_>>>(&history)
        }
    }
}

/// What is to be sent.
///
/// # Errors
/// It cannot be read, or is nothing.
fn standard_input() -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let limit = SECRET_BYTES_MAX as u64 + 2;
    let read = std::io::stdin().take(limit).read_to_string(&mut text).context("cannot read standard input");
    read.map_err(|error| Failure::unusable(&error))?;
    if text.trim().is_empty() {
        return Err(Failure::Usage("standard input is empty".to_owned()));
    }
    Ok(text)
}

impl View for Strongbox {
    fn text(&self, _: &Canvas) -> String {
        let reason = self.reason.as_deref().unwrap_or("not sealed");
        format!("{} secrets; {}", self.secrets, sanitized(reason))
    }
}

impl View for Secrets<Secret<'static>> {
    fn text(&self, canvas: &Canvas) -> String {
        self.secrets.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.secrets.names()
    }

    fn none(&self) -> Option<String> {
        self.secrets.none()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn history_in_a_table() {
        let item = |kind: &str| json!({"sequence": 12, "place": 0, "time": "2026-11-21T01:00:00.000Z", "actor": "api", "type": kind, "name": "x"});
        let made =
            json!({"sequence": 12, "place": 0, "time": "2026-11-21T01:00:00.000Z", "type": "strongbox-made"});
        let answer = json!({"items": [item("secret-removed"), item("secret-kept"), made], "next": "9.0"});
        let expected = "\
TIME                  WHO  ACTION   SECRET
2026-11-21T01:00:00Z  api  removed  x
2026-11-21T01:00:00Z  api  stored   x
2026-11-21T01:00:00Z       new key";
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let history = |answer| Page::<StrongboxChange<'_>>::deserialize(answer).unwrap().text(&canvas);
        assert_eq!(history(answer), expected);
        assert_eq!(history(json!({"items": []})), "no secret has been stored or removed");
    }
}
