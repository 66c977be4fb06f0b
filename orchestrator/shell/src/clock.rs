//! The current time, as the caller passes it in, and whether its wall time can be relied on.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use os_upgrade_kernel::clock::CLOCK_SKEW_SECS_MAX;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::{Clock, ClockDoubt, Fact, Record, Trigger};
use os_upgrade_protocol::HostName;

pub use os_upgrade_provider_rules::Now;

/// Whether an operator has started a run in `record`, and so relies on the clock.
pub(crate) fn vouches_for_clock(record: &Record) -> bool {
    let starts =
        |fact: &Fact| matches!(fact, Fact::Run(RunFact::Started { trigger: Trigger::Operator { .. }, .. }));
    record.facts.iter().any(starts)
}

/// A clock that moves by more than this against the monotonic one has stepped.
const STEP_MIN: TimeDelta = TimeDelta::seconds(2);
/// How far the clock may be behind the newest record, which another instance may have made.
const BEHIND_MAX: TimeDelta = TimeDelta::seconds(CLOCK_SKEW_SECS_MAX);
/// How long a reading of the bus's clock counts.
const BUS_READING_TTL: Duration = Duration::from_secs(30);
/// How far the clock of a host that agrees may be from ours. Its heartbeat may have been under way for some seconds.
const HOST_SKEW_MAX: TimeDelta = TimeDelta::seconds(60);
/// For how long the reading of a host's clock counts before others.
const HOST_READING_FRESH: Duration = Duration::from_secs(30);
/// How long a reading counts while no host has a fresh one. A monotonic clock stands still in suspend, which makes the
/// readings from before wrong.
const HOST_READING_TTL: Duration = Duration::from_hours(1);
/// How many hosts that are no longer known remain witnesses.
const WITNESSES_LEFT_MAX: usize = 10_000;
/// How long a dispute lasts at least, unless a clock is set: a host that sends one time and then another must not change
/// the verdict, of which a run keeps a record, each time.
const DISPUTE_MIN: Duration = HOST_READING_FRESH;
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
    /// The time of the newest record.
    newest: Option<DateTime<Utc>>,
    bus: Option<Reading>,
    /// The monotonic time at which the bus's clock was last seen to have stepped.
    bus_stepped: Option<Duration>,
    hosts: HashMap<HostName, HostReading>,
    /// The last dispute, and when it was found, on the monotonic clock.
    dispute: Option<(ClockDoubt, Duration)>,
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

/// What a host's clock showed.
#[derive(Debug, Clone, Copy)]
struct HostReading {
    reading: Reading,
    /// Whether the host took part in runs then or later. It remains a witness when it no longer does: a doubt ends when
    /// another witness agrees or the reading is too old, and not because a witness leaves.
    counts: bool,
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
    /// Before anything is read; `newest` is the time of the newest record in the store.
    pub fn new(newest: Option<DateTime<Utc>>) -> Self {
        Self { newest, ..Self::default() }
    }

    /// A record was made at `at`, by the clock of its leader, and stored at `stored_at`, by that of the bus. The earlier of the
    /// two counts: when they differed, one of the clocks was wrong. With `is_vouched_for`, nothing that was recorded before
    /// counts any more.
    pub fn recorded(&mut self, at: DateTime<Utc>, stored_at: DateTime<Utc>, is_vouched_for: bool) {
        let at = at.min(stored_at);
        self.newest = self.newest.filter(|newest| !is_vouched_for && *newest > at).or(Some(at));
        if is_vouched_for {
            self.judged_at = None;
        }
    }

    /// The bus's clock now, as far as it was read.
    pub fn bus_time(&self, now: Now) -> Option<DateTime<Utc>> {
        self.bus.and_then(|bus| bus.epoch.1.checked_add_signed(TimeDelta::from_std(now.monotonic).ok()?))
    }

    /// Looks at our own clock. Returns whether it has stepped since the last call.
    pub fn observe(&mut self, now: Now) -> bool {
        let own = Reading::new(now.wall, now.monotonic, now);
        let has_stepped =
            own.zip(self.own).is_some_and(|(own, before)| own.ahead_of(before).abs() > STEP_MIN);
        if has_stepped {
            self.steady_since = Some(now.wall);
            self.stepped();
        }
        self.own = own;
        has_stepped
    }

    /// The bus's clock showed `time`, between the monotonic time `asked` and `now`.
    pub fn bus_read(&mut self, time: DateTime<Utc>, asked: Duration, now: Now) {
        let reading = Reading::new(time, asked, now);
        if self.bus.zip(reading).is_some_and(|(before, reading)| reading.ahead_of(before).abs() > STEP_MIN) {
            self.bus_stepped = Some(now.monotonic);
            self.stepped();
        }
        self.bus = reading;
        self.judged_at = None;
    }

    /// What clocks were compared before says nothing any more.
    fn stepped(&mut self) {
        self.judged_at = None;
        self.dispute = None;
    }

    /// A host's clock showed `time` shortly before `now`. `takes_part`: it takes part in runs.
    pub fn host_read(&mut self, host: &HostName, time: DateTime<Utc>, takes_part: bool, now: Now) {
        let Some(reading) = Reading::new(time, now.monotonic, now) else { return };
        // A witness against our clock is heard at once: a run may be about to start.
        if takes_part && self.own.is_some_and(|own| own.ahead_of(reading).abs() > HOST_SKEW_MAX) {
            self.judged_at = None;
        }
        // What it says after it has left does not replace what it said before.
        if takes_part || self.hosts.get(host).is_none_or(|known| !known.counts) {
            self.hosts.insert(host.clone(), HostReading { reading, counts: takes_part });
        }
    }

    /// Forgets the hosts that are neither `known` nor witnesses, and the oldest witnesses that are too many.
    pub fn retain_hosts(&mut self, now: Now, known: impl Fn(&HostName) -> bool) {
        let is_witness = |host: &HostReading| host.counts && host.reading.age(now) <= HOST_READING_TTL;
        let mut left = Vec::new();
        self.hosts.retain(|host, reading| {
            let (is_known, is_witness) = (known(host), is_witness(reading));
            if is_witness && !is_known {
                left.push((reading.reading.at, host.clone()));
            }
            is_known || is_witness
        });
        left.sort_unstable();
        for (_, host) in left.iter().take(left.len().saturating_sub(WITNESSES_LEFT_MAX)) {
            self.hosts.remove(host);
        }
    }

    /// The verdict, if it is time for another one. Only hosts that `count` become witnesses: those that take part, as
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
        for (host, reading) in &mut self.hosts {
            reading.counts |= count(host);
        }
        Some(Clock { doubt: self.doubt(now), steady_since: self.steady_since })
    }

    fn doubt(&mut self, now: Now) -> Option<ClockDoubt> {
        let recent = self.bus.filter(|bus| bus.age(now) <= BUS_READING_TTL);
        let Some((own, bus)) = self.own.zip(recent) else { return Some(ClockDoubt::ClockUnmeasured) };
        let seconds = own.ahead_of(bus).num_seconds();
        if seconds.abs() > CLOCK_SKEW_SECS_MAX {
            return Some(ClockDoubt::ClockSkew { seconds });
        }
        let is_settling = self.bus_stepped.is_some_and(|at| now.monotonic.saturating_sub(at) < SETTLED_AFTER);
        let Votes { hosts, differ } = self.votes(own, is_settling, now);
        if differ * 2 > hosts {
            self.dispute = Some((ClockDoubt::ClockDisputed { differ, hosts }, now.monotonic));
        }
        match &self.dispute {
            Some((dispute, at)) if now.monotonic.saturating_sub(*at) < DISPUTE_MIN => Some(dispute.clone()),
            _ if hosts == 0 && is_settling => Some(ClockDoubt::ClockStepped),
            // Last, as it is the weakest: deadlines hold all the same.
            _ => {
                let newest = self.newest.filter(|newest| *newest - now.wall > BEHIND_MAX)?;
                Some(ClockDoubt::ClockBehind { newest: newest.trunc_subsecs(0) })
            }
        }
    }

    /// Of the hosts with fresh readings, or else of all, how many differ from our clock.
    fn votes(&self, own: Reading, is_settling: bool, now: Now) -> Votes {
        let (mut fresh, mut old) = (Votes::default(), Votes::default());
        for HostReading { reading, .. } in self.hosts.values().filter(|host| host.counts) {
            match reading.age(now) {
                age if age <= HOST_READING_FRESH => fresh.add(own, *reading),
                age if age <= HOST_READING_TTL => old.add(own, *reading),
                _ => {}
            }
        }
        // The only fresh one may be of the machine whose clock has stepped.
        if fresh.hosts > 0 && !is_settling { fresh } else { fresh.and(old) }
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
        withdrawn: Option<&'static str>,
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
            let takes_part = self.takes_part()(host);
            self.watch.host_read(&HostName::new(host).unwrap(), time, takes_part, now);
            self
        }

        fn takes_part(&self) -> impl Fn(&str) -> bool + use<> {
            let withdrawn = self.withdrawn;
            move |host| host != "stranger" && withdrawn != Some(host)
        }

        fn clock(&mut self) -> Clock {
            let (now, takes_part) = (self.now(), self.takes_part());
            self.watch.observe(now);
            self.watch.judged_at = None;
            self.watch.retain_hosts(now, |host| takes_part(host.as_str()));
            self.watch.judge(now, EnrolledCounts::default(), |host| takes_part(host.as_str())).unwrap()
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
        // Half of them suffices, after a while.
        site.pass(29).beat("a", 0).beat("b", 3_600);
        assert_eq!(site.doubt(), Some("clock-disputed"));
        assert_eq!(site.pass(1).doubt(), None);
        assert_eq!(site.beat("c", 0).doubt(), Some("clock-disputed"));
        // Hosts that have fallen silent are still believed, until another one speaks.
        for _ in 0..170 {
            site.pass(20);
        }
        assert_eq!(site.doubt(), Some("clock-disputed"));
        assert_eq!(site.pass(30).beat("b", 3_600).doubt(), None);
        // While the clock settles, the one that speaks is not believed alone: it may have stepped too.
        (site.ours, site.bus) = (7_200, 7_200);
        assert_eq!(site.pass(1).beat("b", 7_200).doubt(), Some("clock-disputed"));
        // A corrected clock agrees at once.
        (site.ours, site.bus) = (0, 0);
        site.beat("a", 0);
        assert_eq!(site.pass(1).doubt(), None);
    }

    /// The machine lost its time with its power, and the clock of the bus, which runs there too.
    #[test]
    fn clock_is_not_behind_the_newest_record() {
        // A process that starts, with a record of a second ago in its store.
        let booted = |wrong| {
            let watch = ClockWatch::new(Some(BEGINNING));
            let mut site = Site { watch, ours: wrong, bus: wrong, ..Site::default() };
            site.pass(1);
            site
        };
        for (wrong, doubt) in [(0, None), (-31, None), (-32, Some("clock-behind"))] {
            assert_eq!(booted(wrong).doubt(), doubt, "{wrong}");
        }
        let mut site = booted(-600);
        let doubt = site.clock().doubt;
        assert_eq!(doubt, Some(ClockDoubt::ClockBehind { newest: BEGINNING }));
        // Hosts without a clock of their own have lost the time as well. One that has it says more: nothing can be relied on.
        assert_eq!(site.beat("a", -600).doubt(), Some("clock-behind"));
        assert_eq!(booted(-600).beat("a", 0).doubt(), Some("clock-disputed"));
        // Nothing that is recorded by the wrong clock makes it right; time does.
        let record = |site: &mut Site, by_leader: i64, by_bus: i64, is_vouched_for| {
            let (at, stored_at) = (site.shown(by_leader), site.shown(by_bus));
            site.watch.recorded(at, stored_at, is_vouched_for);
        };
        record(&mut site, -600, -600, false);
        assert_eq!(site.doubt(), Some("clock-behind"));
        for _ in 0..20 {
            site.pass(30).beat("a", -600);
        }
        assert_eq!(site.doubt(), None);
        // A record of the future by one of two clocks counts for nothing, by both it does.
        record(&mut site, 9_000, -600, false);
        record(&mut site, -600, 9_000, false);
        assert_eq!(site.doubt(), None);
        record(&mut site, 9_000, 9_000, false);
        assert_eq!(site.doubt(), Some("clock-behind"));
        // An operator who starts a run says that the clock is right.
        record(&mut site, -600, -600, true);
        assert_eq!(site.doubt(), None);
    }

    /// Each change of the verdict may be a record of the journal.
    #[test]
    fn host_of_two_times_changes_the_verdict_seldom() {
        for period in 2..60 {
            let mut site = Site::default();
            let mut verdicts = Vec::new();
            for secs in 0..600 {
                site.pass(1).beat("a", if secs % period == 0 { 3_600 } else { 0 });
                verdicts.push(site.doubt());
            }
            verdicts.dedup();
            assert!(verdicts.contains(&Some("clock-disputed")));
            assert!(verdicts.len() <= 1 + 2 * 600 / 30, "{period}: {}", verdicts.len());
        }
    }

    #[test]
    fn witness_that_leaves_ends_no_doubt() {
        let mut site = Site::default();
        site.pass(1).beat("a", 0);
        assert_eq!(site.doubt(), None);
        (site.ours, site.bus) = (3_600, 3_600);
        site.pass(1).withdrawn = Some("a");
        assert_eq!(site.doubt(), Some("clock-disputed"));
        for _ in 0..100 {
            site.pass(30);
        }
        assert_eq!(site.beat("a", 3_600).doubt(), Some("clock-disputed"), "it has no say any more");
        // Another one agrees.
        assert_eq!(site.pass(30).beat("b", 3_600).doubt(), None);
        // Both leave, and the later reading becomes too old.
        assert_eq!(site.beat("b", 0).doubt(), Some("clock-disputed"));
        site.withdrawn = Some("b");
        for (passed, doubt) in [(3_600, Some("clock-disputed")), (30, None)] {
            assert_eq!(site.pass(passed).doubt(), doubt);
        }
    }

    #[test]
    fn witnesses_that_have_left_are_bounded() {
        let mut site = Site::default();
        site.pass(1).beat("known", 0);
        for number in 0..WITNESSES_LEFT_MAX + 5 {
            site.beat(&format!("h{number}"), 0);
        }
        site.pass(1).beat("last", 0);
        site.watch.retain_hosts(site.now(), |host| host.as_str() == "known");
        assert_eq!(site.watch.hosts.len(), 1 + WITNESSES_LEFT_MAX);
        assert!(
            ["known", "last"].iter().all(|host| site.watch.hosts.contains_key(&HostName::new(host).unwrap()))
        );
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
            site.watch.host_read(&HostName::new("a").unwrap(), time, true, now);
            site.watch.bus_read(time, Duration::ZERO, now);
            assert_ne!(site.doubt(), None, "{time}");
        }
    }
}
