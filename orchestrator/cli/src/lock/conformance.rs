//! `os-upgrade lock conformance`: the options of the examination, and how its rows are printed.

use anyhow::bail;
use clap::Args;
use clap::builder::{RangedU64ValueParser, TypedValueParser};
use os_upgrade_conformance::{self as conformance, Level, Report, Row, Verdict, case_width};
use os_upgrade_settings::HttpUrl;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::signals::Signals;
use super::tls::Tls;
use crate::Failure;
use crate::address::http_url;
use crate::output::{Format, errln, outln};

/// The width of the column with what was expected, in characters.
const EXPECTED_WIDTH: usize = 52;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The server's base URL, with or without a slash at its end; do not put user and password in it, since everybody on
    /// the machine can read command lines
    #[arg(long, value_name = "URL", value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    tls: Tls,
    /// The group whose slots are taken
    #[arg(long, default_value = "default")]
    group: String,
    /// Expect exactly the responses of os-upgrade's own server, and not only what the protocol demands and clients rely on
    #[arg(long)]
    strict: bool,
    /// How many slots of the group are free; this is then tested too
    #[arg(long, value_name = "N", conflicts_with = "slots_max", value_parser = count())]
    slots: Option<usize>,
    /// Without --slots, the most slots that are taken at once; if the group has more, cases that need a full group are
    /// skipped
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = count())]
    slots_max: usize,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// The maximum of `--slots` and `--slots-max`.
const SLOTS_MAX: u64 = 10_000;

fn count() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=SLOTS_MAX)
}

/// Examines the server.
pub(super) async fn run(options: Options) -> Result<(), Failure> {
    let Options { url, credentials, tls, group, strict, slots, slots_max, output } = options;
    let level = if strict { Level::Strict } else { Level::Protocol };
    let tls = Some(tls.files(&url)?);
    let (url, _) = credentials.in_url(&url)?;
    let wanted = conformance::Options { url, tls, group, level, slots, slots_max };
    examine(&wanted, output).await
}

async fn examine(wanted: &conformance::Options, output: Format) -> Result<(), Failure> {
    let report = conformance::run(wanted, &on_signal()?, |row| {
        if output.is_for_people() {
            outln!("{}", line(row));
        }
    })
    .await?;
    let counted = [Verdict::Pass, Verdict::Fail, Verdict::Skip].map(|verdict| report.count(verdict));
    let [passed, failed, skipped] = counted;
    let Report { rows, interrupted, left } = &report;
    let whole = json!({
        "url": wanted.url.to_string(), "group": wanted.group, "level": wanted.level, "rows": rows,
        "passed": passed, "failed": failed, "skipped": skipped,
        "interrupted": interrupted, "left": left,
    });
    output.print(&whole, || format!("{passed} passed, {failed} failed, {skipped} skipped"))?;
    Ok(conclude(&report, &wanted.group)?)
}

/// A token that the first signal cancels. A second signal ends the process at once, and may leave slots held.
fn on_signal() -> anyhow::Result<CancellationToken> {
    let mut signals = Signals::listen()?;
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            signals.next().await;
            stop.cancel();
            signals.another(Instant::now()).await;
            std::process::exit(1);
        }
    });
    Ok(stop)
}

fn conclude(report: &Report, group: &str) -> anyhow::Result<()> {
    if !report.left.is_empty() {
        let ids = report.left.join(", ");
        errln!("may still hold slots of group {group}, as the server did not confirm their release: {ids}");
    }
    match report.count(Verdict::Fail) {
        _ if report.is_good() => Ok(()),
        _ if report.interrupted => bail!("interrupted before all cases were tried"),
        0 => bail!("some slots may still be held"),
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
