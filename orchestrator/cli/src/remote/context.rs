//! `os-upgrade context`: named instances in the user's configuration directory.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use os_upgrade_console::{Column, Row};
use os_upgrade_settings::HttpUrl;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Failure;
use crate::address::DEFAULT_URL;
use crate::contexts::{self, Context, ContextName, Contexts, URLS_MAX, context_url};
use crate::output::Output;
use crate::rest::URL_VARIABLE;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add an instance under a name, or several of a site; the first context becomes the current one
    ///
    /// Several instances are tried in the order of their --url until one can be reached.
    ///
    /// Contexts are in the file os-upgrade/contexts.toml of the user's configuration directory, `XDG_CONFIG_HOME` or ~/.config.
    /// It has the names of token files, and never a token.
    #[command(after_help = examples![
        "context add home --url http://127.0.0.1:8646",
        "context add prod --url https://upgrade.example:8646 --ca ca.pem --token-file ~/.prod-token",
        "context add site --url https://a.example:8646 --url https://b.example:8646",
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
    /// The API of the instance; of several, the first that can be reached is called
    #[arg(long = "url", value_name = "URL", required = true, value_parser = context_url)]
    urls: Vec<HttpUrl>,
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
        Column::new("URL", |row, _| {
            row.context.urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }),
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
    let before = contexts.current.clone();
    let (changed, done, name, output) = match command {
        Command::List(output) => return output.show::<Vec<Listed>>(&json!(listed(&contexts))),
        Command::Add(Add { urls, .. }) if urls.len() > URLS_MAX => {
            return Err(Failure::Usage(format!("a context has at most {URLS_MAX} URLs")));
        }
        Command::Add(Add { name, urls, ca, token_file, output }) => {
            let context = Context { urls, ca: absolute(ca)?, token_file: absolute(token_file)? };
            (added(contexts, name.clone(), context), "added", name, output)
        }
        Command::Use(Named { name, output }) => (used(contexts, name.clone()), "using", name, output),
        Command::Remove(Named { name, output }) => (removed(contexts, &name), "removed", name, output),
    };
    let changed = changed.map_err(Failure::unchanged)?;
    contexts::write(&path, &changed).map_err(|error| Failure::Unknown(error.into()))?;
    output.done(done, &[name.as_str()])?;
    let variable = std::env::var(URL_VARIABLE).is_ok_and(|url| !url.trim().is_empty());
    if let Some(follows) = what_follows(done, before.as_ref(), changed.current.as_ref(), variable) {
        output.aside(&follows);
    }
    Ok(())
}

/// What an operator should know about the instance that commands call, now that a context was added, used or removed. `variable` is
/// whether the environment has a URL.
fn what_follows(
    done: &str,
    before: Option<&ContextName>,
    after: Option<&ContextName>,
    variable: bool,
) -> Option<String> {
    let uses = "`os-upgrade context use NAME` chooses another";
    match (before, after) {
        (Some(before), None) if variable => {
            Some(format!("{before} was the current context; commands call {URL_VARIABLE}"))
        }
        (Some(before), None) => {
            Some(format!("{before} was the current context; commands call {DEFAULT_URL} now: {uses}"))
        }
        (_, Some(after)) if variable && (done == "using" || before != Some(after)) => Some(format!(
            "{URL_VARIABLE} is set and comes before the current context: unset it, or give --context {after}"
        )),
        _ => None,
    }
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
        Context { urls: vec!["http://h/".parse().unwrap()], ca: None, token_file: None }
    }

    #[test]
    fn what_follows_is_told() {
        let [a, b] = ["a", "b"].map(name);
        let told =
            |done, before, after, variable| what_follows(done, before, after, variable).unwrap_or_default();
        let set = "OS_UPGRADE_URL is set and comes before the current context: unset it, or give --context b";
        assert_eq!(told("using", Some(&a), Some(&b), true), set);
        assert_eq!(told("using", Some(&b), Some(&b), true), set);
        assert_eq!(told("added", None, Some(&b), true), set, "the first one becomes the current one");
        assert_eq!(told("using", Some(&a), Some(&b), false), "");
        assert_eq!(told("added", Some(&b), Some(&b), true), "");
        let default = "a was the current context; commands call http://127.0.0.1:8646 now: `os-upgrade context use NAME` chooses another";
        assert_eq!(told("removed", Some(&a), None, false), default);
        assert_eq!(
            told("removed", Some(&a), None, true),
            "a was the current context; commands call OS_UPGRADE_URL"
        );
        assert_eq!(told("removed", Some(&a), Some(&a), false), "");
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
