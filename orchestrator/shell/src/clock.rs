//! The current time, as the caller passes it in, and whether its wall time can be relied on.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::clock::CLOCK_SKEW_SECS_MAX;
use os_upgrade_kernel::{Clock, ClockDoubt};
use os_upgrade_protocol::HostName;

/// The current time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time, for deadlines and records. It may jump forwards or backwards.
    pub wall: DateTime<Utc>,
    /// Time since a fixed moment, for leases, retries and timeouts. It never goes backwards.
    pub monotonic: Duration,
}

/// A clock that moves by more than this against the monotonic one has stepped.
const STEP_MIN: TimeDelta = TimeDelta::seconds(2);
/// How long a reading of the bus's clock counts.
const BUS_READING_TTL: Duration = Duration::from_secs(30);
/// How far the clock of a host that agrees may be from ours. Its heartbeat may have been under way for some seconds.
const HOST_SKEW_MAX: TimeDelta = TimeDelta::seconds(60);
/// For how long the reading of a host's clock counts before others.
const HOST_READING_FRESH: Duration = Duration::from_secs(30);
/// How long a reading counts while no host has a fresh one. A monotonic clock stands still in suspend, which makes the
/// readings from before wrong.
const HOST_READING_TTL: Duration = Duration::from_hours(1);
/// Without hosts that send their time, a stepped clock of the bus is believed once it has been steady for so long.
const SETTLED_AFTER: Duration = Duration::from_mins(1);
/// How often the verdict is reached anew while no clock steps.
const JUDGED_EVERY: Duration = Duration::from_secs(1);

/// Compares the wall clock with the clocks of the bus and of the hosts.
///
/// A reading of another clock is kept relative to our monotonic clock, so that the time that the other clock shows now is
/// known without asking again. A step of ours is therefore noticed in the same moment.
#[derive(Debug, Default)]
pub struct ClockWatch {
    bus: Option<Reading>,
    /// The monotonic time at which the bus's clock was last seen to have stepped.
    bus_stepped: Option<Duration>,
    hosts: HashMap<HostName, Reading>,
    /// Our clock, at the last call.
    own: Option<Reading>,
    steady_since: Option<DateTime<Utc>>,
    judged_at: Option<Duration>,
    enrolled: EnrolledCounts,
}

/// Which hosts take part, as far as that shows whether it has changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EnrolledCounts {
    /// How many are approved.
    pub approved: usize,
    /// How many are withdrawn.
    pub withdrawn: usize,
    /// Whether the others take part as well.
    pub auto_approve: bool,
}

/// What a clock showed.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The time that it showed at the monotonic time zero, at the earliest and at the latest: a reading takes time.
    epoch: (DateTime<Utc>, DateTime<Utc>),
    /// When it was read, on the monotonic clock.
    at: Duration,
}

impl Reading {
    /// A clock showed `time` between `asked` and `now`. Absent for times that no calendar has.
    fn new(time: DateTime<Utc>, asked: Duration, now: Now) -> Option<Self> {
        let epoch = |monotonic| time.checked_sub_signed(TimeDelta::from_std(monotonic).ok()?);
        Some(Self { epoch: (epoch(now.monotonic)?, epoch(asked)?), at: now.monotonic })
    }

    /// The time of `self` minus that of `other`; zero if they may be equal.
    fn ahead_of(self, other: Self) -> TimeDelta {
        let least = self.epoch.0 - other.epoch.1;
        let most = self.epoch.1 - other.epoch.0;
        if least > TimeDelta::zero() { least } else { most.min(TimeDelta::zero()) }
    }

    fn age(self, now: Now) -> Duration {
        now.monotonic.saturating_sub(self.at)
    }
}

impl ClockWatch {
    /// Looks at our own clock. Returns whether it has stepped since the last call.
    pub fn observe(&mut self, now: Now) -> bool {
        let own = Reading::new(now.wall, now.monotonic, now);
        let has_stepped =
            own.zip(self.own).is_some_and(|(own, before)| own.ahead_of(before).abs() > STEP_MIN);
        if has_stepped {
            self.steady_since = Some(now.wall);
            self.judged_at = None;
        }
        self.own = own;
        has_stepped
    }

    /// The bus's clock showed `time`, between the monotonic time `asked` and `now`.
    pub fn bus_read(&mut self, time: DateTime<Utc>, asked: Duration, now: Now) {
        let reading = Reading::new(time, asked, now);
        if self.bus.zip(reading).is_some_and(|(before, reading)| reading.ahead_of(before).abs() > STEP_MIN) {
            self.bus_stepped = Some(now.monotonic);
        }
        self.bus = reading;
        self.judged_at = None;
    }

    /// A host's clock showed `time` shortly before `now`.
    pub fn host_read(&mut self, host: &HostName, time: DateTime<Utc>, now: Now) {
        let reading = Reading::new(time, now.monotonic, now);
        // A witness against our clock is heard at once: a run may be about to start.
        if self.own.zip(reading).is_some_and(|(own, reading)| own.ahead_of(reading).abs() > HOST_SKEW_MAX) {
            self.judged_at = None;
        }
        self.hosts.extend(reading.map(|reading| (host.clone(), reading)));
    }

    /// Forgets the hosts that are not `known`.
    pub fn retain_hosts(&mut self, known: impl Fn(&HostName) -> bool) {
        self.hosts.retain(|host, _| known(host));
    }

    /// The verdict, if it is time for another one. Only hosts that `count` are witnesses: those that take part, as
    /// `enrolled`.
    pub fn judge(
        &mut self,
        now: Now,
        enrolled: EnrolledCounts,
        count: impl Fn(&HostName) -> bool,
    ) -> Option<Clock> {
        let same = std::mem::replace(&mut self.enrolled, enrolled) == enrolled;
        if same && self.judged_at.is_some_and(|at| now.monotonic.saturating_sub(at) < JUDGED_EVERY) {
            return None;
        }
        self.judged_at = Some(now.monotonic);
        Some(Clock { doubt: self.doubt(now, count), steady_since: self.steady_since })
    }

    fn doubt(&self, now: Now, count: impl Fn(&HostName) -> bool) -> Option<ClockDoubt> {
        let recent = self.bus.filter(|bus| bus.age(now) <= BUS_READING_TTL);
        let Some((own, bus)) = self.own.zip(recent) else { return Some(ClockDoubt::ClockUnmeasured) };
        let seconds = own.ahead_of(bus).num_seconds();
        if seconds.abs() > CLOCK_SKEW_SECS_MAX {
            return Some(ClockDoubt::ClockSkew { seconds });
        }
        let (mut fresh, mut old) = (Votes::default(), Votes::default());
        for (_, reading) in self.hosts.iter().filter(|(host, _)| count(host)) {
            match reading.age(now) {
                age if age <= HOST_READING_FRESH => fresh.add(own, *reading),
                age if age <= HOST_READING_TTL => old.add(own, *reading),
                _ => {}
            }
        }
        let is_settling = self.bus_stepped.is_some_and(|at| now.monotonic.saturating_sub(at) < SETTLED_AFTER);
        // The only fresh one may be of the machine whose clock has stepped.
        let Votes { hosts, differ } = if fresh.hosts > 0 && !is_settling { fresh } else { fresh.and(old) };
        if hosts > 0 {
            return (differ * 2 > hosts).then_some(ClockDoubt::ClockDisputed { differ, hosts });
        }
        is_settling.then_some(ClockDoubt::ClockStepped)
    }
}

/// How many hosts there are, and how many of them differ from our clock.
#[derive(Debug, Default, Clone, Copy)]
struct Votes {
    hosts: usize,
    differ: usize,
}

impl Votes {
    fn and(self, other: Self) -> Self {
        Self { hosts: self.hosts + other.hosts, differ: self.differ + other.differ }
    }

    fn add(&mut self, own: Reading, host: Reading) {
        self.hosts += 1;
        self.differ += usize::from(own.ahead_of(host).abs() > HOST_SKEW_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose clock can be set, with a bus that has a clock of its own.
    #[derive(Default)]
    struct Site {
        watch: ClockWatch,
        monotonic: u64,
        ours: i64,
        bus: i64,
    }

    const BEGINNING: DateTime<Utc> = DateTime::from_timestamp(1_800_000_000, 0).unwrap();

    impl Site {
        fn now(&self) -> Now {
            let monotonic = Duration::from_secs(self.monotonic);
            Now { wall: self.shown(self.ours), monotonic }
        }

        /// What a clock shows that is wrong by so many seconds.
        fn shown(&self, wrong: i64) -> DateTime<Utc> {
            BEGINNING + Duration::from_secs(self.monotonic) + TimeDelta::seconds(wrong)
        }

        /// Some seconds pass; then the bus is read, which takes no time.
        fn pass(&mut self, secs: u64) -> &mut Self {
            self.monotonic += secs;
            let (time, now) = (self.shown(self.bus), self.now());
            self.watch.observe(now);
            self.watch.bus_read(time, now.monotonic, now);
            self
        }

        fn beat(&mut self, host: &str, wrong: i64) -> &mut Self {
            let (time, now) = (self.shown(wrong), self.now());
            self.watch.host_read(&HostName::new(host).unwrap(), time, now);
            self
        }

        fn clock(&mut self) -> Clock {
            let now = self.now();
            self.watch.observe(now);
            self.watch.judged_at = None;
            self.watch.judge(now, EnrolledCounts::default(), |host| host.as_str() != "stranger").unwrap()
        }

        fn doubt(&mut self) -> Option<&'static str> {
            self.clock().doubt.as_ref().map(ClockDoubt::kind)
        }
    }

    #[test]
    fn bus_is_the_first_witness() {
        let mut site = Site::default();
        assert_eq!(site.doubt(), Some("clock-unmeasured"));
        assert_eq!(site.pass(1).doubt(), None);
        for (ours, doubt) in [(30, None), (31, Some("clock-skew")), (-30, None), (-31, Some("clock-skew"))] {
            site.ours = ours;
            assert_eq!(site.doubt(), doubt, "{ours}");
        }
        site.ours = 0;
        assert_eq!(site.doubt(), None);
        site.monotonic += 30;
        assert_eq!(site.doubt(), None);
        site.monotonic += 1;
        assert_eq!(site.doubt(), Some("clock-unmeasured"));
    }

    /// A server that answers after seconds showed its time at some moment in between.
    #[test]
    fn slow_reading_is_no_skew() {
        let mut site = Site { monotonic: 100, ..Site::default() };
        let (time, now) = (site.shown(-40), site.now());
        site.watch.bus_read(time, Duration::from_mins(1), now);
        assert_eq!(site.doubt(), None);
        site.watch.bus_read(time, Duration::from_secs(100), now);
        assert_eq!(site.doubt(), Some("clock-skew"));
    }

    #[test]
    fn step_with_the_bus_has_to_settle() {
        let mut site = Site::default();
        site.pass(1);
        (site.ours, site.bus) = (3_600, 3_600);
        assert_eq!(site.doubt(), Some("clock-skew"));
        assert_eq!(site.pass(2).doubt(), Some("clock-stepped"));
        assert_eq!(site.pass(29).pass(30).doubt(), Some("clock-stepped"));
        assert_eq!(site.pass(1).doubt(), None);
        // A glitch has to settle too.
        site.bus = 3_603;
        site.pass(1).bus = 3_600;
        assert_eq!(site.pass(1).doubt(), Some("clock-stepped"));
    }

    #[test]
    fn hosts_tell_which_time_is_right() {
        let mut site = Site::default();
        site.beat("a", 0).beat("b", 0).beat("stranger", 9_000).pass(1);
        assert_eq!(site.doubt(), None);
        (site.ours, site.bus) = (3_600, 3_600);
        assert_eq!(site.pass(2).doubt(), Some("clock-disputed"));
        // Half of them suffices.
        assert_eq!(site.beat("b", 3_600).doubt(), None);
        assert_eq!(site.beat("c", 0).doubt(), Some("clock-disputed"));
        // Hosts that have fallen silent are still believed, until another one speaks.
        for _ in 0..170 {
            site.pass(20);
        }
        assert_eq!(site.doubt(), Some("clock-disputed"));
        assert_eq!(site.beat("b", 3_600).doubt(), None);
        // While the clock settles, the one that speaks is not believed alone: it may have stepped too.
        (site.ours, site.bus) = (7_200, 7_200);
        assert_eq!(site.pass(1).beat("b", 7_200).doubt(), Some("clock-disputed"));
        // A corrected clock agrees at once.
        (site.ours, site.bus) = (0, 0);
        site.beat("a", 0);
        assert_eq!(site.pass(1).doubt(), None);
        site.watch.retain_hosts(|_| false);
        assert_eq!(site.doubt(), Some("clock-stepped"));
    }

    #[test]
    fn steps_begin_durations_anew() {
        let mut site = Site::default();
        assert_eq!(site.pass(1).clock().steady_since, None);
        for (ours, has_stepped) in [(2, false), (5, true), (4, false), (-60, true)] {
            site.ours = ours;
            let (now, before) = (site.now(), site.watch.steady_since);
            assert_eq!(site.watch.observe(now), has_stepped, "{ours}");
            assert_eq!(site.clock().steady_since, if has_stepped { Some(now.wall) } else { before });
        }
        // Nothing is judged twice within a second, unless a clock steps.
        let judged =
            |site: &mut Site| site.watch.judge(site.now(), EnrolledCounts::default(), |_| true).is_some();
        assert!(!judged(site.beat("a", -59)) && judged(site.beat("a", 3_600)));
        site.ours = 90;
        site.watch.observe(site.now());
        assert!(judged(&mut site) && !judged(&mut site));
    }

    #[test]
    fn absurd_times_do_no_harm() {
        let mut site = Site::default();
        site.pass(1);
        for time in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            let now = site.now();
            site.watch.host_read(&HostName::new("a").unwrap(), time, now);
            site.watch.bus_read(time, Duration::ZERO, now);
            assert_ne!(site.doubt(), None, "{time}");
        }
    }
}
