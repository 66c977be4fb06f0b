//! Configuration of an orchestrator: a TOML file, overridden by the environment, checked as a whole.
//!
//! Three types, each made from the one before: [`Document`](document::Document) is the content of the file,
//! [`Merged`](merged::Merged) adds the environment, [`Settings`] is validated. Problems of all three are collected and
//! reported together. The keys, with types, defaults and help, are declared once, in [`schema`]; `config/os-upgrade.toml`
//! is generated from there.
//!
//! Every key is also a variable `OS_UPGRADE_<SECTION>__<KEY>`: `[fleet-lock] retry-interval` is
//! `OS_UPGRADE_FLEET_LOCK__RETRY_INTERVAL`, `[api.tls] cert` is `OS_UPGRADE_API_TLS__CERT`, and `[fleet-lock.groups]` as
//! a whole is `OS_UPGRADE_FLEET_LOCK__GROUPS=default=1,workers=2`. An empty variable counts as unset; variables without `__` in
//! their name are ignored. Relative paths are relative to the current directory.

mod cluster;
mod document;
mod merged;
mod problem;
mod raw;
mod reboot_commands;
mod rules;
mod schema;
mod section;
mod value;
mod warning;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

pub use cluster::{Cluster, ClusterAccess, NodeFrom};
pub use problem::{Error, Origin, Problem};
pub use reboot_commands::RebootCommands;
pub use rules::NatsMode;
pub use schema::{
    Api, ApiOidc, ApiTls, FleetLock, Kubernetes, Nats, Reboot, SECTIONS, Settings, Site, Store, Strongbox,
};
pub use section::{Initial, Key, Section};
pub use value::{
    Bounded, CommandWords, FailedNode, FleetSocketRole, Groups, HttpUrl, Interval, Jwks, LabelOperator,
    LabelRequirement, LabelSelector, NatsUrls, NodeNames, NodeSource, Shape, SiteName, StringList, Text,
};
pub use warning::Warning;

/// The largest configuration file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The settings from `file`, if given, and `environment` (such as [`std::env::vars_os`]). Keys in neither have their
/// defaults.
///
/// # Errors
/// The file cannot be read, or the configuration is invalid; [`Error`] has every problem.
pub fn load(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Settings, Error> {
    let text = file.map_or_else(|| Ok(String::new()), read)?;
    parse(file, &text, environment)
}

/// Whether `environment` sets a key, be it one that does not exist.
pub fn has_variable(environment: impl IntoIterator<Item = (OsString, OsString)>) -> bool {
    let mut environment = environment.into_iter();
    environment.any(|(name, value)| name.to_str().is_some_and(merged::is_ours) && !value.is_empty())
}

/// The settings from `text` and `environment`. `file` is the path of the text, for error messages.
///
/// # Errors
/// The configuration is invalid; [`Error`] has every problem.
pub fn parse(
    file: Option<&Path>,
    text: &str,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Settings, Error> {
    let mut problems = Vec::new();
    let document = document::Document::parse(text, &mut problems);
    let merged = merged::Merged::new(schema::SCHEMA, document.values, environment, &mut problems);
    let settings = rules::validate(&merged, &mut problems);
    match settings {
        Some(settings) if problems.is_empty() => Ok(settings),
        Some(_) | None => Err(Error::invalid(file, problems)),
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |detail: String| Error::Unreadable { path: path.to_owned(), detail };
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!("{} bytes, more than {FILE_BYTES_MAX}", bytes.len())));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))
}

/// The text of a configuration file with every key, its default and its help.
pub fn default_file() -> String {
    let head = "# Every key of the configuration with its default; a key without one is commented out.\n\
                # Each is also an environment variable, OS_UPGRADE_<SECTION>__<KEY>, which wins over the file:\n\
                # OS_UPGRADE_FLEET_LOCK__RETRY_INTERVAL=30s\n";
    let sections = SECTIONS.iter().map(Section::as_toml);
    std::iter::once(head.to_owned()).chain(sections).collect()
}

#[cfg(test)]
mod tests;
