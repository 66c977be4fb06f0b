//! When a run is due, looked at at every tick.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_calendar::{Occurrence, Watermark, Zones};

use super::forecast::{Start, next};
use super::overdue::{BlockedStart, missed};
use super::startable::Startable;
use crate::config::{Config, Settings};
use crate::state::State;
use crate::view::View;

/// How long a start timer that has found no start waits before it searches again.
const SEARCH_AGAIN: TimeDelta = TimeDelta::hours(1);

/// A run that is due to start now.
#[derive(Debug, Clone, Copy)]
pub struct Due<'a> {
    /// The occurrence in which it starts.
    pub occurrence: Occurrence,
    /// What it is started with.
    pub(crate) startable: Startable<'a>,
}

/// Finds out when a run is due. It is called at every tick and caches the next start, so that it searches the windows
/// only when necessary.
#[derive(Debug, Default)]
pub struct StartTimer {
    cached: Option<CachedStart>,
    /// What last kept a run from starting.
    blocked: Option<BlockedStart>,
}

/// The next start, valid from `from` on and before `until`, as long as configuration, settings, the rules of time
/// zones, watermark and what is settled of missed runs stay the same.
#[derive(Debug)]
struct CachedStart {
    config: Arc<Config>,
    settings: Arc<Settings>,
    zones: Zones,
    watermark: Watermark,
    settled: Watermark,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    start: Option<Start>,
    /// Whether runs were missed that are not settled.
    has_missed: bool,
}

impl CachedStart {
    fn new(config: &Arc<Config>, state: &State, view: &View, now: DateTime<Utc>) -> Self {
        // The forecast reports invalid windows.
        let start = next(config, &state.settings, &view.zones, state.watermark, now).unwrap_or_default();
        let until = start.map_or(now + SEARCH_AGAIN, |start| start.latest);
        let has_missed = missed(state, view, None, now).is_ok_and(|missed| !missed.is_empty());
        let (config, settings) = (Arc::clone(config), Arc::clone(&state.settings));
        let (zones, watermark, settled) = (view.zones.clone(), state.watermark, state.missed.settled);
        Self { config, settings, zones, watermark, settled, from: now, until, start, has_missed }
    }

    fn is_valid_for(&self, config: &Arc<Config>, state: &State, view: &View, now: DateTime<Utc>) -> bool {
        let same_config = Arc::ptr_eq(config, &self.config);
        let same_settings = Arc::ptr_eq(&state.settings, &self.settings);
        same_config
            && same_settings
            && self.zones == view.zones
            && self.watermark == state.watermark
            && self.settled == state.missed.settled
            && (self.from..self.until).contains(&now)
    }
}

impl StartTimer {
    /// The run that is due at `now`, if any.
    pub fn due<'a>(&mut self, state: &'a State, view: &'a View, now: DateTime<Utc>) -> Option<Due<'a>> {
        let start = self.cached(state, view, now)?.start?;
        match start.attempt(state, view, now)? {
            Ok(startable) => Some(Due { occurrence: start.occurrence, startable }),
            Err(by) => {
                self.blocked = Some(BlockedStart { occurrence: start.occurrence, by });
                None
            }
        }
    }

    /// Whether runs were missed by `now` that are to be recorded, which requires a clock that hosts have had time to
    /// contradict.
    pub fn has_missed(&mut self, state: &State, view: &View, now: DateTime<Utc>) -> bool {
        view.may_judge_windows() && self.cached(state, view, now).is_some_and(|cached| cached.has_missed)
    }

    /// What last kept a run from starting, as [`Self::due`] saw it.
    pub fn blocked(&self) -> Option<&BlockedStart> {
        self.blocked.as_ref()
    }

    fn cached(&mut self, state: &State, view: &View, now: DateTime<Utc>) -> Option<&CachedStart> {
        let config = state.config.as_ref()?;
        let cached = self.cached.take().filter(|cached| cached.is_valid_for(config, state, view, now));
        Some(self.cached.insert(cached.unwrap_or_else(|| CachedStart::new(config, state, view, now))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use chrono_tz::Tz;
    use os_upgrade_calendar::{Offsets, Rules, ZoneSource};

    use super::*;
    use crate::clock::Clock;
    use crate::start::MissedRuns;

    fn at(time: &str) -> DateTime<Utc> {
        format!("2026-11-28T{time}:00Z").parse().unwrap()
    }

    /// Rules by which Vancouver is this many hours behind UTC.
    fn behind(hours: i32) -> View {
        let offsets = Offsets::new(-3_600 * hours, Vec::new()).unwrap();
        let offsets = HashMap::from([(Tz::America__Vancouver, offsets)]);
        let zones =
            Zones::new(Rules { source: ZoneSource::System, version: None, passed_over: None, offsets });
        View { zones, clock: Clock::TRUSTED, has_awaited_replies: true, ..View::default() }
    }

    /// The window opens at 08:30 or 09:30, by the rules. What passed before they were replaced is not missed by them.
    #[test]
    fn replaced_rules_count_from_then_on() {
        let config = r#"{"maintenance-windows": [
            {"cron": "0 30 1 * * *", "duration": "1h", "timezone": "America/Vancouver"}
        ]}"#;
        let state = State {
            config: Some(Arc::new(serde_json::from_str(config).unwrap())),
            missed: MissedRuns { settled: Watermark::up_to(at("09:00")), ..MissedRuns::default() },
            ..State::default()
        };
        let now = at("10:00");
        let replaced = View { zones_changed: Some(now), ..behind(7) };
        let mut timer = StartTimer::default();
        for (view, start, has_missed) in [
            (behind(8), "09:30", false),
            (behind(7), "08:30", true),
            (behind(8), "09:30", false),
            (replaced, "08:30", false),
        ] {
            assert_eq!(timer.has_missed(&state, &view, now), has_missed, "{start}");
            let next = timer.cached(&state, &view, now).unwrap().start.unwrap();
            let expected = if start == "09:30" { at(start) } else { at(start) + TimeDelta::days(1) };
            assert_eq!(next.occurrence.start, expected);
        }
    }
}
