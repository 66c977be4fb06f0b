//! One upgrade of the demo site through the API: configure, trigger, watch, and print the result.

use std::time::Duration;

use anyhow::bail;
use os_upgrade_api_types::routes::runs::RunInFull;
use os_upgrade_cli::output::outln;
use os_upgrade_kernel::RunResult;
use os_upgrade_protocol::text::one_line;
use tokio::time::Instant;

use super::api::{Api, Triggered};
use super::host::DemoHost;
use super::progress::{Progress, describe};
use super::worker::APPLICATION;

/// How long the orchestrator may take to become ready, and then to see all workers.
const READY_WAIT: Duration = Duration::from_mins(1);
/// The timeout of the run, ten minutes.
const RUN_TIMEOUT: &str = "10m";
/// How long the run is watched; its own timeout is shorter.
const RUN_WAIT: Duration = Duration::from_mins(11);
/// The longest list of applications that is printed, in characters.
const NAMES_CHARS_MAX: usize = 200;
/// Time between two polls.
const POLL: Duration = Duration::from_millis(100);

/// Waits until the orchestrator is ready, configures the demo's application, and waits for all hosts.
pub(super) async fn set_up(api: &Api, hosts: &[DemoHost]) -> anyhow::Result<()> {
    poll("the orchestrator is not ready", READY_WAIT, async || Ok(api.ready().await.then_some(()))).await?;
    if let Some(before) = api.configure(APPLICATION).await? {
        outln!("{}", configured_again(&before));
    }
    poll("not all workers have announced themselves", READY_WAIT, async || {
        let known = api.state().await?.scheduled_workers.unwrap_or_default();
        let all = hosts.iter().all(|host| known.iter().any(|worker| worker.host == host.name));
        Ok(all.then_some(()))
    })
    .await
}

/// What is said of a kept configuration that had other applications.
fn configured_again(before: &[String]) -> String {
    let had = if before.is_empty() { "no application".to_owned() } else { before.join(", ") };
    let had = one_line(&had, NAMES_CHARS_MAX);
    format!("The kept configuration had {had}: its application is {APPLICATION} again, and the rest stays")
}

/// Upgrades all hosts once and prints the progress. An error unless the run completes.
pub(super) async fn once(api: &Api, hosts: &[DemoHost]) -> anyhow::Result<()> {
    let before: Vec<_> = hosts.iter().map(|host| (host, host.release(), host.boot_id())).collect();
    let previous = api.newest_run().await?;
    let previous = match api.trigger(RUN_TIMEOUT).await? {
        Triggered::Started => previous,
        Triggered::Active => {
            outln!("a run is already active; showing its progress");
            None
        }
    };
    let started = Instant::now();
    // The history lags behind the trigger.
    let id = poll("the run does not appear in the history", READY_WAIT, async || {
        Ok(api.newest_run().await?.filter(|id| Some(id) != previous.as_ref()))
    })
    .await?;
    let mut progress = Progress::new(hosts.iter().map(|host| host.name.as_str()));
    let run = poll("the run does not end", RUN_WAIT, async || {
        let run = api.run(&id).await?;
        progress.show(&run.hosts);
        Ok(run.run.result.is_some().then_some(run))
    })
    .await?;
    progress.finish();

    let result = run.run.result.clone().unwrap_or_default();
    outln!("run {id}: {result} after {:.1} s", started.elapsed().as_secs_f64());
    for (host, release, boot_id) in before {
        outln!("{}", summary(&run, host, &release, &boot_id));
    }
    if result.known() != Some(RunResult::Completed) {
        bail!("the run has ended {result}");
    }
    Ok(())
}

/// The result for `host`: its status from the API, and its release and boot id on disk.
fn summary(run: &RunInFull<'_>, host: &DemoHost, release: &str, boot_id: &str) -> String {
    let status = run.hosts.iter().find(|entry| entry.hostname == host.name);
    let status = status.map_or_else(|| "not in the run".to_owned(), describe);
    let rebooted = if host.boot_id() == boot_id { "not rebooted" } else { "rebooted" };
    format!("  {}: {status}, release {release} -> {}, {rebooted}", host.name, host.release())
}

/// Calls `probe` until it returns a value, for at most `wait`. The error then has the last error of `probe`, if any.
async fn poll<T>(
    missing: &str,
    wait: Duration,
    mut probe: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + wait;
    loop {
        let outcome = probe().await;
        if let Ok(Some(answer)) = outcome {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            let missing = format!("{missing} after {} s", wait.as_secs());
            return match outcome {
                Err(error) => Err(error.context(missing)),
                Ok(_) => bail!(missing),
            };
        }
        tokio::time::sleep(POLL).await;
    }
}
