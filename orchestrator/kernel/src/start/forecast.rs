//! When a run starts automatically, and why none does.
//!
//! An occurrence of the maintenance windows starts at most one run: at its start, somewhat later with `start-jitter`, or
//! as soon as an orchestrator is running within it. Runs started by operators do not count. While a run is active no
//! other starts, and after an operator has cancelled a run none starts for the rest of the occurrence.
//!
//! Whether a run can start at that time is decided in `startable.rs`.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_calendar::{Calendar, CalendarError, DENIED_MAX, Occurrence, Watermark, Zones};

use super::blocker::{StartBlocker, UsedWindow, WindowBlocker, WindowUse};
use super::startable::{Startable, startable};
use crate::config::{Config, Settings};
use crate::pause::Pause;
use crate::run::{Run, StopCause, Trigger};
use crate::state::State;
use crate::view::View;

/// How long a leader has at least in which to start a run: longer than the time between two ticks.
const START_WITHIN: TimeDelta = TimeDelta::seconds(1);
/// How many occurrences are searched for one in which a run can start. Usually one of the first few is it.
const OCCURRENCES_MAX: usize = 4_096;

/// When runs start automatically, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The next run.
    pub next: NextRun,
    /// The window that is open and starts no further run; absent if none is.
    pub used: Option<UsedWindow>,
}

/// When the next run starts automatically, or why none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRun {
    /// Never, because of the blocker.
    Never(WindowBlocker),
    /// At this time, or as soon as the active run has ended.
    At(Start),
    /// The window is open and something blocks the run.
    Blocked {
        /// The start that is blocked.
        start: Start,
        /// What blocks it.
        by: WindowBlocker,
    },
}

/// A run that will start automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When it starts.
    pub at: DateTime<Utc>,
    /// When it can start at the latest.
    pub latest: DateTime<Utc>,
    /// The occurrence in which it starts; the run ends with it at the latest.
    pub occurrence: Occurrence,
}

impl Forecast {
    /// The next automatic start, if there is one.
    pub fn start(&self) -> Option<Start> {
        match &self.next {
            NextRun::At(start) | NextRun::Blocked { start, .. } => Some(*start),
            NextRun::Never(_) => None,
        }
    }

    /// Why no run starts automatically, or what blocks it in an open window.
    pub fn blocker(&self) -> Option<&WindowBlocker> {
        match &self.next {
            NextRun::Never(by) | NextRun::Blocked { by, .. } => Some(by),
            NextRun::At(_) => None,
        }
    }
}

/// The forecast for `state` at `now`.
pub fn forecast(state: &State, view: &View, now: DateTime<Utc>) -> Forecast {
    Forecast { next: next_run(state, view, now), used: used_window(state, view, now) }
}

fn next_run(state: &State, view: &View, now: DateTime<Utc>) -> NextRun {
    let Some(config) = state.config.as_deref() else {
        return NextRun::Never(StartBlocker::NoConfiguration.into());
    };
    if config.maintenance_windows.is_empty() {
        return NextRun::Never(WindowBlocker::NoWindows);
    }
    let from = match &state.pause {
        Some(Pause { cause, until: None, .. }) => {
            return NextRun::Never(StartBlocker::Paused(cause.clone()).into());
        }
        Some(Pause { until: Some(until), .. }) => now.max(*until),
        None => now,
    };
    let start = match next(config, &state.settings, &view.zones, state.watermark, from) {
        Ok(Some(start)) => start,
        Ok(None) => {
            let are_denied = denies_every_start(config, state, view, from);
            return NextRun::Never(WindowBlocker::NoOccurrence { are_denied });
        }
        Err(why) => return NextRun::Never(WindowBlocker::UnclearWindows { why }),
    };
    let by = match (start.attempt(state, view, now), &view.leader_startable) {
        (None | Some(Err(WindowBlocker::Any(StartBlocker::RunActive { .. }))), _) => None,
        (Some(_), Some(leader_message)) => leader_message.clone().err(),
        (Some(own), None) => own.err(),
    };
    by.map_or(NextRun::At(start), |by| NextRun::Blocked { start, by })
}

/// Whether a run would start from `now` on if there were no deny windows, where none starts with them.
fn denies_every_start(config: &Config, state: &State, view: &View, now: DateTime<Utc>) -> bool {
    let (settings, zones) = (&state.settings, &view.zones);
    let undenied = Calendar::new(&config.maintenance_windows, &[], settings.timezone, zones);
    let start_in = |occurrence| start_in(occurrence, config, settings, state.watermark, now);
    !config.deny_windows.is_empty() && matches!(first_start(&undenied, now, start_in), Ok(Some(_)))
}

/// The time around `now` in which deny windows keep runs from starting automatically, to the end of those that follow one another
/// without a gap; `None` if none is in force, or it cannot be worked out. They are followed for [`DENIED_MAX`] after `now`, as the
/// calendar does, and [`OCCURRENCES_MAX`] of them at most.
pub fn denied(state: &State, view: &View, now: DateTime<Utc>) -> Option<Occurrence> {
    let config = state.config.as_deref().filter(|config| !config.deny_windows.is_empty())?;
    let deny = Calendar::new(&config.deny_windows, &[], state.settings.timezone, &view.zones);
    let mut denials = deny.occurrences(now).take(OCCURRENCES_MAX).map_while(Result::ok);
    let mut denied = denials.next().filter(|first| first.start <= now)?;
    for next in denials {
        if denied.end < next.start || denied.end - now > DENIED_MAX {
            break;
        }
        denied.end = next.end;
    }
    Some(denied)
}

/// The window that is open at `now` and starts no further run.
fn used_window(state: &State, view: &View, now: DateTime<Utc>) -> Option<UsedWindow> {
    // Windows that cannot be worked out are reported as the blocker.
    let open = calendar(state.config.as_deref()?, &state.settings, &view.zones).containing(now).ok()??;
    let used_by = |run: &Run| {
        let started = matches!(run.trigger, Trigger::Window { .. }) && open.start <= run.started_at;
        let cancelled = !run.trigger.is_targeted()
            && matches!(run.stopping, Some(StopCause::Cancelled { .. }))
            && run.ended.is_none_or(|ended| open.start <= ended.at);
        let by_start = started.then(|| WindowUse::Run { run: run.id.clone() });
        by_start.or_else(|| cancelled.then(|| WindowUse::Cancel { run: run.id.clone() }))
    };
    let by = || state.known_runs().find_map(used_by).unwrap_or(WindowUse::Earlier);
    state.watermark.covers(open).then(|| UsedWindow { by: by(), open_until: open.end })
}

impl Start {
    /// Whether the run can start at `now`; absent before its time.
    pub(crate) fn attempt<'a>(
        self,
        state: &'a State,
        view: &'a View,
        now: DateTime<Utc>,
    ) -> Option<Result<Startable<'a>, WindowBlocker>> {
        let attempt = || startable(state, view)?.unattended();
        (self.at <= now).then(attempt)
    }
}

/// The times at which runs may start automatically.
pub fn calendar<'a>(config: &'a Config, settings: &Settings, zones: &'a Zones) -> Calendar<'a> {
    Calendar::new(&config.maintenance_windows, &config.deny_windows, settings.timezone, zones)
}

/// The first start from `now` on, in an occurrence that the watermark does not cover.
pub(crate) fn next(
    config: &Config,
    settings: &Settings,
    zones: &Zones,
    watermark: Watermark,
    now: DateTime<Utc>,
) -> Result<Option<Start>, CalendarError> {
    let start_in = |occurrence| start_in(occurrence, config, settings, watermark, now);
    first_start(&calendar(config, settings, zones), now, start_in)
}

/// The first of the starts that `start_in` gives occurrences of `calendar` from `now` on.
fn first_start(
    calendar: &Calendar<'_>,
    now: DateTime<Utc>,
    start_in: impl Fn(Occurrence) -> Option<Start>,
) -> Result<Option<Start>, CalendarError> {
    let mut occurrences = calendar.occurrences(now).take(OCCURRENCES_MAX);
    occurrences.find_map(|occurrence| occurrence.map(&start_in).transpose()).transpose()
}

/// When the run of `occurrence` starts from `now` on, unless the occurrence is too short or used, or `now` too late. One
/// in which a run could start for less than a second is too short: perhaps no leader looks at that very instant.
pub(crate) fn start_in(
    occurrence: Occurrence,
    config: &Config,
    settings: &Settings,
    watermark: Watermark,
    now: DateTime<Utc>,
) -> Option<Start> {
    if watermark.covers(occurrence) {
        return None;
    }
    let latest = latest(occurrence, config);
    let spread = (latest - START_WITHIN - occurrence.start).min(config.start_jitter.to_delta());
    if spread < TimeDelta::zero() {
        return None;
    }
    let at = (occurrence.start + jitter(&settings.site, occurrence.start, spread)).max(now);
    (at <= latest && at < occurrence.end).then_some(Start { at, latest, occurrence })
}

/// The last time at which a run may still start in `occurrence`.
fn latest(occurrence: Occurrence, config: &Config) -> DateTime<Utc> {
    occurrence.end - config.needed().1.to_delta()
}

/// How long after the start of an occurrence a site starts its run: at most `spread`. Always the same for the same site
/// and occurrence, so that every leader gets the same time.
fn jitter(site: &str, start: DateTime<Utc>, spread: TimeDelta) -> TimeDelta {
    crate::jitter::jitter(&format!("{site} {}", start.timestamp()), spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_spread() {
        let spread = TimeDelta::minutes(30);
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let minutes = |site: usize| jitter(&format!("site-{site}"), start, spread).num_minutes();
        let mut counts = [0; 31];
        for site in 0..3_000 {
            counts[usize::try_from(minutes(site)).unwrap()] += 1;
        }
        assert!(counts[..30].iter().all(|count| (50..200).contains(count)), "{counts:?}");
        let same = |site| jitter(site, start, spread);
        assert_eq!(same("a"), same("a"));
        assert_ne!(same("a"), jitter("a", start + TimeDelta::days(7), spread));
        assert_eq!(jitter("a", start, TimeDelta::zero()), TimeDelta::zero());
    }

    /// No further than the calendar looks for an opening.
    #[test]
    fn denial_is_followed_for_two_years() {
        let deny = |step: &str| -> State {
            let config = serde_json::from_str(step).unwrap();
            State { config: Some(std::sync::Arc::new(config)), ..State::default() }
        };
        let halves = r#"{"deny-windows": [
            {"cron": "0 0 0 * * *", "duration": "12h"}, {"cron": "0 0 12 * * *", "duration": "12h"}
        ]}"#;
        let now = DateTime::parse_from_rfc3339("2026-11-22T05:00:00Z").unwrap().to_utc();
        let denied = denied(&deny(halves), &View::default(), now).unwrap();
        assert_eq!(denied.start.to_rfc3339(), "2026-11-22T00:00:00+00:00");
        let ahead = denied.end - now;
        assert!(ahead > DENIED_MAX && ahead <= DENIED_MAX + TimeDelta::hours(12), "{ahead}");
    }

    fn start_of(config: &str) -> Option<Start> {
        let config = serde_json::from_str(config).unwrap();
        // A Sunday.
        let now = DateTime::parse_from_rfc3339("2026-11-22T05:00:00Z").unwrap().to_utc();
        let watermark = Watermark::up_to(now - TimeDelta::minutes(30));
        next(&config, &Settings::default(), Zones::built_in(), watermark, now).unwrap()
    }

    /// However the site is called, the jitter leaves it a second.
    #[test]
    fn jitter_leaves_time_for_the_start() {
        let config = serde_json::from_str(r#"{"start-jitter": "2s", "minimum-remaining": "1h"}"#).unwrap();
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let left = |lasts: i64, site: usize| {
            let occurrence =
                Occurrence { start, end: start + TimeDelta::hours(1) + TimeDelta::seconds(lasts) };
            let settings = Settings { site: site.to_string(), ..Settings::default() };
            let due = start_in(occurrence, &config, &settings, Watermark::NONE, start)?;
            Some((due.latest - due.at).num_seconds())
        };
        assert!((0..100).all(|site| left(0, site).is_none() && left(1, site) == Some(1)));
        let two: Vec<_> = (0..100).filter_map(|site| left(2, site)).collect();
        assert!(
            two.iter().all(|left| (1..=2).contains(left)) && two.contains(&1) && two.contains(&2),
            "{two:?}"
        );
    }

    /// More than a hundred occurrences before it are too short.
    #[test]
    fn long_enough_occurrence_is_found_far_ahead() {
        let config = r#"{
            "maintenance-windows": [
                {"cron": "0 0 * * * *", "duration": "30m"},
                {"days-of-week": "Sunday", "start-time": "01:00", "duration": "4h"}
            ],
            "minimum-remaining": "1h"
        }"#;
        let start = start_of(config).unwrap();
        assert_eq!(start.at.to_rfc3339(), "2026-11-29T01:00:00+00:00");
        for too_short in ["40m", "1h"] {
            assert_eq!(start_of(&config.replace("4h", too_short)), None, "{too_short}");
        }
    }
}
