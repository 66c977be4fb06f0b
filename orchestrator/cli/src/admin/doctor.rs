//! `os-upgrade doctor`: checks everything a site needs, and prints what is wrong and what to do. It changes
//! nothing that lasts, and works while orchestrator and NATS are down.

mod access;
mod bus;
mod check;
mod cluster;
mod commands;
mod configuration;
mod files;
mod fleet_socket;
mod hosts;
mod kept;
mod limits;
mod remote;
mod rights;
mod subject;
mod zone_data;

use std::env::vars_os;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use os_upgrade_protocol::text::sanitized;
use os_upgrade_settings::{self as settings, Settings};

use self::check::{Check, Verdict};
use self::subject::Subject;
use crate::Failure;
use crate::dev_site;
use crate::lines::errln;
use crate::output::Format;
use crate::rest::{Client, Server};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The configuration of this machine, a TOML file; without it that of a running `os-upgrade dev`, or else the default of every key
    /// that no variable sets
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "context"])]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Prints every check of this machine or of an instance; fails if there is a problem.
pub(crate) async fn run(options: Doctor) -> Result<(), Failure> {
    let Doctor { config, server, output } = &options;
    let has_variable = settings::has_variable(vars_os());
    let target = server.target();
    let origin = target.as_ref().map(|target| &target.origin);
    let subject = Subject::choose(config.clone(), server, dev_site::running, has_variable, origin);
    if output.is_for_people() || subject.is_unclear() {
        errln!("{subject}");
    }
    let checks = match subject {
        Subject::Instance(_) => {
            let client = Client::of(&target?).map_err(|error| Failure::unusable(&error))?;
            remote::examine(&client).await
        }
        Subject::Machine(reason) => {
            let settings = settings::load(reason.file(), vars_os());
            Box::pin(examine(settings, reason.file())).await
        }
    };
    print(&checks, &options)
}

fn print(checks: &[Check], options: &Doctor) -> Result<(), Failure> {
    options.output.print(&checks, || checks.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    match checks.iter().filter(|check| check.verdict == Verdict::Problem).count() {
        0 => Ok(()),
        1 => Err(anyhow!("1 problem found").into()),
        problems => Err(anyhow!("{problems} problems found").into()),
    }
}

fn text(check: &Check) -> String {
    let line = format!("{:<8} {}: {}", check.verdict.as_str(), check.name, sanitized(&check.found));
    match &check.advice {
        Some(advice) => format!("{line}\n         {}", sanitized(advice)),
        None => line,
    }
}

/// Every check; later ones build on earlier ones.
async fn examine(settings: Result<Settings, settings::Error>, file: Option<&Path>) -> Vec<Check> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            let problem =
                |line: &str| Check::problem("configuration", line, "correct it; nothing else was checked");
            return error.to_string().lines().map(problem).collect();
        }
    };
    let from = file.map_or_else(String::new, |file| format!(", as {} has it", file.display()));
    let found = format!("site {}{from}", settings.site.name.as_str());
    let mut checks = vec![Check::ok("configuration", found)];
    let warnings = settings.warnings().into_iter();
    checks.extend(warnings.map(|found| Check::warning("configuration", found.to_string(), found.advice())));
    checks.push(zone_data::examine(os_upgrade_zones::read(), chrono::Utc::now()));
    checks.extend(files::data_directory(&settings));
    let (folded, store) = files::store(&settings).await;
    checks.extend(store);
    checks.extend(access::examine(
        &settings,
        folded.as_ref().map(|folded| &folded.state),
        chrono::Utc::now(),
    ));
    checks.extend(fleet_socket::examine(&settings));
    checks.extend(files::lock_server(&settings));
    checks.extend(cluster::examine(&settings).await);
    checks.extend(commands::examine(&settings));
    checks.extend(files::nats_server(&settings).await);
    checks.extend(bus::examine(&settings, folded.as_ref()).await);
    checks.extend(folded.as_ref().map(files::storage));
    checks
}
