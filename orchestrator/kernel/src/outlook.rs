//! When a run starts by itself, and why none does.
//!
//! An occurrence of the maintenance windows starts at most one run: at its start, somewhat later where starts are to be
//! spread, or as soon as an orchestrator is there within it. A run that somebody starts does not count; while one is
//! active none starts, and after an operator has cancelled one none does for the rest of the occurrence.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Settings, tag};
use crate::spent::Spent;
use crate::state::State;
use crate::strongbox::Sealed;
use crate::view::{Reachability, View};
use crate::window::{Calendar, CalendarError, Occurrence};

/// How many occurrences are gone through for one in which a run can start: mostly it is among the first few.
const OCCURRENCES_MAX: usize = 4_096;

/// How long it may take until a lookout that has found none looks again.
const LOOK_AGAIN: TimeDelta = TimeDelta::hours(1);

/// When the next run starts by itself, as far as can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// Not at any time.
    Never(Never),
    /// At this time, or as soon as the active run has ended.
    Next(Start),
    /// It could have started already, and is kept from it.
    KeptBack {
        /// When it would have started.
        start: Start,
        /// By what.
        by: KeptBackBy,
    },
}

/// Why no run starts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// Nothing is configured.
    NoConfiguration,
    /// No maintenance windows are.
    NoWindows,
    /// None of them opens again, or not for long enough.
    NoOccurrence,
    /// When they open cannot be worked out.
    Windows(CalendarError),
}

/// What keeps a run from starting in a window that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum KeptBackBy {
    /// The clocks of orchestrator and bus differ by so many seconds.
    ClockSkew {
        /// By how many.
        seconds: i64,
    },
    /// Slots cannot be asked for, because of a secret.
    Sealed(Sealed),
    /// Of so many hosts it is not known yet whether they are off: a run would wait for those.
    HostsAwaited {
        /// How many.
        hosts: usize,
    },
    /// No host that could be upgraded is there.
    NoHosts,
    /// So many hosts that could be upgraded are there, and nobody has approved any of them.
    NoneApproved {
        /// How many.
        hosts: usize,
    },
}

/// A run that will start by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When.
    pub at: DateTime<Utc>,
    /// In which occurrence, at whose end it ends at the latest.
    pub occurrence: Occurrence,
}

impl Outlook {
    /// The run that starts next, now that nobody else starts one.
    pub fn start(&self) -> Option<Start> {
        match self {
            Self::Next(start) | Self::KeptBack { start, .. } => Some(*start),
            Self::Never(_) => None,
        }
    }
}

/// What is to be expected of `state` at `now`.
pub fn outlook(state: &State, view: &View, now: DateTime<Utc>) -> Outlook {
    let Some(config) = state.config.as_deref() else { return Outlook::Never(Never::NoConfiguration) };
    if config.maintenance_windows.is_empty() {
        return Outlook::Never(Never::NoWindows);
    }
    let start = match next(config, &state.settings, state.spent, now) {
        Ok(Some(start)) => start,
        Ok(None) => return Outlook::Never(Never::NoOccurrence),
        Err(error) => return Outlook::Never(Never::Windows(error)),
    };
    let by = (start.at <= now && state.run.is_none()).then(|| kept_back(state, view, config)).flatten();
    by.map_or(Outlook::Next(start), |by| Outlook::KeptBack { start, by })
}

/// The occurrence in which a run is to start at `now`, if one is.
pub fn due(state: &State, view: &View, now: DateTime<Utc>) -> Option<Occurrence> {
    Lookout::default().due(state, view, now)
}

/// Looks out for the time at which a run is to start: asked at every tick, it works windows out only when it has to.
#[derive(Debug, Default)]
pub struct Lookout {
    seen: Option<Seen>,
}

/// What a lookout has worked out: from `from` on and before `until` it is `start` that comes next, as long as the rest
/// stays as it is.
#[derive(Debug)]
struct Seen {
    config: Arc<Config>,
    settings: Arc<Settings>,
    spent: Spent,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    start: Option<Start>,
}

impl Seen {
    fn new(config: &Arc<Config>, state: &State, now: DateTime<Utc>) -> Self {
        // What is wrong with the windows is said by the outlook.
        let start = next(config, &state.settings, state.spent, now).unwrap_or_default();
        let until = start.map_or(now + LOOK_AGAIN, |start| latest(start.occurrence, config));
        let (config, settings) = (Arc::clone(config), Arc::clone(&state.settings));
        Self { config, settings, spent: state.spent, from: now, until, start }
    }

    fn is_of(&self, config: &Arc<Config>, state: &State, now: DateTime<Utc>) -> bool {
        let same_config = Arc::ptr_eq(config, &self.config);
        let same_settings = Arc::ptr_eq(&state.settings, &self.settings);
        same_config && same_settings && self.spent == state.spent && (self.from..self.until).contains(&now)
    }
}

impl Lookout {
    /// The occurrence in which a run is to start at `now`, if one is.
    pub fn due(&mut self, state: &State, view: &View, now: DateTime<Utc>) -> Option<Occurrence> {
        let config = state.config.as_ref().filter(|_| state.run.is_none())?;
        let known = self.seen.take().filter(|seen| seen.is_of(config, state, now));
        let seen = self.seen.insert(known.unwrap_or_else(|| Seen::new(config, state, now)));
        let start = seen.start.filter(|start| start.at <= now)?;
        kept_back(state, view, config).is_none().then_some(start.occurrence)
    }
}

/// The times at which runs may start by themselves.
pub fn calendar<'a>(config: &'a Config, settings: &Settings) -> Calendar<'a> {
    Calendar::new(&config.maintenance_windows, &config.deny_windows, settings.timezone)
}

/// The first start from `now` on, in an occurrence that is not spent.
pub(crate) fn next(
    config: &Config,
    settings: &Settings,
    spent: Spent,
    now: DateTime<Utc>,
) -> Result<Option<Start>, CalendarError> {
    let start_in = |occurrence| start_in(occurrence, config, settings, spent, now);
    let mut starts = calendar(config, settings).occurrences(now).take(OCCURRENCES_MAX);
    starts.find_map(|occurrence| occurrence.map(start_in).transpose()).transpose()
}

fn start_in(
    occurrence: Occurrence,
    config: &Config,
    settings: &Settings,
    spent: Spent,
    now: DateTime<Utc>,
) -> Option<Start> {
    if spent.covers(occurrence) {
        return None;
    }
    let latest = latest(occurrence, config);
    let spread = (latest - occurrence.start).min(config.start_jitter.to_delta());
    if spread < TimeDelta::zero() {
        return None;
    }
    let at = (occurrence.start + jitter(&settings.site, occurrence.start, spread)).max(now);
    (at <= latest && at < occurrence.end).then_some(Start { at, occurrence })
}

/// The last time at which a run may still start in `occurrence`.
fn latest(occurrence: Occurrence, config: &Config) -> DateTime<Utc> {
    occurrence.end - config.minimum_remaining.to_delta()
}

/// How much after its start a site makes use of an occurrence: always the same for the same two, so that whoever leads
/// by then comes to the same time, and as good as random among sites and occurrences.
fn jitter(site: &str, start: DateTime<Utc>, spread: TimeDelta) -> TimeDelta {
    let seconds = spread.num_seconds().unsigned_abs();
    let hash = tag::fnv(format!("{site} {}", start.timestamp()).as_bytes());
    // The low bits of this hash of similar texts are similar.
    let drawn = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    TimeDelta::seconds((drawn % (seconds + 1)).cast_signed())
}

fn kept_back(state: &State, view: &View, config: &Config) -> Option<KeptBackBy> {
    if let Some(seconds) = view.excessive_skew() {
        return Some(KeptBackBy::ClockSkew { seconds });
    }
    if let Some(sealed) = &view.sealed {
        return Some(KeptBackBy::Sealed(sealed.clone()));
    }
    let (mut awaited, mut reachable) = (0, false);
    let (mut enrolled, mut left_out) = (0_usize, 0);
    for (name, host, _) in view.serving(&config.worker_applications) {
        if !state.enrolled(name).takes_part() {
            left_out += 1;
            continue;
        }
        enrolled += 1;
        match host.reachability {
            Reachability::Awaited => awaited += 1,
            Reachability::Unreachable => {}
            Reachability::Unknown | Reachability::Reachable => reachable = true,
        }
    }
    match awaited {
        0 if enrolled == 0 && left_out > 0 => Some(KeptBackBy::NoneApproved { hosts: left_out }),
        0 => (!reachable).then_some(KeptBackBy::NoHosts),
        hosts => Some(KeptBackBy::HostsAwaited { hosts }),
    }
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

    fn start_of(config: &str) -> Option<Start> {
        let config = serde_json::from_str(config).unwrap();
        // A Sunday.
        let now = DateTime::parse_from_rfc3339("2026-11-22T05:00:00Z").unwrap().to_utc();
        next(&config, &Settings::default(), Spent::up_to(now - TimeDelta::minutes(30)), now).unwrap()
    }

    /// More than a hundred before it are too short.
    #[test]
    fn one_that_is_long_enough_is_found_far_ahead() {
        let config = r#"{
            "maintenance-windows": [
                {"cron": "0 0 * * * *", "duration": "30m"},
                {"days-of-week": "Sunday", "start-time": "01:00", "duration": "4h"}
            ],
            "minimum-remaining": "1h"
        }"#;
        let start = start_of(config).unwrap();
        assert_eq!(start.at.to_rfc3339(), "2026-11-29T01:00:00+00:00");
        assert_eq!(start_of(&config.replace("4h", "40m")), None);
    }
}
