//! `os-upgrade status`: what goes on at the site, on one screen.

mod report;

use std::io::IsTerminal as _;
use std::time::Duration;

use chrono::Utc;
use clap::Args;
use os_upgrade_api_types::routes::{cluster, runs, slots, state, windows};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::report::Report;
use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, outln};
use crate::rest::{self, Client};

/// How often the state is read with `--watch`.
const PERIOD: Duration = Duration::from_secs(1);
/// Clears the screen, and puts the cursor to its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Keep showing it: on a terminal the screen, else a line when something changes
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Prints the status, once or until somebody stops it.
pub(super) async fn run(Status { watch, remote }: Status) -> Result<(), Failure> {
    let client = remote.client()?;
    if !watch {
        return remote.output.show::<Report>(&read(&client).await?);
    }
    if !remote.output.is_for_people() {
        return Err(Failure::Usage("--watch is for people: leave out -o".to_owned()));
    }
    let mut shown = String::new();
    loop {
        let next = match read(&client).await {
            Ok(answers) => draw(&answers, &remote.output.canvas())?,
            // An instance may be replaced by another meanwhile.
            Err(error) if rest::may_pass(&error) => format!("{error:#}"),
            Err(error) => return Err(error.into()),
        };
        if next != shown {
            show(&next);
            shown = next;
        }
        sleep(PERIOD).await;
    }
}

/// The screen, or without a terminal its summary.
fn draw(answers: &Value, canvas: &Canvas) -> Result<String, Failure> {
    let report = Report::read(answers)?;
    let is_terminal = std::io::stdout().is_terminal();
    Ok(if is_terminal { report.screen(canvas, Utc::now()) } else { report.summary() })
}

fn show(text: &str) {
    if std::io::stdout().is_terminal() {
        outln!("{CLEAR}{text}");
    } else {
        outln!("{text}");
    }
}

/// Everything that the status is about, each under its own name.
async fn read(client: &Client) -> anyhow::Result<Value> {
    let state = client.call(&state::READ).await?;
    let runs = client.call(runs::LIST.call().with("limit", "1")).await?;
    let slots = client.call(&slots::READ).await?;
    let cluster = client.call(&cluster::READ).await?;
    // Without windows there is nothing to list, and without a configuration it would be an error.
    let has_windows = state["maintenance-windows"].as_array().is_some_and(|windows| !windows.is_empty());
    let windows =
        if has_windows { client.call(windows::LIST.call().with("count", "1")).await? } else { Value::Null };
    Ok(json!({ "state": state, "runs": runs, "slots": slots, "cluster": cluster, "windows": windows }))
}
