//! `os-upgrade config`: the configuration of a site's upgrades, read and changed.
//!
//! Every change goes the same way: the API says what the configuration would be and what would follow, both are shown, the
//! operator agrees, and the change is sent under the tag of the configuration that was read.

mod difference;
mod editor;
mod history;
mod proposal;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use os_upgrade_api_types::route::{Dialect, JSON};
use os_upgrade_api_types::routes::config as routes;
use os_upgrade_kernel::FactCursor;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::proposal::{Change, Read};
use super::options::Remote;
use crate::Failure;
use crate::consent::Yes;
use crate::output::{Canvas, View};
use crate::text_file;

/// Largest file that is sent, in bytes: as much as the API takes.
const FILE_BYTES_MAX: usize = Dialect::Specification.body_bytes_max();

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the configuration as YAML
    #[command(after_help = examples!["config get > os-upgrade.yaml", "config get -o json"])]
    Get(Get),
    /// Change one field; lists are replaced as a whole
    ///
    /// The value is JSON, or else a text. null takes the field away, so that its default applies; that of a list is an empty one. To
    /// change one entry of a list, use `config edit`.
    #[command(after_help = examples![
        "config set rollout.max-concurrent 2",
        "config set start-jitter 10m --yes",
        "config set worker-applications '[{\"name\": \"os-upgrade-debian\"}]'",
        "config set maintenance-windows '[{\"days-of-week\": \"Saturday\", \"start-time\": \"02:00\", \"duration\": \"4h\", \"timezone\": \"Europe/Berlin\"}]'",
    ])]
    Set(Set),
    /// Change the configuration in the editor of VISUAL or EDITOR
    ///
    /// A configuration that is refused is opened again, with the reason as a comment. If it is left as it is, nothing is
    /// changed.
    #[command(after_help = examples!["config edit"])]
    Edit(Edit),
    /// Replace the configuration by a file, or create it
    ///
    /// What would change is shown, and what would follow, before it is made. It is refused if somebody else has changed the
    /// configuration meanwhile.
    #[command(after_help = examples!["config apply -f os-upgrade.yaml --diff", "config apply -f os-upgrade.yaml --yes"])]
    Apply(Apply),
    /// List the changes of the configuration, or show one of them
    #[command(after_help = examples!["config history", "config history 12"])]
    History(history::Options),
    /// Put the configuration back that an earlier change made
    #[command(after_help = examples!["config rollback 12"])]
    Rollback(Rollback),
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The field, such as rollout.max-concurrent
    #[arg(value_name = "KEY", value_parser = key)]
    key: Key,
    /// Its value
    #[arg(value_name = "VALUE")]
    value: String,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The file, in YAML or JSON; - reads standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Only show what would change, and what would follow
    #[arg(long, conflicts_with = "yes")]
    diff: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// The number of the change, as `config history` lists it
    #[arg(value_name = "N", value_parser = history::change_number)]
    change: FactCursor,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    remote: Remote,
}

/// A configuration, which people read as YAML.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Configuration(Value);

impl View for Configuration {
    fn text(&self, _: &Canvas) -> String {
        difference::yaml(&self.0).trim_end().to_owned()
    }
}

/// The names that lead to a field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(Vec<String>);

fn key(text: &str) -> Result<Key, String> {
    // Errors and warnings write slashes, as paths of the API do.
    let names: Vec<String> = text.split(['.', '/']).map(ToOwned::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err("names with dots between them are expected, such as rollout.max-concurrent".to_owned());
    }
    if names.iter().any(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let message = "a list is set as a whole, such as `config set maintenance-windows '[...]'`; \
                       `os-upgrade config edit` changes one entry";
        return Err(message.to_owned());
    }
    Ok(Key(names))
}

/// The merge patch that gives the field at `key` this value.
///
/// # Errors
/// The value begins as JSON does that is no plain word, and is none.
fn merge_patch(key: &Key, value: &str) -> Result<Value, String> {
    let value = match serde_json::from_str(value) {
        Ok(json) => json,
        Err(error) if value.trim_start().starts_with(['{', '[', '"']) => {
            return Err(format!("the value is not valid JSON: {error}"));
        }
        Err(_) => Value::String(value.to_owned()),
    };
    Ok(key.0.iter().rev().fold(value, |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)]))))
}

/// Carries the command out.
pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Get(Get { remote }) => {
            remote.output.show::<Configuration>(&remote.client()?.call(&routes::READ).await?)
        }
        Command::Set(Set { key, value, yes, remote }) => {
            let patch = merge_patch(&key, &value).map_err(Failure::Usage)?;
            let client = remote.client()?;
            let current = Read::of(&client).await?;
            let change = Change::Patch(patch);
            proposal::make(&client, &current, &change, Some(yes.consent()), remote.output).await
        }
        Command::Edit(Edit { yes, remote }) => {
            editor::edit(&remote.client()?, yes.consent(), remote.output).await
        }
        Command::Apply(Apply { file, diff, yes, remote }) => {
            let consent = if diff { None } else { Some(yes.consent()) };
            let text = read(&file).map_err(|error| Failure::unusable(&error))?;
            let client = remote.client()?;
            let current = Read::of(&client).await?;
            proposal::make(&client, &current, &Change::of_text(text), consent, remote.output).await
        }
        Command::History(options) => history::run(options).await,
        Command::Rollback(Rollback { change, yes, remote }) => {
            let client = remote.client()?;
            let found = history::find(&client, change).await.map_err(Failure::unchanged)?;
            let (earlier, configuration) = (found.earlier.clone(), configuration_of(&found)?);
            let current = Read::of(&client).await?;
            if configuration == current.configuration {
                remote.output.note(&in_force(earlier.as_deref()));
                return Ok(());
            }
            let text = configuration.to_string().into_bytes();
            let change = Change::Replace { text, media_type: JSON };
            proposal::make(&client, &current, &change, Some(yes.consent()), remote.output).await
        }
    }
}

/// The configuration that an earlier change made.
fn configuration_of(found: &history::Shown) -> Result<Value, Failure> {
    history::configuration(&found.change).cloned().ok_or_else(|| {
        Failure::unchanged(anyhow!(
            "that change deleted the configuration: DELETE {} does so",
            routes::DELETE.path()
        ))
    })
}

/// That what a change has made is in force. `earlier` is the number of the change before it.
fn in_force(earlier: Option<&str>) -> String {
    let what = "nothing changes: what that change has made is in force";
    match earlier {
        Some(earlier) => format!(
            "{what}; `os-upgrade config rollback {earlier}` takes it back, and `os-upgrade config history` lists others"
        ),
        None => format!("{what}, and it was the first"),
    }
}

/// Reads the file of a configuration.
fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let name = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let mut text = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    let read = if file == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut text))
    };
    read.with_context(|| format!("cannot read {name}"))?;
    anyhow::ensure!(text.len() <= FILE_BYTES_MAX, "{name} has more than {FILE_BYTES_MAX} bytes");
    Ok(text_file::text(text).map_err(|why| anyhow!("{name}: {why}"))?.into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rollback_to_what_is_in_force_names_the_change_before() {
        assert!(in_force(Some("9")).contains("`os-upgrade config rollback 9` takes it back"));
        assert!(in_force(None).ends_with("it was the first"));
    }

    #[test]
    fn keys_and_values_become_a_merge_patch() {
        for (text, value, expected) in [
            ("rollout.max-concurrent", "2", json!({"rollout": {"max-concurrent": 2}})),
            ("start-jitter", "10m", json!({"start-jitter": "10m"})),
            ("start-jitter", "null", json!({"start-jitter": null})),
            ("deny-windows", "[]", json!({"deny-windows": []})),
            ("rollout.unreachable", "\"fail\"", json!({"rollout": {"unreachable": "fail"}})),
        ] {
            assert_eq!(merge_patch(&key(text).unwrap(), value), Ok(expected), "{text} {value}");
        }
        for wrong in ["[{\"name\": \"a\"]", "{name: a}", " \"10m"] {
            let refused = merge_patch(&key("worker-applications").unwrap(), wrong).unwrap_err();
            assert!(
                refused.starts_with("the value is not valid JSON: ") && refused.contains("column"),
                "{refused}"
            );
        }
        for wrong in ["", ".", "rollout.", "a..b"] {
            assert!(key(wrong).is_err(), "{wrong:?}");
        }
        for entry in ["config-providers.0", "config-providers/0/poll-interval"] {
            let refused = key(entry).unwrap_err();
            assert!(refused.ends_with("`os-upgrade config edit` changes one entry"), "{refused}");
        }
    }
}
