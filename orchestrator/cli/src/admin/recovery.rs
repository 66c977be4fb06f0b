//! `os-upgrade backup` and `os-upgrade restore`: the plan, the confirmation and the report.

use std::path::PathBuf;

use clap::Args;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_recovery::plan::{Plan, Source, Summary, Work};
use os_upgrade_recovery::restore::{self, Step};
use os_upgrade_recovery::site::{HeldLease, Site};
use os_upgrade_recovery::{RecoveryError, backup};
use os_upgrade_settings::Settings;
use serde_json::json;

use crate::Failure;
use crate::consent::Yes;
use crate::output::{Format, errln};

/// How many hosts are named; of the rest only the number is shown.
const NAMED_MAX: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write
    file: PathBuf,
    /// The configuration, a TOML file; without it every key has its default
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["file", "from_store"])))]
pub(crate) struct Restore {
    /// The backup to restore
    file: Option<PathBuf>,
    /// Restore from this instance's store, after NATS has lost acknowledged data
    #[arg(long)]
    from_store: bool,
    /// Replace the existing data of the site, which is saved to a file first
    #[arg(long, conflicts_with = "from_store")]
    replace: bool,
    /// The configuration, a TOML file; without it every key has its default
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Only print what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    yes: Yes,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Writes a backup.
pub(crate) async fn back_up(settings: Settings, options: Backup) -> Result<(), Failure> {
    let Backup { file, config: _, force, output } = options;
    let store = settings.store.clone();
    let manifest = Box::pin(backup::backup(settings, &file, force)).await.map_err(anyhow::Error::from)?;
    if let Err(error) = backup::record(&store) {
        errln!("warning: the backup is complete, but /metrics will not show it: {}", with_causes(&error));
    }
    output.print(&json!({ "file": file, "manifest": manifest }), || {
        let at = manifest.position.as_ref().map_or(0, |at| at.journal);
        format!("{}: site {}, journal up to message {at}", file.display(), manifest.site)
    })
}

/// Restores the site from a backup or from the store.
pub(crate) async fn restore(settings: Settings, options: Restore) -> Result<(), Failure> {
    // A dry run does not create it either.
    if (options.from_store || options.dry_run) && !settings.store.path.is_dir() {
        return Err(Failure::unchanged(RecoveryError::NoDirectory(settings.store.path)));
    }
    let site = Site::open(settings).await.map_err(Failure::unchanged)?;
    let restored = Box::pin(restore_at(&site, &options)).await;
    site.close().await;
    restored
}

async fn restore_at(site: &Site, options: &Restore) -> Result<(), Failure> {
    if options.dry_run {
        return restore_under(site, options, None).await;
    }
    let lease = HeldLease::take(&site.bus, &site.layout(), site.directory.instance()).await;
    let lease = lease.map_err(Failure::unchanged)?;
    let restored = restore_under(site, options, Some(&lease)).await;
    lease.release().await;
    restored
}

/// Restores the site while its lease is held; without a lease, only says what would be done.
async fn restore_under(site: &Site, options: &Restore, lease: Option<&HeldLease>) -> Result<(), Failure> {
    let source = match &options.file {
        Some(file) => Source::Backup { file: file.clone(), replace: options.replace },
        None => Source::Store,
    };
    let plan = match Plan::make(site, &source, lease).await.map_err(Failure::unchanged)? {
        Work::Nothing(why) => {
            return options
                .output
                .print(&json!({ "outcome": "nothing-missing", "reason": why }), || why.clone());
        }
        Work::FinishInterrupted => {
            let Some(lease) = lease else {
                let planned = || "the interrupted restoration would be finished".to_owned();
                return options.output.print(&json!({ "outcome": "planned" }), planned);
            };
            restore::finish(site, lease).await.map_err(cut_off)?;
            let done = || "the interrupted restoration is finished; start the orchestrator".to_owned();
            return options.output.print(&json!({ "outcome": "finished" }), done);
        }
        Work::Restore(plan) => plan,
    };
    let Some(lease) = lease else {
        let planned = json!({ "outcome": "planned", "plan": plan.summary });
        return options.output.print(&planned, || describe(&plan.summary));
    };
    confirm(options, &plan.summary)?;
    let mut saved = None;
    restore::carry_out(site, &plan, lease, |step| {
        if let Step::Saved(path) = step {
            saved = Some(path.clone());
            // Printed at once, so that the operator knows the file even if the next step fails.
            errln!("saved the previous data to {}", path.display());
        }
        Ok(())
    })
    .await
    .map_err(cut_off)?;
    let done = json!({ "outcome": "restored", "plan": plan.summary, "saved": saved });
    options.output.print(&done, || {
        "restored; start the orchestrator, then start a run for the hosts that are left".to_owned()
    })
}

/// The failure of a restoration that had begun.
fn cut_off(error: RecoveryError) -> Failure {
    Failure::Unknown(error.into())
}

/// Prints the plan and asks for confirmation, unless `--yes` is given.
fn confirm(options: &Restore, summary: &Summary) -> Result<(), Failure> {
    if options.output.is_for_people() || !options.yes.is_given() {
        errln!("{}", describe(summary));
    }
    let question = format!("Type the name of the site, {}, to go on: ", summary.site);
    options.yes.consent().confirm_with(&question, |answer| answer == summary.site)
}

fn describe(summary: &Summary) -> String {
    let mut lines = vec![format!("Restoration of site {} from its {}:", summary.site, summary.source)];
    lines.extend(summary.because.iter().map(|because| format!("  because {because}")));
    lines.push(format!(
        "  the state after journal message {} ({} facts) is restored; the new journal begins with message {}",
        summary.known_to, summary.facts, summary.journal_from
    ));
    lines.push(if summary.control_kept {
        "  the control stream stays; commands in it that were not delivered yet are retracted".to_owned()
    } else {
        format!("  the control stream is emptied and continues at {}", summary.control_from)
    });
    if let Some(run) = &summary.run_ended {
        lines.push(format!("  run {run} ends as failed; hosts under way: {}", names(&summary.under_way)));
    }
    lines.push(format!("  slots stay held for: {}", names(&summary.held)));
    lines.push("  the existing data is saved to a file in the data directory first".to_owned());
    lines.join("\n")
}

fn names(hosts: &[os_upgrade_protocol::HostName]) -> String {
    if hosts.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<_> = hosts.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = hosts.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &rest
}
