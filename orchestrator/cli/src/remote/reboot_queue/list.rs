//! `os-upgrade reboot-queue list`: the entries in one of several forms, once or whenever something happens.

use std::time::Duration;

use clap::{Args, ValueEnum};
use console::measure_text_width;
use os_upgrade_api_types::routes::events::FOLLOW;
use os_upgrade_api_types::routes::reboot_queue::{Entry, LIST};
use os_upgrade_console::Zone;
use os_upgrade_protocol::text::sanitized;
use serde::Deserialize as _;

use crate::Failure;
use crate::arguments::GLOBAL;
use crate::output::{Format, Output, View as _, outln};
use crate::remote::events::news::News;
use crate::remote::status;
use crate::rest::{self, Client, Server};

/// How often the queue is read with `--watch` if nothing happens: no event tells of heartbeats and windows.
const READ_EVERY: Duration = Duration::from_secs(15);

/// What CKE calls the fields, in the order in which it shows them.
const SIMPLE_HEADS: [&str; 6] =
    ["Index", "Node", "Status", "LastTransitionTime", "DrainBackOffCount", "DrainBackOffExpire"];

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Keep showing it: on a terminal the screen, else the list whenever it changes
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    form: Form,
}

/// The options for what is printed: those of every command, and one form more.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = GLOBAL)]
struct Form {
    /// The output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t = ListFormat::Table)]
    format: ListFormat,
    /// Show times in UTC; by default they are local
    #[arg(long)]
    utc: bool,
    /// Print results and errors, but no confirmations and notes
    #[arg(long)]
    quiet: bool,
}

/// The format of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    /// For people; fits the terminal
    Table,
    /// For people, with every column; nothing is cut
    Wide,
    /// JSON, for programs
    Json,
    /// YAML, for programs
    Yaml,
    /// Only the indices, one a line
    Name,
    /// The six fields that CKE's queue has too, in a plain table, with times in UTC
    Simple,
}

impl ListFormat {
    /// The format of every command that it is; `None` if it is one of this command alone.
    const fn usual(self) -> Option<Format> {
        match self {
            Self::Table => Some(Format::Table),
            Self::Wide => Some(Format::Wide),
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
            Self::Name => Some(Format::Name),
            Self::Simple => None,
        }
    }
}

/// Prints the list.
pub(super) async fn run(List { watch: is_watched, server, form }: List) -> Result<(), Failure> {
    let client = Client::new(&server)?;
    let Some(format) = form.format.usual() else {
        if is_watched {
            return Err(not_for_people());
        }
        outln!("{}", simple(&client.read::<Vec<Entry>>(&LIST).await?).trim_end());
        return Ok(());
    };
    let output = Output::new(format, form.utc, form.quiet);
    if !is_watched {
        return output.show::<Vec<Entry>>(&client.call(&LIST).await?);
    }
    if output.is_for_people() { watch(&client, output).await } else { Err(not_for_people()) }
}

fn not_for_people() -> Failure {
    Failure::Usage("--watch is for people: leave out -o".to_owned())
}

/// Prints the list whenever it changes, until somebody stops it.
async fn watch(client: &Client, output: Output) -> Result<(), Failure> {
    let mut news = News::open(client, FOLLOW.call()).await;
    let mut shown = String::new();
    loop {
        let text = match client.call(&LIST).await {
            Ok(entries) => {
                let entries = Vec::<Entry>::deserialize(&entries);
                let entries =
                    entries.map_err(|error| anyhow::Error::from(error).context("unexpected response"))?;
                entries.text(&output.canvas())
            }
            // An instance may be replaced by another meanwhile.
            Err(error) if rest::may_pass(&error) => format!("{error:#}; trying again"),
            Err(error) => return Err(error.into()),
        };
        if text != shown {
            status::show(&text);
            shown = text;
        }
        news.wait(client, READ_EVERY).await;
    }
}

/// The six fields of each entry, in columns with a space between them.
fn simple(entries: &[Entry<'_>]) -> String {
    let of_entry = |entry: &Entry<'_>| {
        let fields = [
            entry.index.to_string(),
            entry.node.to_string(),
            entry.status.to_string(),
            entry.last_transition_time.to_string(),
            entry.drain_backoff_count.to_string(),
            Zone::Utc.stamp_or_dash(entry.drain_backoff_expire),
        ];
        fields.map(|field| sanitized(&field))
    };
    let rows: Vec<[String; 6]> =
        [SIMPLE_HEADS.map(ToOwned::to_owned)].into_iter().chain(entries.iter().map(of_entry)).collect();
    let width = |column: usize| rows.iter().map(|row| measure_text_width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..SIMPLE_HEADS.len()).map(width).collect();
    let line = |row: &[String; 6]| {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(field, width)| format!("{field}{}", " ".repeat(width - measure_text_width(field))));
        padded.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_simple_table_has_the_six_fields() {
        let entries = json!([
            {
                "index": "7", "node": "10.0.0.100", "status": "draining", "last_transition_time": "2026-11-21T01:00:05Z",
                "drain_backoff_count": 0, "why": { "kind": "a kind", "text": "not shown" }, "required": false, "cancel_requested": false,
                "added_at": "2026-11-21T01:00:00Z",
            },
            {
                "index": "12", "node": "h\n2", "status": "queued", "last_transition_time": "2026-11-21T01:00:00Z",
                "drain_backoff_count": 2, "drain_backoff_expire": "2026-11-21T01:10:00Z", "required": false, "cancel_requested": false,
                "added_at": "2026-11-21T01:00:00Z",
            },
        ]);
        let expected = "\
Index Node       Status   LastTransitionTime   DrainBackOffCount DrainBackOffExpire
7     10.0.0.100 draining 2026-11-21T01:00:05Z 0                 -
12    h\u{fffd}2        queued   2026-11-21T01:00:00Z 2                 2026-11-21T01:10:00Z";
        assert_eq!(simple(&Vec::<Entry>::deserialize(entries).unwrap()), expected);
        assert_eq!(simple(&[]), SIMPLE_HEADS.join(" "));
    }
}
