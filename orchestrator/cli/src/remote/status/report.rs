//! What the status says: parts of a screen, made from the API's answers.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::iter;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{Blocker, HostOfRun, LateAnswer, Page};
use os_upgrade_api_types::routes::cluster::ClusterState;
use os_upgrade_api_types::routes::reboot_queue::{Entry, EntryIndex};
use os_upgrade_api_types::routes::runs::{MissedRun, Run};
use os_upgrade_api_types::routes::slots::{SlotHolder, Slots};
use os_upgrade_api_types::routes::state::{HostState, LastUpgrade, State, WindowUsedBy};
use os_upgrade_api_types::routes::windows::Windows;
use os_upgrade_api_types::word::Word;
use os_upgrade_console::commands::{hosts_uncordon, lock_release_with_reason, shell_word};
use os_upgrade_console::progress::{
    belongs_to_run, counted, is_at_work as works, percent_done, progress_text,
};
use os_upgrade_console::rows::cluster::trouble;
use os_upgrade_console::rows::runs::{by, short, stopping, why_missed};
use os_upgrade_console::{Zone, describe, span};
use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::text::{one_line, sanitized};
use serde::Deserialize;
use serde_json::Value;

use super::queue;
use crate::Failure;
use crate::output::{Canvas, View};

/// The width of the bar, in characters.
const BAR_CHARS: u64 = 30;
/// The most hosts at work, and groups of waiting hosts that are shown.
const LINES_MAX: usize = 8;
/// What a node waits for whose mark is of another journal.
const FOREIGN_MARK: &str = "foreign-mark";
/// The kind of the warning that no application is configured.
const NO_APPLICATIONS: &str = "no-applications";
/// The most names in a line.
const NAMES_MAX: usize = 3;
/// The longest matter for a person, in characters, without the commands that help.
const NEED_CHARS_MAX: usize = 300;
/// The most lines with such matters, unless the first one needs more.
const NEED_LINES_MAX: usize = 10;
/// The longest line, in characters, if the terminal has no width.
const LINE_CHARS_MAX: usize = 200;

/// What the API answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Report {
    state: State<'static>,
    runs: Option<Page<Run<'static>>>,
    missed_runs: Option<Page<MissedRun>>,
    slots: Slots<'static>,
    cluster: ClusterState<'static>,
    windows: Option<Windows>,
    reboots: Option<Page<Entry<'static>>>,
}

impl View for Report {
    fn text(&self, canvas: &Canvas) -> String {
        canvas.zone.times_in(&self.screen(canvas, Utc::now()))
    }

    fn names(&self) -> Option<Vec<String>> {
        None
    }
}

impl Report {
    /// Reads the answers.
    pub(super) fn read(answers: &Value) -> Result<Self, Failure> {
        Self::deserialize(answers)
            .map_err(|error| anyhow::Error::from(error).context("unexpected response").into())
    }

    fn hosts(&self) -> impl Iterator<Item = &HostState<'static>> {
        self.state.hosts.iter().flatten()
    }

    /// The whole screen.
    pub(super) fn screen(&self, canvas: &Canvas, now: DateTime<Utc>) -> String {
        let zone = canvas.zone;
        let parts = [
            trouble(&self.cluster).map(|trouble| sanitized(&format!("{trouble}; last known:"))),
            Some(self.run(zone, now)),
            block("AT WORK", &self.at_work()),
            block("WAITING", &self.waiting()),
            block("REBOOT QUEUE", &self.reboots()),
            block("FAILED IN THE LAST RUN", &self.failed()),
            Some(self.next_and_last(zone, now)),
        ];
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let chars_max = canvas.columns.unwrap_or(LINE_CHARS_MAX);
        let lines = text.lines().map(|line| cut(line, chars_max));
        let needs = block("NEEDS A PERSON", &shown(&self.needs(), chars_max));
        let needs = needs.map(|needs| format!("\n{needs}"));
        lines.chain(needs).collect::<Vec<_>>().join("\n")
    }

    /// One line that changes when something important does.
    pub(super) fn summary(&self) -> String {
        let needs = self.needs().len();
        let needs = match needs {
            0 => String::new(),
            1 => "; 1 matter needs a person".to_owned(),
            needs => format!("; {needs} matters need a person"),
        };
        let trouble =
            trouble(&self.cluster).map(|trouble| format!("{trouble}; last known: ")).unwrap_or_default();
        let what = match &self.state.current_upgrade_info {
            Some(current) => format!("run {}: {}", short(&current.id), counted(&current.counts)),
            None => self.last(Zone::Utc),
        };
        one_line(&format!("{trouble}{}; {what}{needs}", self.state.status), LINE_CHARS_MAX)
    }

    /// The active run, and how far it is.
    fn run(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let Some(current) = &self.state.current_upgrade_info else {
            if self.reboots.iter().flat_map(queue::under_way).next().is_some() {
                return "no run is active; the reboot queue is at work".to_owned();
            }
            return format!("no run is active; the site is {}", sanitized(&self.state.status));
        };
        let newest = self.runs.iter().flat_map(|page| &page.items).find(|run| run.id == current.id);
        let doing = |run: &Run<'_>| match &current.stopping {
            Some(cause) => stopping(cause.read()),
            None => run.phase.to_string(),
        };
        let by = newest.map(|run| format!(", {}, started by {}", doing(run), by(run))).unwrap_or_default();
        let left = span(now, current.not_after.0);
        let counts = || current.counts.0.iter().filter(|(word, _)| belongs_to_run(word));
        let total: u64 = counts().map(|(_, count)| count).sum();
        let ended = counts().filter(|(word, _)| Word::read(word).is(HostStatus::is_final));
        let ended: u64 = ended.map(|(_, count)| count).sum();
        let filled = (self.percents(ended) * BAR_CHARS).checked_div(total * 100).unwrap_or(0);
        let bar = |character: &str, count: u64| character.repeat(usize::try_from(count).unwrap_or(0));
        format!(
            "run {}{}; {left} left, until {}\n[{}{}] {ended} of {total}: {}",
            sanitized(short(&current.id)),
            sanitized(&by),
            zone.stamp(current.not_after),
            bar("#", filled),
            bar("-", BAR_CHARS - filled),
            sanitized(&counted(&current.counts)),
        )
    }

    /// How much of the active run is done, in percent of a host, where this many hosts have `ended`.
    fn percents(&self, ended: u64) -> u64 {
        let under_way = self.hosts().filter(|host| is_at_work(host));
        let done = |host: &HostState<'_>| {
            let reported = host.progress.as_ref().and_then(|progress| progress.percent);
            host.status.as_ref().map_or(0, |status| percent_done(status, reported))
        };
        ended * 100 + under_way.map(done).sum::<u64>()
    }

    /// Who works on what, and how far it is.
    fn at_work(&self) -> Vec<String> {
        let at_work = self.hosts().filter(|host| is_at_work(host));
        let line = |host: &HostState<'_>| {
            let status = host.status.as_ref().map(Word::as_str).unwrap_or_default();
            let progress = host.progress.as_ref().map(|progress| format!("  {}", progress_text(progress)));
            // A worker reports nothing while its host's node is drained or uncordoned.
            let node = is_kept_by_node(host).then(|| format!(": {}", host.why));
            let more = progress.or(node).unwrap_or_default();
            one_line(&format!("{}: {status}{more}", host.hostname), LINE_CHARS_MAX)
        };
        bounded(at_work.map(line).collect())
    }

    /// Who waits and why.
    fn waiting(&self) -> Vec<String> {
        let waiting = self.hosts().filter(|host| is_waiting(host));
        together(waiting.map(|host| (host.why.clone(), &*host.hostname)))
    }

    /// The reboot queue, unless it is enabled and empty.
    fn reboots(&self) -> Vec<String> {
        let under_way = self.reboots.iter().flat_map(queue::under_way);
        let lines = self.state.reboot_queue.iter().map(queue::in_brief).chain(under_way);
        bounded(lines.map(|line| one_line(&line, LINE_CHARS_MAX)).collect())
    }

    /// Which hosts failed in the last run and why, while no run is active. That one of them holds a slot is among what needs a
    /// person.
    fn failed(&self) -> Vec<String> {
        let last = self.state.last_upgrade_info.iter().filter(|_| self.state.current_upgrade_info.is_none());
        let holders = || self.slots.groups.iter().flat_map(|group| &group.holders);
        let has_failed = |host: &&HostOfRun<'_>| {
            host.status.is(|status| matches!(status, HostStatus::Failed | HostStatus::TimedOut))
                && !host.late_answer.as_ref().is_some_and(LateAnswer::is_done)
                && !holders().any(|holder| holder.id == host.hostname)
        };
        let why = |host: &HostOfRun<'_>| {
            let reason = host.reason.reason.as_ref().map(|reason| format!(" ({reason})"));
            let late = host.late_answer.as_ref().map(|late| format!("; {}", describe(late)));
            format!("{}{}{}", host.status, reason.unwrap_or_default(), late.unwrap_or_default())
        };
        let failed = last.flat_map(|run| &run.hosts).filter(has_failed);
        together(failed.map(|host| (why(host), &*host.hostname)))
    }

    /// Whether a run would have no host, because no application is configured.
    fn upgrades_nothing(&self) -> bool {
        self.state.config_warnings.iter().any(|warning| warning.kind() == Some(NO_APPLICATIONS))
    }

    /// The next automatic run, or why there is none.
    fn next(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let next = match (self.state.next_upgrade_at, &self.state.next_upgrade_reason) {
            _ if self.upgrades_nothing() => {
                "a run would upgrade nothing: no application is configured".to_owned()
            }
            (Some(at), None) => {
                if let Some(current) = &self.state.current_upgrade_info
                    && at.0 <= now
                {
                    return format!(
                        "next:   a run starts as soon as run {} has ended",
                        sanitized(short(&current.id))
                    );
                }
                format!("a run starts at {}, in {}", zone.stamp(at), span(now, at.0))
            }
            (at, Some(reason)) => {
                let at = at.map(|at| format!("; then a run starts at {}", zone.stamp(at)));
                // An instance of an older version says it in a word.
                let word = || format!("no run starts automatically: {}", reason.replace('-', " "));
                let why = self.state.next_upgrade_why.clone().unwrap_or_else(word);
                format!("{}{}", sanitized(&why), at.unwrap_or_default())
            }
            (None, None) => "no run starts automatically".to_owned(),
        };
        let window = self.windows.iter().flat_map(|answer| &answer.windows).next();
        let window = window
            .map(|window| format!("\nwindow: {} to {}", zone.stamp(window.start), zone.stamp(window.end)));
        let used = self.state.window_used_by.as_ref();
        let used =
            used.map(|used| format!("\nopen:   the window starts no further run: {}", used_by(used.read())));
        let denied = self.state.denied_until;
        let denied =
            denied.map(|end| format!("\ndenied: a deny window is in force until {}", zone.stamp(end)));
        let [window, used, denied] = [window, used, denied].map(Option::unwrap_or_default);
        format!("next:   {next}{window}{used}{denied}")
    }

    /// When a run starts, how the last one ended, and whether one was missed after that.
    fn next_and_last(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let lines = [Some(self.next(zone, now)), Some(self.last(zone)), self.missed(zone)];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// The last run that was missed, if none has started since.
    fn missed(&self, zone: Zone) -> Option<String> {
        let missed = self.missed_runs.as_ref()?.items.first()?;
        let newest = self.runs.iter().flat_map(|page| &page.items).next();
        let is_newer = newest.is_none_or(|run| run.start_time.0 < missed.window_start.0);
        let line =
            || format!("missed: the run of {}: {}", zone.stamp(missed.window_start), why_missed(missed));
        is_newer.then(|| sanitized(&line()))
    }

    /// How the last run ended.
    fn last(&self, zone: Zone) -> String {
        let Some(run) = &self.state.last_upgrade_info else {
            return "last:   there has been no run".to_owned();
        };
        let LastUpgrade { id, result, start_time, end_time, counts, .. } = run;
        let (id, took) = (short(id), span(start_time.0, end_time.0));
        let (end, counts) = (zone.stamp(*end_time), counted(counts));
        sanitized(&format!("last:   run {id} {result} after {took} at {end}: {counts}"))
    }

    /// What does not go on without a person.
    fn needs(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        match self.state.pending_hosts.unwrap_or(0) {
            0 => {}
            1 => needs.push("1 host waits for approval: os-upgrade hosts list --pending".to_owned().into()),
            count => {
                needs
                    .push(format!("{count} hosts wait for approval: os-upgrade hosts list --pending").into());
            }
        }
        let active = self.state.current_upgrade_info.as_ref().map(|current| &*current.id);
        for group in &self.slots.groups {
            for holder in &group.holders {
                let left_by = holder.run.as_deref().filter(|run| Some(*run) != active);
                let is_of_no_entry = holder.entry.is_some_and(|entry| !self.has_entry(entry));
                let is_tried_again = self.hosts().any(|host| host.hostname == holder.id && goes_on(host));
                if holder.stuck || (left_by.is_some() && !is_tried_again) || is_of_no_entry {
                    let is_left = left_by.is_some() || is_of_no_entry;
                    needs.push(self.slot(&group.group, holder, left_by, is_left));
                }
            }
        }
        for entry in self.reboots.iter().flat_map(queue::for_person) {
            let give_up = format!("os-upgrade reboot-queue give-up {} --reason=TEXT", entry.index);
            needs.push(Need { what: queue::line(entry), commands: vec![("give up", give_up)] });
        }
        needs.extend(self.hosts().filter(|host| stays_cordoned(host)).map(cordon));
        needs.extend(self.hosts().filter_map(foreign_mark));
        needs.extend(self.hosts().filter_map(ineffective_reboot));
        if self.cluster.leader.is_none() {
            needs.push("no instance leads: os-upgrade cluster status".to_owned().into());
        }
        needs.extend(self.cluster.warnings.iter().cloned().map(Need::from));
        needs.extend(self.state.config_warnings.iter().map(|warning| warning.message.clone().into()));
        needs
    }
}

impl Report {
    /// That a slot is not given back by itself. One that a run or an entry has left is given back once its host's node is uncordoned, if
    /// that is under way; an operator can do without a node that is not ready.
    fn slot(&self, group: &str, holder: &SlotHolder<'_>, left_by: Option<&str>, is_left: bool) -> Need {
        let SlotHolder { id, reason, .. } = holder;
        let why =
            left_by.map(|run| ("why", format!("os-upgrade run show {} {}", short(run), shell_word(id))));
        let host = self.hosts().find(|host| host.hostname == *id && is_left);
        if let Some(host) = host.filter(|host| is_being_uncordoned(host)) {
            let waits = host.node.iter().find_map(|node| node.waits.as_ref());
            let uncordon = waits.filter(|waits| waits.kind == "not-ready").map(|_| uncordon(host));
            let waits = waits.map(|waits| format!(": {}", waits.text)).unwrap_or_default();
            let what = format!("{id} holds a slot of group {group} until its node is uncordoned{waits}");
            return Need { what, commands: why.into_iter().chain(uncordon).collect() };
        }
        let left_out = self.hosts().any(|host| host.hostname == *id && takes_no_part(host));
        let retry = left_by.map(|_| {
            // A run would skip it, and it would keep its slot.
            if left_out {
                ("let it take part again", format!("os-upgrade hosts approve {}", shell_word(id)))
            } else {
                ("retry all hosts", "os-upgrade run start".to_owned())
            }
        });
        let release = ("release", lock_release_with_reason(group, id));
        let commands = why.into_iter().chain(retry).chain([release]).collect();
        Need { what: format!("{id} holds a slot of group {group}: {reason}"), commands }
    }

    /// Whether the reboot queue has this entry, or may have it beyond those that were read.
    fn has_entry(&self, index: EntryIndex) -> bool {
        self.reboots.as_ref().is_some_and(|entries| queue::may_have(entries, index))
    }
}

/// What used the window; nothing if only a newer version knows it.
fn used_by(used: Option<&WindowUsedBy>) -> String {
    match used {
        Some(WindowUsedBy::Run { run }) => format!("run {} has started in it", sanitized(short(run))),
        Some(WindowUsedBy::Cancel { run }) => format!("run {} was cancelled in it", sanitized(short(run))),
        Some(WindowUsedBy::Earlier) | None => {
            "it has had a run or a cancel, or the site was restored in it".to_owned()
        }
    }
}

/// Whether runs leave it out until an operator approves it.
fn takes_no_part(host: &HostState<'_>) -> bool {
    host.blockers.iter().any(|blocker| matches!(blocker.kind(), Some("host-withdrawn" | "awaits-approval")))
}

fn stays_cordoned(host: &HostState<'_>) -> bool {
    host.node.as_ref().is_some_and(|node| node.kept)
}

fn ineffective_reboot(host: &HostState<'_>) -> Option<Need> {
    let missed = host.reboot_ineffective.as_ref()?;
    Some(format!("{}: {missed}", host.hostname).into())
}

/// That the mark of its node is of another journal, and the command that takes it over.
fn foreign_mark(host: &HostState<'_>) -> Option<Need> {
    let waits = host.node.as_ref()?.waits.as_ref().filter(|waits| waits.kind == FOREIGN_MARK)?;
    let what = format!("{}: {}", host.hostname, waits.text);
    Some(Need { what, commands: vec![("take over", hosts_uncordon(&host.hostname))] })
}

fn is_being_uncordoned(host: &HostState<'_>) -> bool {
    host.node.as_ref().is_some_and(|node| node.stage == "uncordoning")
}

/// That its node stays cordoned, and the command that ends it.
fn cordon(host: &HostState<'_>) -> Need {
    let what =
        format!("the node of {} stays cordoned, because its host failed or was given up", host.hostname);
    Need { what, commands: vec![uncordon(host)] }
}

fn uncordon(host: &HostState<'_>) -> (&'static str, String) {
    ("uncordon", hosts_uncordon(&host.hostname))
}

/// Whether it goes on once its node is drained or uncordoned.
fn is_kept_by_node(host: &HostState<'_>) -> bool {
    host.blockers.first().is_some_and(|blocker| blocker.kind() == Some("node-under-way"))
}

/// Whether the active run has it, and is not done with it.
fn goes_on(host: &HostState<'_>) -> bool {
    is(host, |status| !status.is_final())
}

fn is_at_work(host: &HostState<'_>) -> bool {
    is(host, works)
}

/// Whether it waits for something that an operator may want to know, or is not there. That no run is active, and who waits for
/// approval, is shown for the whole site; a heartbeat is awaited briefly; that a node stays cordoned needs a person.
fn is_waiting(host: &HostState<'_>) -> bool {
    let is_known = match host.blockers.first().and_then(Blocker::kind) {
        // In the block of the reboot queue.
        Some("reboot-under-way") => host.status.is_none(),
        kind => matches!(
            kind,
            Some("no-run" | "awaits-approval" | "slot-held" | "heartbeat-awaited" | "node-cordoned")
        ),
    };
    !is_at_work(host) && !is_known && !is(host, HostStatus::is_final) && !host.why.is_empty()
}

/// Whether it has a status in the active run for which `test` holds.
fn is(host: &HostState<'_>, test: impl FnOnce(HostStatus) -> bool) -> bool {
    host.status.as_ref().is_some_and(|status| status.is(test))
}

fn block(head: &str, lines: &[String]) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{head}\n  {}", lines.join("\n  ")))
}

/// Hosts, those with the same reason together, the most frequent reason first.
fn together<'a>(hosts: impl Iterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (why, host) in hosts {
        groups.entry(why).or_default().push(host);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    let line =
        |(why, hosts): (String, Vec<&str>)| one_line(&format!("{}: {why}", named(&hosts)), LINE_CHARS_MAX);
    bounded(groups.into_iter().map(line).collect())
}

/// The first lines; the last one says how many more there are.
fn bounded(mut lines: Vec<String>) -> Vec<String> {
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
        let text = need.text(columns.saturating_sub("  ".len()));
        lines += text.lines().count();
        if lines > NEED_LINES_MAX && at > 0 {
            shown.push(format!("and {} more", needs.len() - at));
            break;
        }
        shown.push(text);
    }
    shown
}

/// What does not go on without a person.
struct Need {
    what: String,
    /// What a command does, and the command, which is to be copied: it is neither wrapped nor cut.
    commands: Vec<(&'static str, String)>,
}

impl From<String> for Need {
    fn from(what: String) -> Self {
        Self { what, commands: Vec::new() }
    }
}

impl Need {
    /// In lines, all but the first of which are indented.
    fn text(&self, columns: usize) -> String {
        let options = textwrap::Options::new(columns).subsequent_indent("    ");
        let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
        let what = textwrap::fill(&one_line(&self.what, NEED_CHARS_MAX), options);
        let commands =
            self.commands.iter().map(|(does, command)| format!("\n    {does}: {}", sanitized(command)));
        iter::once(what).chain(commands).collect()
    }
}

fn cut(line: &str, chars_max: usize) -> String {
    console::truncate_str(line, chars_max, "…").into_owned()
}
