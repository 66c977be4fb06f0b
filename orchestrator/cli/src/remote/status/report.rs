//! The status on a screen, and in a line.

#[cfg(test)]
mod tests;

use std::iter;

use chrono::{DateTime, Utc};
use os_upgrade_console::progress::counted;
use os_upgrade_console::rows::cluster::trouble;
use os_upgrade_console::rows::runs::short;
use os_upgrade_console::status::{RunProgress, Status, Together};
use os_upgrade_console::{Need, Zone, needs};
use os_upgrade_protocol::text::{one_line, sanitized};
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;
use crate::output::{Canvas, View, details};

/// The width of the bar, in characters.
const BAR_CHARS: u64 = 30;
/// The most hosts at work, and groups of waiting hosts that are shown.
const LINES_MAX: usize = 8;
/// The most names in a line.
const NAMES_MAX: usize = 3;
/// The longest matter for a person, in characters, without the commands that help.
const NEED_CHARS_MAX: usize = 300;
/// The most lines with such matters, unless the first one needs more.
const NEED_LINES_MAX: usize = 10;
/// The longest line, in characters, if the terminal has no width.
const LINE_CHARS_MAX: usize = 200;
/// The width of the names of what is said of the next run and of the last one.
const HEAD_COLUMNS: usize = 7;

/// What the API answers.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Report(Status);

impl View for Report {
    fn text(&self, canvas: &Canvas) -> String {
        canvas.zone.times_in(&self.screen(canvas, Utc::now()))
    }
}

impl Report {
    /// Reads the answers.
    pub(super) fn read(answers: &Value) -> Result<Self, Failure> {
        Self::deserialize(answers)
            .map_err(|error| anyhow::Error::from(error).context("unexpected response").into())
    }

    /// The whole screen.
    pub(super) fn screen(&self, canvas: &Canvas, now: DateTime<Utc>) -> String {
        let (Self(status), zone) = (self, canvas.zone);
        let progress = status.run_progress().map(|progress| format!("\n{}", bar(&progress)));
        let parts = [
            trouble(&status.cluster).map(|trouble| sanitized(&format!("{trouble}; last known:"))),
            status.pause(zone).map(|pause| sanitized(&pause)),
            Some(sanitized(&status.run(zone, now)) + &progress.unwrap_or_default()),
            block("AT WORK", &bounded(status.at_work())),
            block("WAITING", &bounded(together(status.waiting()))),
            block("REBOOT QUEUE", &bounded(status.reboot_queue())),
            block("FAILED IN THE LAST RUN", &bounded(together(status.failed()))),
            Some(details(status.next_and_last(zone, now), HEAD_COLUMNS)),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let chars_max = canvas.columns.unwrap_or(LINE_CHARS_MAX);
        let lines = text.lines().map(|line| cut(line, chars_max));
        let needs = block("NEEDS A PERSON", &shown(&needs(status, now), chars_max));
        let needs = needs.map(|needs| format!("\n{needs}"));
        lines.chain(needs).collect::<Vec<_>>().join("\n")
    }

    /// One line that changes when something important does.
    pub(super) fn summary(&self) -> String {
        let Self(status) = self;
        let needs = match needs(status, Utc::now()).len() {
            0 => String::new(),
            1 => "; 1 matter needs a person".to_owned(),
            needs => format!("; {needs} matters need a person"),
        };
        let trouble =
            trouble(&status.cluster).map(|trouble| format!("{trouble}; last known: ")).unwrap_or_default();
        let what = match &status.state.current_upgrade_info {
            Some(current) => format!("run {}: {}", short(&current.id), counted(&current.counts)),
            None => format!("last: {}", status.last(Zone::Utc)),
        };
        let paused = if status.state.paused.is_some() { "paused; " } else { "" };
        one_line(&format!("{trouble}{paused}{}; {what}{needs}", status.state.status), LINE_CHARS_MAX)
    }
}

fn block(head: &str, lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{head}\n  {}", lines.join("\n  ")))
}

/// How far a run is.
fn bar(progress: &RunProgress) -> String {
    let RunProgress { percents, ended, total, counted } = progress;
    let filled = (percents * BAR_CHARS).checked_div(total * 100).unwrap_or(0);
    let part = |character: &str, count: u64| character.repeat(usize::try_from(count).unwrap_or(0));
    let (done, left) = (part("#", filled), part("-", BAR_CHARS - filled));
    format!("[{done}{left}] {ended} of {total}: {}", sanitized(counted))
}

/// A line for each reason, with the first hosts that share it.
fn together(groups: Vec<Together<'_>>) -> Vec<String> {
    groups.into_iter().map(|(why, hosts)| format!("{}: {why}", named(&hosts))).collect()
}

/// The first lines, each of them cut; the last one says how many more there are.
fn bounded(lines: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(|line| one_line(&line, LINE_CHARS_MAX)).collect();
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX + 1;
        lines.truncate(LINES_MAX - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The first of `names`, and how many more there are.
fn named(names: &[&str]) -> String {
    let first = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The first needs that fit into a block, one at least; the last line says how many more there are.
fn shown(needs: &[Need], columns: usize) -> Vec<String> {
    let (mut shown, mut lines) = (Vec::new(), 0);
    for (at, need) in needs.iter().enumerate() {
        let text = need_text(need, columns.saturating_sub("  ".len()));
        lines += text.lines().count();
        if lines > NEED_LINES_MAX && at > 0 {
            shown.push(format!("and {} more", needs.len() - at));
            break;
        }
        shown.push(text);
    }
    shown
}

/// A matter in lines, all but the first of which are indented.
fn need_text(need: &Need, columns: usize) -> String {
    let options = textwrap::Options::new(columns).subsequent_indent("    ");
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    let what = textwrap::fill(&one_line(&need.what, NEED_CHARS_MAX), options);
    let commands =
        need.commands.iter().map(|(does, command)| format!("\n    {does}: {}", sanitized(command)));
    iter::once(what).chain(commands).collect()
}

fn cut(line: &str, chars_max: usize) -> String {
    console::truncate_str(line, chars_max, "…").into_owned()
}
