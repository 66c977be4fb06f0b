//! What goes on at a site, and what comes next, made from the API's answers. How much of it fits is left to who shows it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_api_types::body::{HostOfRun, LateAnswer, Page, Why};
use os_upgrade_api_types::routes::cluster::ClusterState;
use os_upgrade_api_types::routes::reboot_queue::{Entry, EntryIndex};
use os_upgrade_api_types::routes::runs::{MissedRun, Run};
use os_upgrade_api_types::routes::slots::Slots;
use os_upgrade_api_types::routes::state::{
    HostState, LastUpgrade, NotReached, OldestSuccess, Paused, State, WindowUsedBy,
};
use os_upgrade_api_types::routes::windows::Windows;
use os_upgrade_api_types::word::{WhyKind, Word};
use os_upgrade_kernel::{HostStatus, Warning};
use serde::Deserialize;

use crate::config::number_of;
use crate::describe::describe;
use crate::progress::{self, belongs_to_run, counted, percent_done, progress_text};
use crate::row::Detail;
use crate::rows::reboot_queue;
use crate::rows::runs::{by, short, stopping, why_missed};
use crate::why::in_one_sentence;
use crate::zone::{Zone, span};

/// The API's answers that the status of a site is made from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The site.
    pub state: State<'static>,
    /// The newest run.
    pub runs: Option<Page<Run<'static>>>,
    /// The newest run that was missed.
    pub missed_runs: Option<Page<MissedRun>>,
    /// Who holds slots.
    pub slots: Slots<'static>,
    /// The instances.
    pub cluster: ClusterState<'static>,
    /// The next maintenance window; absent if none is configured.
    pub windows: Option<Windows>,
    /// The first entries of the reboot queue; absent if there is no queue.
    pub reboots: Option<Page<Entry<'static>>>,
}

/// How far the active run is.
#[derive(Debug)]
pub struct RunProgress {
    /// How much is done, in percent of a host.
    pub percents: u64,
    /// How many hosts are done with it.
    pub ended: u64,
    /// How many hosts it has.
    pub total: u64,
    /// How many hosts have each status, in words.
    pub counted: String,
}

/// A reason, and the names of the hosts that share it.
pub type Together<'a> = (String, Vec<&'a str>);

impl Status {
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &HostState<'static>> {
        self.state.hosts.iter().flatten()
    }

    /// What goes on: the active run and how long it may take, or that there is none.
    pub fn run(&self, zone: Zone, now: DateTime<Utc>) -> String {
        let Some(current) = &self.state.current_upgrade_info else {
            if self.reboots.iter().flat_map(reboot_queue::under_way).next().is_some() {
                return "no run is active; the reboot queue is at work".to_owned();
            }
            return format!("no run is active; the site is {}", self.state.status);
        };
        let newest = self.runs.iter().flat_map(|page| &page.items).find(|run| run.id == current.id);
        let doing = |run: &Run<'_>| match &current.stopping {
            Some(cause) => stopping(cause.read()),
            None => run.phase.to_string(),
        };
        let by = newest.map(|run| format!(", {}, started by {}", doing(run), by(run))).unwrap_or_default();
        let left = span(now, current.not_after.0);
        format!("run {}{by}; {left} left, until {}", short(&current.id), zone.stamp(current.not_after))
    }

    /// That the site is paused, by whom, until when and why; absent if it is not.
    pub fn pause(&self, zone: Zone) -> Option<String> {
        let Paused { actor, reason, since, until } = self.state.paused.as_ref()?;
        let until = zone.stamp_or(*until, "`os-upgrade resume`");
        let why = reason.as_deref().unwrap_or("the site was restored");
        Some(format!("PAUSED by {actor} since {} until {until}: {why}", zone.stamp(*since)))
    }

    /// How far the active run is; absent if there is none.
    pub fn run_progress(&self) -> Option<RunProgress> {
        let current = self.state.current_upgrade_info.as_ref()?;
        let counts = || current.counts.0.iter().filter(|(word, _)| belongs_to_run(word));
        let total = counts().map(|(_, count)| count).sum();
        // Other words than those of statuses are about hosts that have ended.
        let is_at_work = |word: &str| Word::<HostStatus>::read(word).is(|status| !status.is_final());
        let ended = counts().filter(|(word, _)| !is_at_work(word));
        let ended = ended.map(|(_, count)| count).sum();
        Some(RunProgress { percents: self.percents(ended), ended, total, counted: counted(&current.counts) })
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
    pub fn at_work(&self) -> Vec<String> {
        let at_work = self.hosts().filter(|host| is_at_work(host));
        let line = |host: &HostState<'_>| {
            let status = host.status.as_ref().map(Word::as_str).unwrap_or_default();
            let progress = host.progress.as_ref().map(|progress| format!("  {}", progress_text(progress)));
            let overdue = host.why.as_ref().filter(|why| why.kind() == Some(WhyKind::UpgradeTimeout));
            let overdue = overdue.map(|why| format!(": {}", why.text)).unwrap_or_default();
            // A worker reports nothing while its host's node is drained or uncordoned.
            let node = is_kept_by_node(host).then(|| format!(": {}", why(host)));
            let more = overdue + &progress.or(node).unwrap_or_default();
            format!("{}: {status}{more}", host.hostname)
        };
        at_work.map(line).collect()
    }

    /// Who waits and why.
    pub fn waiting(&self) -> Vec<Together<'_>> {
        let waiting = self.hosts().filter(|host| is_waiting(host));
        together(waiting.map(|host| (why(host), &*host.hostname)))
    }

    /// The reboot queue, unless it is enabled and empty.
    pub fn reboot_queue(&self) -> Vec<String> {
        let under_way = self.reboots.iter().flat_map(reboot_queue::under_way);
        self.state.reboot_queue.iter().map(reboot_queue::in_brief).chain(under_way).collect()
    }

    /// Which hosts failed in the last run and why, while no run is active. That one of them holds a slot is among what needs a
    /// person.
    pub fn failed(&self) -> Vec<Together<'_>> {
        let is_idle = self.state.current_upgrade_info.is_none();
        let (whole, targeted) = (&self.state.last_upgrade_info, &self.state.last_targeted_info);
        let again = |host: &&HostOfRun<'_>| {
            targeted.iter().flat_map(|run| &run.hosts).any(|later| later.hostname == host.hostname)
        };
        let first = whole.iter().flat_map(|run| &run.hosts).filter(move |host| !again(host));
        let last = first.chain(targeted.iter().flat_map(|run| &run.hosts)).filter(|_| is_idle);
        let holders = || self.slots.groups.iter().flat_map(|group| &group.holders);
        let has_failed = |host: &&HostOfRun<'_>| {
            host.status.is(|status| matches!(status, HostStatus::Failed | HostStatus::TimedOut))
                && host.upgraded_since.is_none()
                && !host.late_answer.as_ref().is_some_and(LateAnswer::is_done)
                && !holders().any(|holder| holder.id == host.hostname)
        };
        let why = |host: &HostOfRun<'_>| {
            let reason = host.why.as_ref().map(|why| format!(" ({})", why.text));
            let late = host.late_answer.as_ref().map(|late| format!("; {}", describe(late)));
            format!("{}{}{}", host.status, reason.unwrap_or_default(), late.unwrap_or_default())
        };
        let failed = last.filter(has_failed);
        together(failed.map(|host| (why(host), &*host.hostname)))
    }

    /// Whether a run would have no host, because no application is configured.
    fn upgrades_nothing(&self) -> bool {
        let kind = Warning::NoApplications.kind();
        self.state.config_warnings.iter().any(|warning| warning.kind() == Some(kind))
    }

    /// The next automatic run, or why there is none, and what is said of windows.
    fn next(&self, zone: Zone, now: DateTime<Utc>) -> Vec<Detail> {
        let next = match (self.state.next_upgrade_at, &self.state.next_upgrade_why) {
            _ if self.upgrades_nothing() => {
                "a run would upgrade nothing: no application is configured".to_owned()
            }
            (Some(at), None) => {
                if let Some(current) = &self.state.current_upgrade_info
                    && at.0 <= now
                {
                    let what = format!("a run starts as soon as run {} has ended", short(&current.id));
                    return vec![("next", what)];
                }
                format!("a run starts at {}, in {}", zone.stamp(at), span(now, at.0))
            }
            (at, Some(why)) => {
                let at = at.map(|at| format!("; then a run starts at {}", zone.stamp(at)));
                format!("{}{}", why.text, at.unwrap_or_default())
            }
            (None, None) => "no run starts automatically".to_owned(),
        };
        let window = self.windows.iter().flat_map(|answer| &answer.windows).next();
        let window =
            window.map(|window| format!("{} to {}", zone.stamp(window.start), zone.stamp(window.end)));
        let used = self.state.window_used_by.as_ref();
        let used = used.map(|used| format!("the window starts no further run: {}", used_by(used.read())));
        let denied = self.state.denied_until;
        let denied = denied.map(|end| format!("a deny window is in force until {}", zone.stamp(end)));
        let lines = [("next", Some(next)), ("window", window), ("open", used), ("denied", denied)];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }

    /// When a run starts, how the last one ended, and whether one was missed after that.
    pub fn next_and_last(&self, zone: Zone, now: DateTime<Utc>) -> Vec<Detail> {
        let mut lines = self.next(zone, now);
        lines.push(("last", self.last(zone)));
        lines.extend(self.state.last_targeted_info.as_ref().map(|run| ("then", ended(run, zone))));
        lines.extend(self.missed(zone).map(|missed| ("missed", missed)));
        let (not_reached, oldest) = left_behind(&self.state, now);
        lines.extend(not_reached.map(|text| ("left out", text)));
        lines.extend(oldest.map(|text| ("oldest", text)));
        lines
    }

    /// The last run that was missed, if none has started since.
    fn missed(&self, zone: Zone) -> Option<String> {
        let missed = self.missed_runs.as_ref()?.items.first()?;
        let newest = self.runs.iter().flat_map(|page| &page.items).next();
        let is_newer = newest.is_none_or(|run| run.start_time.0 < missed.window_start.0);
        is_newer.then(|| format!("the run of {}: {}", zone.stamp(missed.window_start), why_missed(missed)))
    }

    /// How the last run ended.
    pub fn last(&self, zone: Zone) -> String {
        let Some(run) = &self.state.last_upgrade_info else {
            let of_site = if self.state.last_targeted_info.is_some() { " of the whole site" } else { "" };
            return format!("there has been no run{of_site}");
        };
        ended(run, zone)
    }

    /// Whether the reboot queue has this entry, or may have it beyond those that were read.
    pub(crate) fn has_entry(&self, index: EntryIndex) -> bool {
        self.reboots.as_ref().is_some_and(|entries| reboot_queue::may_have(entries, index))
    }
}

/// How a run ended.
fn ended(run: &LastUpgrade<'_>, zone: Zone) -> String {
    let LastUpgrade { id, result, start_time, end_time, counts, .. } = run;
    let (id, took) = (short(id), span(start_time.0, end_time.0));
    let (end, counts) = (zone.stamp(*end_time), counted(counts));
    format!("run {id} {result} after {took} at {end}: {counts}")
}

/// What used the window; nothing if only a newer version knows it.
fn used_by(used: Option<&WindowUsedBy>) -> String {
    match used {
        Some(WindowUsedBy::Run { run }) => format!("run {} has started in it", short(run)),
        Some(WindowUsedBy::Cancel { run }) => format!("run {} was cancelled in it", short(run)),
        Some(WindowUsedBy::Earlier) | None => {
            "it has had a run or a cancel, or the site was restored in it".to_owned()
        }
    }
}

/// Whether it goes on once its node is drained or uncordoned.
fn is_kept_by_node(host: &HostState<'_>) -> bool {
    host.why.as_ref().and_then(Why::kind) == Some(WhyKind::NodeUnderWay)
}

/// Whether the active run has it, and is not done with it.
pub(crate) fn goes_on(host: &HostState<'_>) -> bool {
    is(host, |status| !status.is_final())
}

fn is_at_work(host: &HostState<'_>) -> bool {
    is(host, progress::is_at_work)
}

/// Whether it holds a slot in the active run, and is drained, upgraded, rebooted or uncordoned.
pub(crate) fn is_under_way(host: &HostState<'_>) -> bool {
    is(host, HostStatus::is_under_way)
}

/// Whether it waits for something that an operator may want to know, or is not there. That no run is active, and who waits for
/// approval, is shown for the whole site; a heartbeat is awaited briefly; that a node stays cordoned needs a person.
fn is_waiting(host: &HostState<'_>) -> bool {
    let is_known = match host.why.as_ref().and_then(Why::kind) {
        // In the block of the reboot queue.
        Some(WhyKind::RebootUnderWay) => host.status.is_none(),
        Some(
            WhyKind::NoRun
            | WhyKind::AwaitsApproval
            | WhyKind::SlotHeld
            | WhyKind::HeartbeatAwaited
            | WhyKind::NodeCordoned,
        ) => true,
        Some(
            WhyKind::HostWithdrawn
            | WhyKind::HostDeferred
            | WhyKind::Silent
            | WhyKind::UpgradeTimeout
            | WhyKind::NodeUnderWay
            | WhyKind::ClockBehind
            | WhyKind::ClockDisputed
            | WhyKind::ClockSkew
            | WhyKind::ClockStepped
            | WhyKind::ClockUnmeasured,
        )
        | None => false,
    };
    let is_there = host.why.is_some() || host.status.is_some();
    is_there && !is_at_work(host) && !is_known && !is(host, HostStatus::is_final)
}

fn why(host: &HostState<'_>) -> String {
    in_one_sentence(host.status.as_ref(), host.why.as_ref(), &host.also)
}

/// Whether it has a status in the active run for which `test` holds.
pub(crate) fn is(host: &HostState<'_>, test: impl FnOnce(HostStatus) -> bool) -> bool {
    host.status.as_ref().is_some_and(|status| status.is(test))
}

/// Hosts, those with the same reason together, the most frequent reason first.
fn together<'a>(hosts: impl Iterator<Item = (String, &'a str)>) -> Vec<Together<'a>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (why, host) in hosts {
        groups.entry(why).or_default().push(host);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    groups
}

/// How many hosts have not been reached in the last runs, and which host was upgraded longest ago, unless that was within a day.
pub fn left_behind(state: &State<'_>, now: DateTime<Utc>) -> (Option<String>, Option<String>) {
    let not_reached = state.not_reached.as_ref().map(|NotReached { runs, hosts }| {
        format!("not reached in the last {runs} runs: {}", number_of(*hosts))
    });
    let oldest = state.oldest_success.as_ref().and_then(|OldestSuccess { hostname, time }| {
        let ago = match (now - time.0).num_days() {
            days if days < 1 => return None,
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        };
        Some(format!("oldest success: {ago} ({hostname})"))
    });
    (not_reached, oldest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overdue_hosts_say_so_beside_their_progress() {
        let progress =
            json!({"action": "upgrade", "percent": 40, "text": "unpacking", "time": "2026-11-29T01:00:00Z"});
        let at_work = |whys: &[serde_json::Value]| {
            let (why, also) = (&whys[0], &whys[1..]);
            let host = json!({"hostname": "h1", "status": "upgrading", "progress": progress, "why": why, "also": also});
            let answers = json!({
                "state": { "status": "upgrading", "hosts": [host] },
                "slots": { "provider": "embedded", "reclaim": "never", "groups": [] },
                "cluster": { "leader": "a1", "instances": [], "streams": [] },
            });
            Status::deserialize(answers).unwrap().at_work()
        };
        let awaited = json!({"kind": "reply-awaited", "text": "awaits the reply"});
        assert_eq!(at_work(std::slice::from_ref(&awaited)), ["h1: upgrading  40 % unpacking"]);
        let overdue = json!({"kind": "upgrade-timeout", "text": "no reply to upgrade within 2h"});
        assert_eq!(
            at_work(&[overdue, awaited]),
            ["h1: upgrading: no reply to upgrade within 2h  40 % unpacking"]
        );
    }

    #[test]
    fn hosts_that_are_left_behind_are_named() {
        let now = "2026-11-29T01:00:00Z".parse().unwrap();
        let told = |state: serde_json::Value| {
            let state = State::deserialize(&state).unwrap();
            left_behind(&state, now)
        };
        let (not_reached, oldest) = told(json!({
            "not-reached": {"runs": 3, "hosts": 53}, "oldest-success": {"hostname": "h17", "time": "2026-10-19T00:00:00Z"},
        }));
        assert_eq!(not_reached.as_deref(), Some("not reached in the last 3 runs: 53 hosts"));
        assert_eq!(oldest.as_deref(), Some("oldest success: 41 days (h17)"));
        let recent = json!({"oldest-success": {"hostname": "h17", "time": "2026-11-28T02:00:00Z"}});
        assert_eq!(told(recent), (None, None));
    }
}
