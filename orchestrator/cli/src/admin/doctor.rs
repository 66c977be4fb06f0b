//! `os-upgrade doctor`: checks everything a site needs, and prints what is wrong and what to do. It changes
//! nothing that lasts, and works while orchestrator and NATS are down.

mod access;
mod bus;
mod check;
mod cluster;
mod commands;
mod files;
mod hosts;
mod kept;
mod limits;
mod remote;
mod rights;
mod zone_data;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use os_upgrade_settings::{self as settings, Settings};
use os_upgrade_shell::text::sanitized;

use self::check::{Check, Verdict};
use crate::Failure;
use crate::dev_site;
use crate::output::Format;
use crate::rest::{Client, Server};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The configuration, a TOML file; without it that of a running `os-upgrade dev`, or else the default of every key where neither
    /// `OS_UPGRADE_URL` nor a context names an instance
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "context"])]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Prints every check; fails if there is a problem.
/// `file` is what the settings were read from.
pub(crate) async fn run(
    settings: Result<Settings, settings::Error>,
    file: Option<&Path>,
    options: Doctor,
) -> Result<(), Failure> {
    print(&Box::pin(examine(settings, file)).await, &options)
}

impl Doctor {
    /// The file with the settings of this machine's site; absent if an option names an instance, or there is none.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        if self.server.is_named() { None } else { self.config.clone().or_else(dev_site::running) }
    }

    /// Whether an option, a variable or the current context names an instance.
    ///
    /// # Errors
    /// The contexts cannot be read.
    pub(crate) fn names_instance(&self) -> Result<bool, Failure> {
        self.server.names_instance()
    }
}

/// Prints what an instance says of its site, over the API; fails if there is a problem.
pub(crate) async fn run_remote(options: Doctor) -> Result<(), Failure> {
    let client = Client::new(&options.server)?;
    print(&remote::examine(&client).await, &options)
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
    checks.extend(files::lock_server(&settings));
    checks.extend(cluster::examine(&settings).await);
    checks.extend(commands::examine(&settings));
    checks.extend(files::nats_server(&settings).await);
    checks.extend(bus::examine(&settings, folded.as_ref()).await);
    checks.extend(folded.as_ref().map(files::storage));
    checks
}
