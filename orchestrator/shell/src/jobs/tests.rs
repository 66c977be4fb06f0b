//! Tables of pauses, and the rate limit against a server that accepts one request a second in bursts of three.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{LockOutcome, NoAnswer, NodeFence, NodeJob, NodeOrder, Owner, SlotJob, SlotOrder};
use os_upgrade_protocol::{HostName, RunId};

use super::*;

const RETRY: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(1_100);
const TICK: u64 = 100;

fn at(millis: u64) -> Now {
    Now { wall: DateTime::<Utc>::UNIX_EPOCH, monotonic: Duration::from_millis(millis) }
}

fn host(number: usize) -> HostName {
    HostName::new(&format!("h{number:03}")).unwrap()
}

fn job(number: usize, unlock: bool) -> Job {
    let order = if unlock { SlotOrder::Unlock } else { SlotOrder::Lock };
    Job::LockServer(SlotJob {
        order,
        host: host(number),
        group: GroupName::new(&format!("g{number}")).unwrap(),
    })
}

fn jobs(retry: Duration, interval: Duration, nonce: &str) -> Jobs {
    jobs_with(SystemLimits::at_intervals(retry, interval), nonce)
}

fn jobs_with(limits: SystemLimits, nonce: &str) -> Jobs {
    Jobs::new([(System::LockServer, limits)], nonce)
}

/// The job ends with `outcome`, which is committed at once; returns whether that counts.
fn done(
    jobs: &mut Jobs,
    now: Now,
    StartedJob { id, job }: StartedJob,
    outcome: &LockOutcome,
    retry_after: Option<RetryAfter>,
) -> bool {
    let counts = jobs.done(now, id, &report(&job, outcome, retry_after));
    jobs.committed(&job);
    counts
}

fn report(job: &Job, outcome: &LockOutcome, retry_after: Option<RetryAfter>) -> JobReport {
    let done = JobDone::LockServer(SlotJob::of(job).unwrap().clone(), outcome.clone());
    JobReport { done, retry_after }
}

fn unreachable() -> LockOutcome {
    LockOutcome::Unreachable { why: NoAnswer::Failed { detail: "refused".to_owned() } }
}

fn protocol() -> LockOutcome {
    LockOutcome::Protocol { detail: "status 500".to_owned() }
}

fn denied() -> LockOutcome {
    LockOutcome::Denied { lock_kind: "full".to_owned(), value: "full".to_owned() }
}

/// Advances to the first time from `from` at which jobs begin; returns it and the jobs.
fn next(jobs: &mut Jobs, from: u64, wanted: &[Job]) -> (u64, Vec<StartedJob>) {
    (from..from + 2_000_000)
        .find_map(|millis| {
            let begun = jobs.begin(wanted.to_vec(), at(millis));
            (!begun.is_empty()).then_some((millis, begun))
        })
        .unwrap()
}

fn names(begun: &[StartedJob]) -> String {
    begun.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn name(StartedJob { job, .. }: &StartedJob) -> String {
    let Subject::Host(host) = job.subject();
    format!("{}-{host}", if job.is_release() { "unlock" } else { "lock" })
}

/// The pauses between attempts for one host with these answers, in milliseconds.
fn pauses(
    retry: Duration,
    nonce: &str,
    unlock: bool,
    answers: &[(LockOutcome, Option<RetryAfter>)],
) -> Vec<u64> {
    pauses_of(jobs(retry, Duration::ZERO, nonce), unlock, answers)
}

fn pauses_of(mut jobs: Jobs, unlock: bool, answers: &[(LockOutcome, Option<RetryAfter>)]) -> Vec<u64> {
    let wanted = [job(1, unlock)];
    let (mut now, mut begun) = next(&mut jobs, 0, &wanted);
    let pause = |(outcome, retry_after): &(LockOutcome, Option<RetryAfter>)| {
        assert!(done(&mut jobs, at(now), begun.remove(0), outcome, *retry_after));
        let last = now;
        (now, begun) = next(&mut jobs, now, &wanted);
        now - last
    };
    answers.iter().map(pause).collect()
}

#[test]
fn pauses_follow_answers_within_bounds() {
    let seconds = Duration::from_secs;
    let plain = |outcomes: &[LockOutcome]| outcomes.iter().map(|it| (it.clone(), None)).collect::<Vec<_>>();
    let with_retry_after = |outcome: LockOutcome, retry_after| vec![(outcome, Some(retry_after))];
    let (no, away, odd, yes) = (denied(), unreachable(), protocol(), LockOutcome::Granted);
    let [n, a, o] = [&no, &away, &odd].map(Clone::clone);
    for (name, retry, unlock, answers, expected) in [
        ("denied", RETRY, false, plain(&[n.clone(), n.clone(), n.clone()]), vec![10, 10, 10]),
        (
            "away",
            RETRY,
            false,
            plain(&[a.clone(), a.clone(), o.clone(), a.clone(), o.clone(), a.clone()]),
            vec![1, 2, 4, 8, 10, 10],
        ),
        (
            "an answer in between",
            RETRY,
            false,
            plain(&[a.clone(), a.clone(), n.clone(), o.clone()]),
            vec![1, 2, 10, 1],
        ),
        (
            "a long interval",
            seconds(1_800),
            false,
            plain(&vec![a.clone(); 8]),
            vec![1, 2, 4, 8, 16, 32, 60, 60],
        ),
        (
            "unlocks",
            RETRY,
            true,
            plain(&[n.clone(), a.clone(), o.clone(), n.clone(), yes.clone()]),
            vec![1, 2, 4, 8, 10],
        ),
        (
            "less than our own",
            RETRY,
            false,
            with_retry_after(n.clone(), RetryAfter::Slot(seconds(3))),
            vec![10],
        ),
        ("more than our own", RETRY, false, with_retry_after(n, RetryAfter::Slot(seconds(30))), vec![30]),
        (
            "with a failure",
            RETRY,
            false,
            with_retry_after(o.clone(), RetryAfter::Server(seconds(30))),
            vec![30],
        ),
        (
            "a lock for long",
            RETRY,
            false,
            with_retry_after(o.clone(), RetryAfter::Server(seconds(600))),
            vec![600],
        ),
        (
            "an unlock for long",
            RETRY,
            true,
            with_retry_after(o.clone(), RetryAfter::Server(seconds(600))),
            vec![60],
        ),
        ("also only this one", RETRY, true, with_retry_after(o, RetryAfter::Slot(seconds(600))), vec![60]),
    ] {
        for nonce in ["a", "b", "c"] {
            let found = pauses(retry, nonce, unlock, &answers);
            assert_eq!(found.len(), expected.len());
            for (pause, expected) in found.iter().zip(&expected) {
                let range = expected * 1_000..=expected * 1_250;
                assert!(range.contains(pause), "{name}: {found:?} instead of {expected:?}");
            }
        }
    }
}

#[test]
fn pauses_double_while_the_answer_stays_the_same() {
    let [retry_first, retry] = [1, 5].map(Duration::from_secs);
    let limits = SystemLimits { retry, retry_first, interval: Duration::ZERO, at_once: AT_ONCE };
    let other = LockOutcome::Denied { lock_kind: "other".to_owned(), value: "other".to_owned() };
    let (answers, expected): (Vec<_>, Vec<u64>) = [
        (denied(), 1),
        (denied(), 2),
        (denied(), 4),
        (denied(), 5),
        (other, 1),
        (denied(), 1),
        // A failure says nothing of what is waited for.
        (unreachable(), 1),
        (denied(), 2),
    ]
    .map(|(outcome, seconds)| ((outcome, None), seconds))
    .into_iter()
    .unzip();
    let found = pauses_of(jobs_with(limits, "a"), false, &answers);
    for (pause, expected) in found.iter().zip(&expected) {
        assert!((expected * 1_000..=expected * 1_250).contains(pause), "{found:?} instead of {expected}");
    }
}

#[test]
fn jitter_varies_and_is_reproducible() {
    let answers = vec![(denied(), None); 4];
    let of = |nonce| pauses(RETRY, nonce, false, &answers);
    assert_eq!(of("a"), of("a"));
    let mut all: Vec<u64> = ["a", "b", "c"].into_iter().flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 9, "{all:?}");
}

#[test]
fn retry_after_applies_to_slot_or_server() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "a");
    let both = [job(1, false), job(2, false)];
    let (asked, mut begun) = next(&mut jobs, 0, &both);
    assert_eq!((asked, names(&begun).as_str()), (0, "lock-h001 lock-h002"));
    let pause = Duration::from_mins(5);
    assert!(done(&mut jobs, at(0), begun.remove(0), &denied(), Some(RetryAfter::Slot(pause))));
    assert!(done(&mut jobs, at(0), begun.remove(0), &denied(), None));
    let (asked, mut begun) = next(&mut jobs, 0, &both);
    assert!(names(&begun) == "lock-h002" && asked <= 12_500, "{asked} {begun:?}");
    let server = Some(RetryAfter::Server(pause));
    assert!(done(&mut jobs, at(asked), begun.remove(0), &protocol(), server));
    // The other hosts' locks wait too, but a release is delayed for a minute only.
    let others = [job(2, false), job(3, false), job(4, true)];
    let (unlocked, begun) = next(&mut jobs, asked, &others);
    assert_eq!(names(&begun), "unlock-h004");
    assert!((60_000..=75_000).contains(&(unlocked - asked)), "{asked} {unlocked}");
    let (locked, begun) = next(&mut jobs, unlocked, &others[..2]);
    assert_eq!(names(&begun), "lock-h003 lock-h002");
    assert!((300_000..=375_000).contains(&(locked - asked)), "{asked} {locked}");
}

#[test]
fn pauses_of_lock_and_unlock_are_separate() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "a");
    for (unlock, name) in [(false, "lock-h001"), (true, "unlock-h001"), (false, "lock-h001")] {
        let (asked, mut begun) = next(&mut jobs, 0, &[job(1, unlock)]);
        assert_eq!((asked, names(&begun).as_str()), (0, name));
        assert!(done(&mut jobs, at(0), begun.remove(0), &denied(), None));
    }
}

/// Work on a node goes on with another job as soon as one is done. Each has the same host and takes, or each releases.
#[test]
fn pause_does_not_delay_another_job_of_the_host() {
    for unlock in [false, true] {
        let mut jobs = jobs(RETRY, Duration::ZERO, "a");
        let first = job(1, unlock);
        let group = GroupName::new("another").unwrap();
        let second = Job::LockServer(SlotJob { group, ..SlotJob::of(&first).unwrap().clone() });
        let ask = |jobs: &mut Jobs, millis, job: &Job| jobs.begin(vec![job.clone()], at(millis));
        let mut begun = ask(&mut jobs, 0, &first);
        let slot = Some(RetryAfter::Slot(Duration::from_mins(1)));
        assert!(done(&mut jobs, at(0), begun.remove(0), &unreachable(), slot));
        assert_eq!(ask(&mut jobs, 10_000, &first), []);

        let mut begun = ask(&mut jobs, 10_000, &second);
        assert_eq!(ask(&mut jobs, 10_000, &first), [], "one at a time");
        // Its failure is the first of its own.
        assert!(done(&mut jobs, at(10_000), begun.remove(0), &unreachable(), None));
        assert_eq!(ask(&mut jobs, 10_999, &second), []);
        assert_eq!(ask(&mut jobs, 11_250, &second).len(), 1);
    }
}

#[test]
fn job_that_is_not_begun_ends_no_pause() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "a");
    let wanted = [job(1, false)];
    let (_, mut begun) = next(&mut jobs, 0, &wanted);
    assert!(done(
        &mut jobs,
        at(0),
        begun.remove(0),
        &protocol(),
        Some(RetryAfter::Server(Duration::from_mins(5)))
    ));
    // The server does not want to be asked by anybody.
    assert_eq!(jobs.begin(vec![job(1, true)], at(50_000)), []);
    let (asked, begun) = next(&mut jobs, 50_000, &wanted);
    assert!((300_000..=375_000).contains(&asked), "{asked}");
    assert_eq!(names(&begun), "lock-h001");
}

#[test]
fn untried_release_precedes_locks() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "a");
    let unlock = job(1, true);
    let lock = SlotJob { order: SlotOrder::Lock, host: host(2), ..SlotJob::of(&unlock).unwrap().clone() };
    let wanted = [Job::LockServer(lock), unlock, job(3, false)];
    let (_, mut begun) = next(&mut jobs, 0, &wanted);
    assert_eq!(names(&begun), "unlock-h001 lock-h003");
    assert_eq!(jobs.begin(wanted.to_vec(), at(0)), []);
    assert!(done(&mut jobs, at(0), begun.remove(0), &protocol(), None));
    assert_eq!(names(&jobs.begin(wanted.to_vec(), at(0))), "lock-h002");
}

#[test]
fn job_of_an_earlier_leadership_is_begun_again() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "a");
    let wanted = [job(1, false)];
    let (_, mut begun) = next(&mut jobs, 0, &wanted);
    jobs.leadership_begins(at(5));
    assert!(jobs.is_under_way());
    let first = begun.remove(0);
    assert!(!done(&mut jobs, at(9), first.clone(), &denied(), None));
    let (again, mut begun) = next(&mut jobs, 9, &wanted);
    assert_eq!(again, 9);
    assert!(!done(&mut jobs, at(9), first, &denied(), None), "it has ended before");
    assert!(done(&mut jobs, at(9), begun.remove(0), &denied(), None));
}

#[test]
fn failing_releases_hold_up_no_locks() {
    let mut jobs = jobs(RETRY, INTERVAL, "a");
    let locks: Vec<_> = (1..40).map(|number| job(number, false)).collect();
    let mut asked = Vec::new();
    let mut now = 0;
    let mut ask = |jobs: &mut Jobs, wanted: &[Job], count: usize| {
        asked.clear();
        for _ in 0..count {
            let (when, begun) = next(jobs, now, wanted);
            now = when;
            for started in begun {
                asked.push(name(&started));
                assert!(done(jobs, at(now), started, &denied(), None));
            }
        }
        asked.clone()
    };
    // More jobs than fit into a retry interval: each has its turn.
    let mut first = ask(&mut jobs, &locks, 39);
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 39);
    let mut wanted = locks.clone();
    wanted.extend((50..70).map(|number| job(number, true)));
    let next_ones = ask(&mut jobs, &wanted, 20);
    assert!(next_ones.iter().all(|name| name.starts_with("unlock")), "{next_ones:?}");
    let later = ask(&mut jobs, &wanted, 118);
    let count = |name: &str| later.iter().filter(|asked| *asked == name).count();
    for number in 1..40 {
        assert!(count(&format!("lock-h{number:03}")) >= 1, "{number}: {later:?}");
    }
    for number in 50..70 {
        assert!(count(&format!("unlock-h{number:03}")) >= 1, "{number}: {later:?}");
    }
}

/// How many requests with these arrival times a server refuses that accepts one a second in bursts of three.
fn refused(mut arrivals: Vec<u64>) -> usize {
    arrivals.sort_unstable();
    let (mut tokens, mut last) = (3_000, 0);
    let refused = |arrival: &u64| {
        tokens = 3_000.min(tokens + arrival - last);
        last = *arrival;
        let taken = tokens >= 1_000;
        tokens -= if taken { 1_000 } else { 0 };
        !taken
    };
    arrivals.iter().copied().filter(refused).count()
}

/// Pseudo-random numbers.
fn chance(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn rate_limited_server_refuses_nothing() {
    let mut sent_in_all = 0;
    for seed in 0..10 {
        let mut chance = chance(seed);
        let mut calls = jobs(Duration::from_secs(1), INTERVAL, "p0");
        let mut started = 0;
        let mut arrivals = Vec::new();
        for millis in (0..600_000).step_by(usize::try_from(TICK).unwrap()) {
            // Now and then another process leads, whose clock starts at zero.
            if chance(300) == 0 {
                started = millis;
                calls = jobs(Duration::from_secs(1), INTERVAL, &format!("p{millis}"));
                calls.leadership_begins(at(0));
            }
            // At times there is nothing to ask.
            let busy = (millis / 20_000) % 3 != 1;
            let wanted = (0..30).map(|number| job(number, number % 3 == 0)).filter(|_| busy).collect();
            let now = at(millis - started);
            for started in calls.begin(wanted, now) {
                // Up to a second late, which the limit leaves room for.
                arrivals.push(millis + chance(1_000));
                let outcome = if chance(2) == 0 { denied() } else { unreachable() };
                assert!(done(&mut calls, now, started, &outcome, None));
            }
        }
        sent_in_all += arrivals.len();
        assert_eq!(refused(arrivals), 0, "{seed}");
    }
    assert!(sent_in_all > 10 * 250, "{sent_in_all}");
}

/// A job in the group `g`.
fn in_one_group(number: usize, order: SlotOrder) -> Job {
    Job::LockServer(SlotJob { order, host: host(number), group: GroupName::new("g").unwrap() })
}

#[test]
fn release_after_its_own_lock_comes_first() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "i");
    let (now, mut begun) = next(&mut jobs, 0, &[in_one_group(1, SlotOrder::Lock)]);
    let wanted = [in_one_group(2, SlotOrder::Lock), in_one_group(1, SlotOrder::Unlock)];
    assert_eq!(jobs.begin(wanted.to_vec(), at(now)), []);
    assert!(done(&mut jobs, at(now), begun.remove(0), &LockOutcome::Granted, None));
    let begun = jobs.begin(wanted.to_vec(), at(now));
    assert_eq!(names(&begun), "unlock-h001");
}

#[test]
fn one_job_per_host_at_a_time() {
    let mut jobs = jobs(RETRY, Duration::ZERO, "i");
    let wanted = [in_one_group(1, SlotOrder::Lock), in_one_group(1, SlotOrder::Unlock)];
    let (_, begun) = next(&mut jobs, 0, &wanted);
    assert_eq!(begun.len(), 1, "{begun:?}");
}

/// What is begun for a run may end late, so work for the next one waits for it.
#[test]
fn one_job_per_host_at_a_time_whoever_it_is_for() {
    let limits = SystemLimits::at_intervals(RETRY, Duration::ZERO);
    let mut jobs = Jobs::new([(System::Cluster, limits)], "i");
    let wanted = ["r1", "r2"].map(|run| {
        let owner = Owner::Run(RunId::new(run).unwrap());
        let order = NodeOrder::Check { owner, is_cordoned: false };
        Job::Cluster(NodeJob { order, host: host(1), fence: NodeFence::default() })
    });
    let (_, begun) = next(&mut jobs, 0, &wanted);
    assert_eq!(begun.len(), 1, "{begun:?}");
}

/// While the append of its outcome is slow, a job still counts as wanted. Begun again, a release could be carried out
/// late, and free the slot that the host is granted next.
#[test]
fn next_job_of_a_host_waits_until_the_outcome_is_committed() {
    const LATER: Now = Now { wall: DateTime::<Utc>::UNIX_EPOCH, monotonic: Duration::from_hours(1) };
    for (ended, wanted) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut jobs = jobs(RETRY, INTERVAL, "a");
        let (now, mut begun) = next(&mut jobs, 0, &[job(1, ended)]);
        let StartedJob { id, job: first, .. } = begun.remove(0);
        assert!(jobs.done(at(now), id, &report(&first, &LockOutcome::Granted, None)));
        // For a while, nothing may be wanted.
        for wanted in [vec![job(1, wanted)], Vec::new(), vec![job(1, wanted)]] {
            assert!(jobs.begin(wanted, LATER).is_empty(), "{first:?}");
        }
        jobs.committed(&first);
        let mut begun = jobs.begin(vec![job(1, wanted)], LATER);
        assert!(done(&mut jobs, LATER, begun.remove(0), &LockOutcome::Granted, None));

        // The outcomes of another leadership are nothing to wait for.
        let (now, mut begun) = next(&mut jobs, 7_200_000, &[job(1, ended)]);
        let StartedJob { id, job: second, .. } = begun.remove(0);
        assert!(jobs.done(at(now), id, &report(&second, &LockOutcome::Granted, None)));
        jobs.leadership_begins(at(now));
        next(&mut jobs, now, &[job(1, wanted)]);
    }
}
