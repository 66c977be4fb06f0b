//! `os-upgrade strongbox`: the site's secrets, and the key that seals them.

use std::io::Read as _;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use os_upgrade_api_types::routes::strongbox::{self as routes, SecretValue, StrongboxKey};
use os_upgrade_kernel::SecretName;
use os_upgrade_site::strongbox::SECRET_BYTES_MAX;
use os_upgrade_site::strongbox::key::Key;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::output::{Output, outln, table};
use crate::rest::{self, Server};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a new key
    ///
    /// Keep it safe: without it the secrets are lost. Put it into the file of `[strongbox] key-file` of every instance, or
    /// give it to `unseal` after each start.
    Key,
    /// Show whether an instance can use the secrets
    Status(ReadOptions),
    /// Give an instance the key, which is read from standard input
    Unseal(Server),
    /// Store a secret, which is read from standard input; one line break at its end is dropped
    Put(SecretOptions),
    /// List the secrets, without their values
    List(ReadOptions),
    /// Remove a secret
    Remove(SecretOptions),
    /// Show who stored and removed which secrets, newest first
    History(HistoryOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ReadOptions {
    #[command(flatten)]
    server: Server,
    /// The output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryOptions {
    /// How many to show, newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    read: ReadOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SecretOptions {
    #[command(flatten)]
    server: Server,
    /// The name of the secret
    #[arg(value_name = "NAME", value_parser = SecretName::new)]
    name: SecretName,
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Key => outln!("{}", *Key::random()?.reveal()),
        Command::Status(ReadOptions { server, output }) => {
            show(&rest::call(&server, &routes::READ).await?, output, status)?;
        }
        Command::Unseal(server) => {
            let key = standard_input()?;
            let body = StrongboxKey { key: key.trim().to_owned() };
            rest::call_with_body(&server, &routes::UNSEAL, &body).await?;
            outln!("unsealed");
        }
        Command::Put(SecretOptions { server, name }) => {
            let value = standard_input()?;
            let value = value.strip_suffix('\n').unwrap_or(&value);
            let body = SecretValue { value: value.to_owned() };
            rest::call_with_body(&server, routes::PUT.named([name.as_str()]), &body).await?;
            outln!("stored: {name}");
        }
        Command::List(ReadOptions { server, output }) => {
            show(&rest::call(&server, &routes::LIST).await?, output, list)?;
        }
        Command::Remove(SecretOptions { server, name }) => {
            rest::call(&server, routes::REMOVE.named([name.as_str()])).await?;
            outln!("removed: {name}");
        }
        Command::History(HistoryOptions { limit, read: ReadOptions { server, output } }) => {
            let call = routes::HISTORY.call().with("limit", limit.to_string());
            show(&rest::call(&server, call).await?, output, history)?;
        }
    }
    Ok(())
}

fn standard_input() -> anyhow::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let limit = SECRET_BYTES_MAX as u64 + 2;
    std::io::stdin().take(limit).read_to_string(&mut text).context("cannot read standard input")?;
    if text.trim().is_empty() {
        bail!("standard input is empty");
    }
    Ok(text)
}

fn show(answer: &Value, output: Output, text: fn(&Value) -> String) -> anyhow::Result<()> {
    match output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(answer)?),
        Output::Text => outln!("{}", text(answer).trim_end()),
    }
    Ok(())
}

fn status(answer: &Value) -> String {
    let secrets = &answer["secrets"];
    match answer["reason"].as_str() {
        Some(reason) => format!("{secrets} secrets; {reason}"),
        None => format!("{secrets} secrets; not sealed"),
    }
}

fn list(answer: &Value) -> String {
    table(&["NAME", "STORED BY", "SINCE"], rows(&answer["secrets"], ["name", "actor", "since"]))
}

fn history(answer: &Value) -> String {
    let mut rows = rows(&answer["items"], ["time", "actor", "type", "name"]);
    if rows.is_empty() {
        return "no secret has been stored or removed".to_owned();
    }
    for did in rows.iter_mut().filter_map(|row| row.get_mut(2)) {
        let word = match did.as_str() {
            "secret-kept" => "stored",
            "secret-removed" => "removed",
            "strongbox-made" => "new key",
            other => other,
        };
        *did = word.to_owned();
    }
    table(&["TIME", "WHO", "ACTION", "SECRET"], rows)
}

fn rows<const N: usize>(entries: &Value, fields: [&str; N]) -> Vec<Vec<String>> {
    let row =
        |entry: &Value| fields.map(|field| entry[field].as_str().unwrap_or_default().to_owned()).to_vec();
    entries.as_array().into_iter().flatten().map(row).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn history_in_a_table() {
        let item = |kind: &str| json!({"time": "2026-11-21T01:00:00.000Z", "actor": "api", "type": kind, "name": "x"});
        let made = json!({"time": "2026-11-21T01:00:00.000Z", "type": "strongbox-made"});
        let answer = json!({"items": [item("secret-removed"), item("secret-kept"), made], "next": "9.0"});
        let expected = "\
TIME                      WHO  ACTION   SECRET
2026-11-21T01:00:00.000Z  api  removed  x
2026-11-21T01:00:00.000Z  api  stored   x
2026-11-21T01:00:00.000Z       new key";
        assert_eq!(history(&answer).trim_end(), expected);
        assert_eq!(history(&json!({"items": []})), "no secret has been stored or removed");
    }
}
