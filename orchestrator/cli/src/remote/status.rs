//! `os-upgrade status`: what goes on at the site, on one screen.

mod report;

use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use os_upgrade_api_types::routes::events::FOLLOW;
use os_upgrade_api_types::routes::{cluster, reboot_queue, runs, slots, state, windows};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::report::Report;
use super::events::news::News;
use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View as _, outln};
use crate::rest::{self, Client};

/// How often the screen is drawn with `--watch`: it says how much time is left.
const DRAWN_EVERY: Duration = Duration::from_secs(1);
/// How often the state is read with `--watch` if nothing happens: no event tells of heartbeats, announcements and instances.
const READ_EVERY: Duration = Duration::from_secs(15);
/// What is read of the state: [`report`] shows no more.
const FIELDS: [&str; 44] = [
    "status",
    "paused",
    "next-upgrade-at",
    "next-upgrade-why",
    "denied-until",
    "window-used-by",
    "config-warnings",
    "pending-hosts",
    "not-reached",
    "oldest-success",
    "maintenance-windows",
    "current-upgrade-info/id",
    "current-upgrade-info/not-after",
    "current-upgrade-info/counts",
    "current-upgrade-info/stopping",
    "last-targeted-info/id",
    "last-targeted-info/start-time",
    "last-targeted-info/end-time",
    "last-targeted-info/result",
    "last-targeted-info/counts",
    "last-targeted-info/hosts/hostname",
    "last-targeted-info/hosts/status",
    "last-targeted-info/hosts/why",
    "last-targeted-info/hosts/late-answer",
    "last-upgrade-info/id",
    "last-upgrade-info/start-time",
    "last-upgrade-info/end-time",
    "last-upgrade-info/result",
    "last-upgrade-info/counts",
    "last-upgrade-info/hosts/hostname",
    "last-upgrade-info/hosts/status",
    "last-upgrade-info/hosts/why",
    "last-upgrade-info/hosts/late-answer",
    "hosts/hostname",
    "hosts/status",
    "hosts/why",
    "hosts/also",
    "hosts/progress",
    "hosts/node",
    "hosts/key",
    "hosts/reboot-ineffective",
    "reboot-queue",
    "delivery",
    "units",
];
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
    let mut news = News::open(&client, FOLLOW.call()).await;
    let (mut shown, mut last) = (String::new(), String::new());
    loop {
        let answers = match read(&client).await {
            // An instance may be replaced by another meanwhile.
            Err(error) if rest::may_pass(&error) => Err(format!("{error:#}")),
            answers => Ok(answers?),
        };
        let mut wait = pin!(news.wait(&client, READ_EVERY));
        loop {
            let next = match &answers {
                Ok(answers) => {
                    last = draw(answers, &remote.output.canvas())?;
                    last.clone()
                }
                // On a terminal below what was seen last.
                Err(why) if std::io::stdout().is_terminal() => format!("{last}\n\n{why}; trying again"),
                Err(why) => why.clone(),
            };
            if next != shown {
                show(&next);
                shown = next;
            }
            tokio::select! {
                () = &mut wait => break,
                () = sleep(DRAWN_EVERY) => {}
            }
        }
    }
}

/// The screen, or without a terminal its summary.
fn draw(answers: &Value, canvas: &Canvas) -> Result<String, Failure> {
    let report = Report::read(answers)?;
    Ok(if std::io::stdout().is_terminal() {
        report.text(canvas)
    } else {
        canvas.zone.times_in(&report.summary())
    })
}

/// Shows `text`: on a terminal in place of what was there.
pub(super) fn show(text: &str) {
    if std::io::stdout().is_terminal() {
        outln!("{CLEAR}{text}");
    } else {
        outln!("{text}");
    }
}

/// Everything that the status is about, each under its own name.
async fn read(client: &Client) -> anyhow::Result<Value> {
    let state = client.call(state::READ.call().with("fields", FIELDS.join(","))).await?;
    let runs = client.call(runs::LIST.call().with("limit", "1")).await?;
    let missed = client.call(runs::MISSED.call().with("limit", "1")).await?;
    let slots = client.call(&slots::READ).await?;
    let cluster = client.call(&cluster::READ).await?;
    // Without windows there is nothing to list, and without a configuration it would be an error.
    let has_windows = state["maintenance-windows"].as_array().is_some_and(|windows| !windows.is_empty());
    let windows =
        if has_windows { client.call(windows::LIST.call().with("count", "1")).await? } else { Value::Null };
    // Those under way are among the first, as long as not many entries wait before them.
    let reboots = if state["reboot-queue"].is_object() {
        client.call(reboot_queue::LIST.call().with("limit", "500")).await?
    } else {
        Value::Null
    };
    Ok(json!({
        "reboots": reboots, "state": state, "runs": runs, "missed-runs": missed, "slots": slots, "cluster": cluster, "windows": windows,
    }))
}
