//! `os-upgrade lock conformance`: how an examination is asked for, and how its rows are printed.

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::super::output::{Output, errln, outln};
use super::super::rest::http_url;
use super::super::shutdown;
use super::tls::Tls;
use crate::config::HttpUrl;
use crate::conformance::{self, Level, Report, Row, Verdict, case_width};

/// How wide the column of what was expected is, in characters.
const EXPECTED_WIDTH: usize = 52;

#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    /// The server's base URL, with or without a slash at its end; a user and password in it are sent as HTTP Basic
    /// authentication
    #[arg(long, value_name = "URL", value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    tls: Tls,
    /// The group whose slots are taken
    #[arg(long, default_value = "default")]
    group: String,
    /// Expect exactly what our server answers, and not only what the protocol demands and clients rely on
    #[arg(long)]
    strict: bool,
    /// How many slots of the group are free; then this is examined too
    #[arg(long, value_name = "N", conflicts_with = "slots_max")]
    slots: Option<usize>,
    /// Most slots taken at once, where --slots does not say how many are free; if there are more, cases that need a full
    /// group are skipped
    #[arg(long, value_name = "N", default_value_t = 16)]
    slots_max: usize,
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Examines the server.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    let Options { url, tls, group, strict, slots, slots_max, output } = options;
    let level = if strict { Level::Strict } else { Level::Protocol };
    let stop = shutdown::on_signal()?;
    let wanted = conformance::Options { url, tls: Some(tls.into()), group, level, slots, slots_max };
    let report = conformance::run(&wanted, &stop, |row| {
        if output == Output::Text {
            outln!("{}", line(row));
        }
    })
    .await?;
    let counted = [Verdict::Pass, Verdict::Fail, Verdict::Skip].map(|verdict| report.count(verdict));
    let [passed, failed, skipped] = counted;
    match output {
        Output::Text => outln!("{passed} passed, {failed} failed, {skipped} skipped"),
        Output::Json => {
            let Report { rows, interrupted, left } = &report;
            let whole = json!({
                "url": wanted.url.to_string(), "group": wanted.group, "level": level, "rows": rows,
                "passed": passed, "failed": failed, "skipped": skipped,
                "interrupted": interrupted, "left": left,
            });
            outln!("{}", serde_json::to_string_pretty(&whole)?);
        }
    }
    conclude(&report, &wanted.group)
}

fn conclude(report: &Report, group: &str) -> anyhow::Result<()> {
    if !report.left.is_empty() {
        let ids = report.left.join(", ");
        errln!("may still hold slots of group {group}, as the server did not confirm their release: {ids}");
    }
    match report.count(Verdict::Fail) {
        _ if report.is_good() => Ok(()),
        _ if report.interrupted => bail!("interrupted before all cases were tried"),
        0 => bail!("not every slot is known to be given back"),
        1 => bail!("1 case failed"),
        failed => bail!("{failed} cases failed"),
    }
}

fn line(row: &Row) -> String {
    let Row { verdict, case, expected, got } = row;
    let verdict = match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Skip => "SKIP",
    };
    let width = case_width();
    format!("{verdict}  {case:width$}  {expected:EXPECTED_WIDTH$}  {got}")
}
