//! `os-upgrade doctor`: what is wrong with a site, and what to do.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use os_upgrade_settings::{self as settings, Settings};

use super::{Check, Verdict, examine};
use crate::output::{Output, outln};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The configuration, a TOML file; without it every key has its default
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Shows every check; fails when there is a problem.
pub(crate) async fn run(settings: Result<Settings, settings::Error>, options: Doctor) -> anyhow::Result<()> {
    let checks = examine(settings).await;
    match options.output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&checks)?),
        Output::Text => outln!("{}", checks.iter().map(text).collect::<Vec<_>>().join("\n")),
    }
    match checks.iter().filter(|check| check.verdict == Verdict::Problem).count() {
        0 => Ok(()),
        1 => bail!("1 problem found"),
        problems => bail!("{problems} problems found"),
    }
}

fn text(check: &Check) -> String {
    let line = format!("{:<8} {}: {}", check.verdict.as_str(), check.name, check.found);
    match &check.advice {
        Some(advice) => format!("{line}\n         {advice}"),
        None => line,
    }
}
