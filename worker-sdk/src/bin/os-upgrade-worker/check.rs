//! `os-upgrade-worker check`: runs a check and prints its rows.

use std::io::Write;
use std::process::Stdio;

use anstream::{AutoStream, ColorChoice};
use anyhow::bail;
use os_upgrade_worker_sdk::testing::{Access, Check, Report, Row, Rule, Verdict, connect};
use serde_json::json;
use tokio::process::Command;

use crate::cli::{CheckArgs, Output};
use crate::options::NatsArgs;

/// Checks the worker; an error unless all rules hold.
pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<()> {
    let mut check = Check::new(&args.host)?.patience(args.patience).work_wait(args.work_wait);
    if let Some(command) = args.restart_command {
        check = check.on_restart(move || shell("restart", command.clone()));
    }
    if let Some(command) = args.reboot_command {
        check = check.on_reboot(move || shell("reboot", command.clone()));
    }
    let NatsArgs { url, credentials, tls_ca, tls_cert, tls_key } = args.nats;
    let access = Access { credentials, ca: tls_ca, certificate: tls_cert, key: tls_key };
    let client = connect(&url, access).await?;
    let coloured = AutoStream::choice(&std::io::stdout()) == ColorChoice::Always;
    let report = check
        .run(client, |row| {
            if args.output == Output::Text {
                print(&line(row, coloured));
            }
        })
        .await?;
    let counts = [Verdict::Holds, Verdict::Broken, Verdict::Skipped].map(|verdict| report.count(verdict));
    let [holds, broken, skipped] = counts;
    match args.output {
        Output::Text => print(&format!("{holds} hold, {broken} broken, {skipped} skipped")),
        Output::Json => {
            let whole = json!({
                "host": args.host, "rows": report.rows,
                "holds": holds, "broken": broken, "skipped": skipped,
            });
            print(&serde_json::to_string_pretty(&whole)?);
        }
    }
    conclude(&report, args.allow_skipped)
}

fn conclude(report: &Report, allow_skipped: bool) -> anyhow::Result<()> {
    match (report.count(Verdict::Broken), report.count(Verdict::Skipped)) {
        (0, 0) => Ok(()),
        (0, _) if allow_skipped => Ok(()),
        (0, skipped) => bail!("{skipped} rules were skipped; give --allow-skipped to accept that"),
        (1, _) => bail!("1 rule is broken"),
        (broken, _) => bail!("{broken} rules are broken"),
    }
}

/// Runs a shell command; its output goes to standard error, so that standard output has only rows.
async fn shell(what: &'static str, command: String) -> Result<(), String> {
    let status = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} >&2")])
        .stdin(Stdio::null())
        .status()
        .await
        .map_err(|error| format!("cannot run the {what} command: {error}"))?;
    status.success().then_some(()).ok_or_else(|| format!("the {what} command ended with {status}"))
}

fn line(row: &Row, coloured: bool) -> String {
    let (verdict, colour) = match row.verdict {
        Verdict::Holds => ("HOLDS  ", "32"),
        Verdict::Broken => ("BROKEN ", "31"),
        Verdict::Skipped => ("SKIPPED", "33"),
    };
    let verdict = if coloured { format!("\u{1b}[{colour}m{verdict}\u{1b}[0m") } else { verdict.to_owned() };
    let width = |text: fn(Rule) -> &'static str| {
        Rule::ALL.iter().map(|rule| text(*rule).chars().count()).max().unwrap_or_default()
    };
    let (names, expectations) = (width(Rule::name), width(Rule::expected));
    let Row { rule, expected, seen, .. } = row;
    // Names and messages come from the worker; their control characters must not reach the terminal.
    let seen: String = seen.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{verdict}  {rule:names$}  {expected:expectations$}  {seen}")
}

/// Prints a line to standard output. A closed pipe is not an error.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
