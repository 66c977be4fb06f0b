//! `os-upgrade context`: named instances in the user's configuration directory.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use os_upgrade_settings::HttpUrl;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Failure;
use crate::contexts::{self, Context, ContextName, Contexts, context_url};
use crate::output::{Column, Output, Row};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add an instance under a name; the first one becomes the current one
    ///
    /// Contexts are in the file os-upgrade/contexts.toml of the user's configuration directory, `XDG_CONFIG_HOME` or ~/.config.
    /// It has the names of token files, and never a token.
    #[command(after_help = examples![
        "context add home --url http://127.0.0.1:8646",
        "context add prod --url https://upgrade.example:8646 --ca ca.pem --token-file ~/.prod-token",
    ])]
    Add(Add),
    /// Make a context the current one
    #[command(after_help = examples!["context use prod"])]
    Use(Named),
    /// List the contexts; the current one is marked
    #[command(after_help = examples!["context list", "context list -o wide"])]
    List(Output),
    /// Remove a context
    #[command(after_help = examples!["context remove home"])]
    Remove(Named),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name
    #[arg(value_name = "NAME")]
    name: ContextName,
    /// The API of the instance
    #[arg(long, value_name = "URL", value_parser = context_url)]
    url: HttpUrl,
    /// A PEM file with certificate authorities to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A file with the token to send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The name of the context
    #[arg(value_name = "NAME")]
    name: ContextName,
    #[command(flatten)]
    output: Output,
}

/// A context as it is listed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    name: String,
    is_current: bool,
    #[serde(flatten)]
    context: Context,
}

impl Row for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CURRENT", |row, _| if row.is_current { "*" } else { "" }.to_owned()),
        Column::new("NAME", |row, _| row.name.clone()),
        Column::new("URL", |row, _| row.context.url.to_string()),
        Column::wide("CA", |row, _| shown(row.context.ca.as_deref())),
        Column::wide("TOKEN FILE", |row, _| shown(row.context.token_file.as_deref())),
    ];
    const NONE: &'static str = "there is no context; `os-upgrade context add` adds one";

    fn name(&self) -> Option<String> {
        Some(self.name.clone())
    }
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(|| "-".to_owned(), |path| path.display().to_string())
}

/// Carries the command out.
pub(super) fn run(command: Command) -> Result<(), Failure> {
    let path = contexts::path(|name| std::env::var(name).ok()).map_err(anyhow::Error::from)?;
    let contexts = contexts::read(&path).map_err(anyhow::Error::from)?;
    let (changed, done, name, output) = match command {
        Command::List(output) => return output.show::<Vec<Listed>>(&json!(listed(&contexts))),
        Command::Add(Add { name, url, ca, token_file, output }) => {
            let context = Context { url, ca: absolute(ca)?, token_file: absolute(token_file)? };
            (added(contexts, name.clone(), context), "added", name, output)
        }
        Command::Use(Named { name, output }) => (used(contexts, name.clone()), "using", name, output),
        Command::Remove(Named { name, output }) => (removed(contexts, &name), "removed", name, output),
    };
    let changed = changed.map_err(Failure::unchanged)?;
    contexts::write(&path, &changed).map_err(|error| Failure::Unknown(error.into()))?;
    output.done(done, &[name.as_str()])
}

/// The path as any directory reaches it.
fn absolute(path: Option<PathBuf>) -> anyhow::Result<Option<PathBuf>> {
    path.map(std::path::absolute).transpose().context("cannot find the current directory")
}

fn listed(contexts: &Contexts) -> Vec<Listed> {
    let listed = |(name, context): (&ContextName, &Context)| Listed {
        name: name.to_string(),
        is_current: contexts.current.as_ref() == Some(name),
        context: context.clone(),
    };
    contexts.contexts.iter().map(listed).collect()
}

fn added(mut contexts: Contexts, name: ContextName, context: Context) -> anyhow::Result<Contexts> {
    if contexts.contexts.contains_key(&name) {
        return Err(anyhow!("there is a context {name} already: remove it first, or give another name"));
    }
    if contexts.contexts.is_empty() {
        contexts.current = Some(name.clone());
    }
    contexts.contexts.insert(name, context);
    Ok(contexts)
}

fn used(contexts: Contexts, name: ContextName) -> anyhow::Result<Contexts> {
    contexts.named(&name)?;
    Ok(Contexts { current: Some(name), ..contexts })
}

fn removed(mut contexts: Contexts, name: &ContextName) -> anyhow::Result<Contexts> {
    contexts.named(name)?;
    contexts.contexts.remove(name);
    contexts.current = contexts.current.filter(|current| current != name);
    Ok(contexts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ContextName {
        text.parse().unwrap()
    }

    fn context() -> Context {
        Context { url: "http://h/".parse().unwrap(), ca: None, token_file: None }
    }

    #[test]
    fn contexts_are_added_used_and_removed() {
        let one = added(Contexts::default(), name("a"), context()).unwrap();
        assert_eq!(one.current, Some(name("a")));
        let two = added(one.clone(), name("b"), context()).unwrap();
        assert_eq!(two.current, Some(name("a")));
        assert!(added(two.clone(), name("b"), context()).is_err());
        assert_eq!(used(two.clone(), name("b")).unwrap().current, Some(name("b")));
        assert!(used(two.clone(), name("c")).is_err());
        assert_eq!(removed(two.clone(), &name("b")).unwrap(), one);
        assert_eq!(removed(two.clone(), &name("a")).unwrap().current, None);
        assert!(removed(two, &name("c")).is_err());
    }
}
