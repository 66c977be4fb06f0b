//! The schedule against a clock made of numbers.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::*;
use crate::answer::Outcome;
use crate::content::ContentBytes;
use crate::due::{Phase, next_due};
use crate::failure::Failure;

const HOUR: Duration = Duration::from_hours(1);
const LIMITS: Limits = Limits {
    poll_interval: HOUR,
    max_in_flight: 4,
    batch_size: 1,
    generation: 1,
    asks_at_once: true,
    polls: true,
};
/// Those of a provider whose hosts wait for their polls.
const PATIENT: Limits = Limits { asks_at_once: false, ..LIMITS };
/// 2026-03-01T12:00:00Z.
const START_SECS: i64 = 1_772_366_400;

fn at(monotonic: Duration) -> Now {
    let since = chrono::TimeDelta::from_std(monotonic).unwrap();
    Now { wall: DateTime::from_timestamp(START_SECS, 0).unwrap() + since, monotonic }
}

/// So much before `now`.
fn before(now: Now, time: Duration) -> Now {
    at(now.monotonic.checked_sub(time).unwrap())
}

fn secs(seconds: u64) -> Now {
    at(Duration::from_secs(seconds))
}

fn provider(name: &str) -> ProviderName {
    ProviderName::new(name).unwrap()
}

fn host(number: usize) -> HostName {
    HostName::new(&format!("h{number:05}")).unwrap()
}

fn validator(text: &str) -> Validator {
    Validator::new(text.as_bytes(), Some(b"\"1\""), None, None)
}

fn reply(outcome: Outcome) -> Reply {
    Reply { outcome, retry_after: None, poll_interval: None }
}

fn content(text: &str) -> Reply {
    let bytes = ContentBytes::new(text.as_bytes().to_vec());
    reply(Outcome::Content { content: bytes, validator: validator(text) })
}

fn unchanged(text: &str) -> Reply {
    reply(Outcome::Unchanged { validator: validator(text) })
}

fn failed() -> Reply {
    Failure::TimedOut.into()
}

/// A schedule of the provider `app` with so many hosts, from second 0.
fn schedule(hosts: usize) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_provider(secs(0), &provider("app"), LIMITS);
    (0..hosts).for_each(|number| schedule.add_host(secs(0), &provider("app"), &host(number)));
    schedule
}

/// The only question at `now`.
fn one(schedule: &mut Schedule, now: Now) -> Question {
    let mut questions = schedule.tick(now);
    assert_eq!(questions.len(), 1, "{questions:?}");
    questions.remove(0)
}

/// When the provider `app` last said what this host is to have.
fn confirmed_at(schedule: &Schedule, number: usize) -> Option<DateTime<Utc>> {
    schedule.status(secs(0), &provider("app"), &host(number)).unwrap().confirmed_at
}

/// When the poll after `now` is due.
fn poll_after(now: Now) -> Now {
    let phase = Phase::new(&host(0), &provider("app"));
    let wait = next_due(phase, HOUR, now.wall) - now.wall;
    at(now.monotonic + wait.to_std().unwrap())
}

#[test]
fn a_host_is_asked_at_once_and_then_when_due() {
    let mut schedule = schedule(1);
    assert_eq!(schedule.tick(secs(0)), [], "the bucket is empty when a leadership begins");
    let first = one(&mut schedule, secs(1));
    assert_eq!((&first.host, &first.validator), (&host(0), &None));
    assert_eq!(schedule.tick(secs(100)), [], "it is under way");
    schedule.finish(secs(101), first.ticket, &content("a"));
    assert_eq!(schedule.asked(first.ticket), None, "it has ended");
    schedule.finish(secs(101), first.ticket, &content("b"));

    let due = poll_after(secs(101));
    assert_eq!(schedule.next_at(), Some(due.monotonic));
    assert_eq!(schedule.tick(before(due, Duration::from_millis(1))), []);
    let second = one(&mut schedule, due);
    assert_eq!(second.validator, Some(validator("a")));
    schedule.finish(due, second.ticket, &unchanged("a"));
    assert_eq!(schedule.next_at(), Some(due.monotonic + HOUR));
}

#[test]
fn an_early_poll_counts_as_the_one_that_is_due() {
    let mut schedule = schedule(1);
    let due = poll_after(secs(0));
    let early = before(due, Duration::from_millis(5));
    let question = one(&mut schedule, early);
    schedule.finish(early, question.ticket, &content("a"));
    assert_eq!(schedule.next_at(), Some(due.monotonic + HOUR));
}

/// After each reply: the failures since the provider last said what the host is to have, and the validator of the next question.
#[test]
fn replies_are_remembered() {
    let removed = || reply(Outcome::Removed);
    let refused = || Reply::from(Failure::Refused { status: 403 });
    let mut schedule = schedule(1);
    let mut question = one(&mut schedule, at(HOUR * 3));
    for (number, (said, failures, expected)) in [
        (failed(), 1, None),
        (refused(), 2, None),
        (content("a"), 0, Some("a")),
        (unchanged("b"), 0, Some("b")),
        (failed(), 1, Some("b")),
        (content("c"), 0, Some("c")),
        (removed(), 0, None),
        (failed(), 1, None),
        (content("d"), 0, Some("d")),
    ]
    .into_iter()
    .enumerate()
    {
        let step = u32::try_from(number + 1).unwrap();
        schedule.finish(at(HOUR * 3 * step), question.ticket, &said);
        assert_eq!(schedule.status(secs(0), &provider("app"), &host(0)).unwrap().failures, failures);
        question = one(&mut schedule, at(HOUR * 3 * (step + 1)));
        assert_eq!(question.validator, expected.map(validator), "{number}: {said:?}");
    }
}

#[test]
fn failures_back_off_and_keep_the_last_word() {
    let mut schedule = schedule(1);
    let question = one(&mut schedule, secs(1));
    schedule.finish(secs(1), question.ticket, &content("a"));
    let mut now = poll_after(secs(1));
    let mut pauses = Vec::new();
    for failures in 1..=3 {
        let question = one(&mut schedule, now);
        assert_eq!(question.validator, Some(validator("a")));
        schedule.finish(now, question.ticket, &failed());
        let status = schedule.status(now, &provider("app"), &host(0)).unwrap();
        assert_eq!((status.failures, status.failure), (failures, Some(&Failure::TimedOut)));
        assert_eq!(status.confirmed_at, Some(secs(1).wall));
        pauses.push(status.due_in.unwrap().as_secs());
        now = at(schedule.next_at().unwrap());
    }
    assert!((10..=12).contains(&pauses[0]) && (20..=25).contains(&pauses[1]), "{pauses:?}");
    assert!((40..=50).contains(&pauses[2]), "{pauses:?}");
    // Somebody who polls does not wait for the pause; a run does.
    schedule.hurry(secs(4000), &provider("app"), &host(0));
    assert_eq!(schedule.next_at(), Some(now.monotonic));
    let earlier = before(now, Duration::from_secs(30));
    schedule.poll(earlier, &provider("app"), None);
    one(&mut schedule, earlier);
}

#[test]
fn only_what_a_provider_says_confirms() {
    let mut schedule = schedule(1);
    assert_eq!(confirmed_at(&schedule, 0), None);
    let question = one(&mut schedule, secs(1));
    schedule.finish(secs(1), question.ticket, &failed());
    assert_eq!(confirmed_at(&schedule, 0), None);
    let question = one(&mut schedule, secs(20));
    schedule.finish(secs(20), question.ticket, &reply(Outcome::Removed));
    assert_eq!(confirmed_at(&schedule, 0), Some(secs(20).wall));
    schedule.leadership_begins(secs(20));
    assert_eq!(confirmed_at(&schedule, 0), None);
}

#[test]
fn hosts_for_which_a_run_waits_go_first() {
    for (max_in_flight, batch_size) in [(4, 1), (2, 2), (1, 4)] {
        let mut schedule = schedule(100);
        schedule.set_provider(secs(0), &provider("app"), Limits { max_in_flight, batch_size, ..LIMITS });
        schedule.hurry(secs(0), &provider("app"), &host(99));
        let asked: Vec<_> = schedule.tick(secs(1)).into_iter().map(|question| question.host).collect();
        assert_eq!(asked, [99, 0, 1, 2].map(host));
    }
}

/// Requests end one after the other, and still the next ones are about as many hosts as they may be.
#[test]
fn batches_bound_requests() {
    let app = provider("app");
    let mut schedule = schedule(1_000);
    schedule.set_provider(secs(0), &app, Limits { max_in_flight: 2, batch_size: 50, ..LIMITS });
    let mut under_way: Vec<Question> = Vec::new();
    let mut asked = Vec::new();
    for second in 1..=20 {
        let begun = schedule.tick(secs(second));
        let mut sizes: BTreeMap<BatchId, usize> = BTreeMap::new();
        for question in &begun {
            *sizes.entry(question.batch).or_default() += 1;
        }
        assert!(sizes.values().all(|size| *size == 50), "{second}: {sizes:?}");
        let open: BTreeSet<BatchId> = under_way.iter().chain(&begun).map(|question| question.batch).collect();
        assert!(open.len() <= 2, "{second}: {open:?}");
        for question in under_way.drain(..) {
            schedule.finish(secs(second), question.ticket, &unchanged("a"));
        }
        asked.extend(begun.iter().map(|question| question.host.clone()));
        under_way = begun;
    }
    assert_eq!(asked, (0..1_000).map(host).collect::<Vec<_>>());
}

#[test]
fn requests_end_with_their_last_question() {
    let app = provider("app");
    let mut schedule = schedule(4);
    schedule.set_provider(secs(0), &app, Limits { max_in_flight: 1, batch_size: 2, ..LIMITS });
    let first = schedule.tick(secs(1));
    let [one, other] = &first[..] else { panic!("{first:?}") };
    assert_eq!((&one.host, &other.host, one.batch), (&host(0), &host(1), other.batch));
    schedule.finish(secs(1), one.ticket, &unchanged("a"));
    assert_eq!((schedule.tick(secs(9)), schedule.next_at()), (vec![], None));
    schedule.remove_host(&app, &other.host);
    assert_eq!(schedule.tick(secs(9)), [], "the request is still under way");
    schedule.finish(secs(10), other.ticket, &unchanged("a"));
    let second = schedule.tick(secs(10));
    assert_eq!(second.iter().map(|question| &question.host).collect::<Vec<_>>(), [&host(2), &host(3)]);
    assert!(second.iter().all(|question| question.batch == second[0].batch && question.batch != one.batch));
}

#[test]
fn a_poll_is_answered_from_after_it() {
    let mut schedule = schedule(1);
    let first = one(&mut schedule, secs(1));
    schedule.poll(secs(2), &provider("app"), Some(&host(0)));
    assert_eq!(schedule.tick(secs(2)), [], "never twice at once");
    schedule.finish(secs(3), first.ticket, &content("a"));
    let second = one(&mut schedule, secs(3));
    schedule.finish(secs(4), second.ticket, &content("b"));
    assert_eq!(schedule.tick(secs(5)), []);
}

#[test]
fn servers_are_left_alone_as_they_ask() {
    let mut schedule = schedule(2);
    let questions = schedule.tick(secs(1));
    let throttled: Reply = Reply { retry_after: Some(Duration::from_mins(5)), ..Failure::Throttled.into() };
    schedule.finish(secs(1), questions[0].ticket, &throttled);
    schedule.finish(secs(1), questions[1].ticket, &content("a"));
    schedule.poll(secs(2), &provider("app"), None);
    assert_eq!((schedule.tick(secs(300)), schedule.next_at()), (vec![], Some(secs(301).monotonic)));
    assert_eq!(schedule.tick(secs(301)).len(), 2);
}

/// What is about other hosts takes the same places and tokens, and a pause holds for both.
#[test]
fn requests_about_others_have_the_same_limits() {
    let mut schedule = Schedule::default();
    schedule.set_provider(secs(0), &provider("app"), Limits { max_in_flight: 1, batch_size: 2, ..LIMITS });
    let begin = |schedule: &mut Schedule, now, wanted| schedule.begin(now, &provider("app"), wanted);
    assert_eq!(begin(&mut schedule, secs(0), 3), [Ticket::MIN; 0], "the bucket is empty");
    assert_eq!(begin(&mut schedule, secs(1), 0), [Ticket::MIN; 0]);
    let first = begin(&mut schedule, secs(1), 3);
    assert_eq!(first.len(), 2, "a batch");
    schedule.add_host(secs(1), &provider("app"), &host(0));
    assert_eq!(schedule.tick(secs(2)), [], "as many as may be are under way");
    schedule.finish(secs(2), first[0], &failed());
    assert_eq!(schedule.tick(secs(2)), [], "half of it is");
    assert_eq!(schedule.asked(first[1]), None, "it is about none of its hosts");
    schedule.finish(secs(2), first[1], &Reply { retry_after: Some(Duration::from_mins(1)), ..failed() });
    assert_eq!(schedule.tick(secs(61)), []);
    let asked = one(&mut schedule, secs(62));
    assert_eq!(begin(&mut schedule, secs(70), 1), [Ticket::MIN; 0]);
    schedule.finish(secs(70), asked.ticket, &Reply { retry_after: Some(Duration::from_mins(1)), ..failed() });
    assert_eq!(begin(&mut schedule, secs(129), 1), [Ticket::MIN; 0]);
    let last = begin(&mut schedule, secs(130), 1);
    assert_eq!(last.len(), 1);
    // Another server is asked now: what the one before says holds nothing up, and it counts as under way until then.
    let other = Limits { generation: 2, max_in_flight: 1, ..LIMITS };
    schedule.set_provider(secs(131), &provider("app"), other);
    assert_eq!(schedule.tick(secs(140)), []);
    schedule.finish(secs(140), last[0], &Reply { retry_after: Some(HOUR), ..failed() });
    assert_eq!(one(&mut schedule, secs(140)).host, host(0));
    assert_eq!(begin(&mut schedule, secs(140), 1), [Ticket::MIN; 0]);
    schedule.remove_provider(&provider("app"));
    assert_eq!(begin(&mut schedule, secs(200), 1), [Ticket::MIN; 0], "it is no longer configured");
}

#[test]
fn another_definition_counts_anew() {
    let mut schedule = schedule(1);
    let old = one(&mut schedule, secs(1));
    schedule.set_provider(secs(2), &provider("app"), Limits { generation: 2, ..LIMITS });
    assert_eq!(schedule.tick(secs(9)), [], "never twice at once");
    schedule.finish(secs(10), old.ticket, &content("a"));
    assert_eq!(confirmed_at(&schedule, 0), None);
    let new = one(&mut schedule, secs(10));
    assert_eq!(new.validator, None);
    schedule.finish(secs(11), new.ticket, &content("b"));
    assert_eq!(confirmed_at(&schedule, 0), Some(secs(11).wall));

    // The same definition with another interval keeps what was said.
    let faster = Limits { generation: 2, poll_interval: Duration::from_mins(1), ..LIMITS };
    schedule.set_provider(secs(12), &provider("app"), faster);
    assert!(schedule.next_at().unwrap() <= secs(12 + 64).monotonic, "{:?}", schedule.next_at());
    assert_eq!(one(&mut schedule, secs(80)).validator, Some(validator("b")));
}

#[test]
fn what_has_left_no_longer_counts() {
    let (app, first) = (provider("app"), host(0));
    let mut schedule = schedule(1);
    let question = one(&mut schedule, secs(1));
    schedule.remove_host(&app, &first);
    assert_eq!(schedule.status(secs(1), &app, &first), None);
    schedule.add_host(secs(2), &app, &first);
    assert_eq!(schedule.tick(secs(9)), [], "never twice at once");
    schedule.remove_provider(&app);
    schedule.set_provider(secs(9), &app, LIMITS);
    schedule.add_host(secs(9), &app, &first);
    assert_eq!(schedule.tick(secs(12)), [], "never twice at once");
    schedule.finish(secs(13), question.ticket, &content("a"));
    assert_eq!(one(&mut schedule, secs(13)).validator, None);
    schedule.remove_provider(&app);
    assert_eq!((schedule.tick(at(HOUR)), schedule.next_at()), (vec![], None));
}

/// Calls for a question about a host.
type Call = fn(&mut Schedule, Now, &HostName);

/// Whoever takes over, or begins with a host, waits for the next poll; only what is wanted is asked about before.
#[test]
fn patient_providers_repeat_no_poll() {
    let (app, first) = (provider("app"), host(0));
    let mut schedule = Schedule::default();
    schedule.set_provider(secs(0), &app, PATIENT);
    schedule.add_host(secs(0), &app, &first);
    let due = poll_after(secs(0));
    assert_eq!((schedule.tick(secs(9)), schedule.next_at()), (vec![], Some(due.monotonic)));
    // The next leader continues with the same times.
    schedule.leadership_begins(before(due, Duration::from_secs(1)));
    assert_eq!(schedule.next_at(), Some(due.monotonic));
    let late = at(due.monotonic + Duration::from_secs(7));
    let poll = one(&mut schedule, late);
    assert_eq!(poll.poll, Some(due.wall), "however late it is");
    schedule.finish(late, poll.ticket, &unchanged("a"));
    schedule.leadership_begins(at(due.monotonic + Duration::from_secs(8)));
    assert_eq!(schedule.next_at(), Some(due.monotonic + HOUR));
    // A failure is repeated as the same poll.
    let due = at(due.monotonic + HOUR);
    let poll = one(&mut schedule, due);
    schedule.finish(due, poll.ticket, &failed());
    let again = one(&mut schedule, at(due.monotonic + Duration::from_secs(20)));
    assert_eq!((poll.poll, again.poll), (Some(due.wall), Some(due.wall)));
    schedule.finish(due, again.ticket, &unchanged("a"));
    let calls: [(Call, bool); 3] = [
        (|schedule, now, host| schedule.poll(now, &provider("app"), Some(host)), false),
        (|schedule, now, host| schedule.hurry(now, &provider("app"), host), false),
        (|schedule, now, host| schedule.bring_forward(now, &provider("app"), host), true),
    ];
    for (call, is_poll) in calls {
        let now = at(due.monotonic + Duration::from_mins(1));
        call(&mut schedule, now, &first);
        let question = one(&mut schedule, now);
        assert_eq!(question.poll.is_some(), is_poll);
        schedule.finish(now, question.ticket, &unchanged("a"));
        assert_eq!(schedule.tick(now), [], "it has been asked");
    }
}

#[test]
fn what_is_wanted_meanwhile_is_asked_as_wanted() {
    let (app, first) = (provider("app"), host(0));
    let mut schedule = schedule(1);
    let poll = one(&mut schedule, secs(1));
    schedule.poll(secs(2), &app, Some(&first));
    schedule.finish(secs(3), poll.ticket, &unchanged("a"));
    let wanted = one(&mut schedule, secs(3));
    schedule.finish(secs(3), wanted.ticket, &failed());
    let again = one(&mut schedule, secs(30));
    assert_eq!((wanted.poll, again.poll), (None, None), "until it is answered");
    schedule.finish(secs(30), again.ticket, &unchanged("a"));
    schedule.bring_forward(secs(31), &app, &first);
    assert!(one(&mut schedule, secs(31)).poll.is_some());
}

#[test]
fn hosts_may_have_intervals_of_their_own() {
    let (app, first) = (provider("app"), host(0));
    let minute = Duration::from_mins(1);
    for limits in [LIMITS, PATIENT] {
        let mut schedule = Schedule::default();
        schedule.set_provider(secs(0), &app, limits);
        schedule.add_host(secs(0), &app, &first);
        schedule.set_interval(secs(0), &app, &first, Some(minute));
        let next = schedule.next_at().unwrap();
        assert!(next <= secs(60).monotonic, "{next:?}");
        let question = one(&mut schedule, secs(60));
        schedule.finish(secs(60), question.ticket, &unchanged("a"));
        let next = schedule.next_at().unwrap();
        assert!(next > secs(60).monotonic && next <= secs(60 + 64).monotonic, "{next:?}");
        // The provider's own interval is that of other hosts; a new leader is told the host's again, or keeps it.
        schedule.set_provider(secs(61), &app, Limits { poll_interval: HOUR * 2, ..limits });
        assert_eq!(schedule.next_at(), Some(next));
        schedule.set_interval(secs(61), &app, &first, None);
        assert!(schedule.next_at().unwrap() > next);
        // What is due stays due.
        schedule.poll(secs(62), &app, None);
        schedule.set_interval(secs(62), &app, &first, Some(HOUR));
        assert_eq!(schedule.tick(secs(62)).len(), 1);
    }
}

#[test]
fn without_polls_only_what_is_called_for_is_asked() {
    let (app, first) = (provider("app"), host(0));
    let silent = Limits { polls: false, ..PATIENT };
    let mut schedule = Schedule::default();
    schedule.set_provider(secs(0), &app, silent);
    schedule.add_host(secs(0), &app, &first);
    assert_eq!((schedule.tick(at(HOUR * 100)), schedule.next_at()), (vec![], None));
    assert_eq!(schedule.status(secs(0), &app, &first).unwrap().due_in, None);
    let now = at(HOUR * 100);
    schedule.bring_forward(now, &app, &first);
    let question = one(&mut schedule, now);
    schedule.finish(now, question.ticket, &failed());
    let retried = at(schedule.next_at().unwrap());
    let question = one(&mut schedule, retried);
    schedule.finish(retried, question.ticket, &unchanged("a"));
    assert_eq!(schedule.next_at(), None);
    schedule.set_provider(retried, &app, PATIENT);
    assert!(schedule.next_at().is_some());
}

#[test]
fn what_was_lacking_ends_pauses() {
    let app = provider("app");
    let mut schedule = schedule(2);
    let questions = schedule.tick(secs(1));
    schedule.finish(
        secs(1),
        questions[0].ticket,
        &Reply::<ContentBytes>::from(Failure::Refused { status: 401 }),
    );
    schedule.finish(secs(1), questions[1].ticket, &content("a"));
    schedule.retry_failed(secs(9), &app);
    let retried = schedule.tick(secs(9));
    assert_eq!(retried.len(), 1);
    assert_eq!(retried[0].host, questions[0].host);
}

#[test]
fn held_providers_are_asked_later() {
    let app = provider("app");
    let mut schedule = schedule(1);
    schedule.hold(&app, true);
    assert_eq!((schedule.tick(secs(9)), schedule.next_at()), (vec![], None));
    schedule.poll(secs(9), &app, None);
    schedule.hold(&app, false);
    assert_eq!(one(&mut schedule, secs(9)).poll, None, "what is wanted meanwhile is kept");
}

/// 10 000 hosts with three providers that answer within a second, from nothing known to the end of the second hour.
#[test]
fn many_hosts_are_spread() {
    let names = ["app", "net", "vpn"].map(provider);
    let mut schedule = Schedule::default();
    for name in &names {
        schedule.set_provider(secs(0), name, Limits { max_in_flight: 12, ..LIMITS });
        (0..10_000).for_each(|number| schedule.add_host(secs(0), name, &host(number)));
    }
    let mut asked: BTreeMap<u64, usize> = BTreeMap::new();
    let mut under_way: Vec<Question> = Vec::new();
    for second in 0..7200 {
        for question in under_way.drain(..) {
            schedule.finish(secs(second), question.ticket, &unchanged("a"));
        }
        under_way = schedule.tick(secs(second));
        *asked.entry(second / 60).or_default() += under_way.len();
    }
    let total = |minutes: std::ops::Range<u64>| asked.range(minutes).map(|(_, count)| count).sum::<usize>();
    assert!((30_000..40_000).contains(&total(0..16)), "each once in the first quarter: {asked:?}");
    assert!((29_000..31_000).contains(&total(60..120)), "once an hour: {asked:?}");
    assert!(asked.values().all(|count| *count <= 3 * 12 * 60), "never a storm: {asked:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Pass(u16),
    Finish(usize, u8),
    Add(u8, usize),
    Remove(u8, usize),
    Poll(u8, Option<usize>),
    Hurry(u8, usize),
    /// With so many requests at once, about so many hosts, this generation, and whether hosts are asked about at once.
    Configure(u8, u32, u32, u64, bool),
    Interval(u8, usize, Option<u64>),
    Hold(u8, bool),
    Unconfigure(u8),
    Lead,
}

fn step() -> impl Strategy<Value = Step> {
    let (name, number) = (0_u8..2, 0_usize..6);
    prop_oneof![
        4 => (0_u16..20_000).prop_map(Step::Pass),
        6 => (any::<usize>(), 0_u8..5).prop_map(|(index, kind)| Step::Finish(index, kind)),
        2 => (name.clone(), number.clone()).prop_map(|(name, number)| Step::Add(name, number)),
        1 => (name.clone(), number.clone()).prop_map(|(name, number)| Step::Remove(name, number)),
        1 => (name.clone(), prop::option::of(number.clone())).prop_map(|(name, number)| Step::Poll(name, number)),
        1 => (name.clone(), number.clone()).prop_map(|(name, number)| Step::Hurry(name, number)),
        1 => (name.clone(), 1_u32..4, 1_u32..4, 0_u64..3, any::<bool>())
            .prop_map(|(name, max, size, generation, asks)| Step::Configure(name, max, size, generation, asks)),
        1 => (name.clone(), number, prop::option::of(600_u64..4_000))
            .prop_map(|(name, number, secs)| Step::Interval(name, number, secs)),
        1 => (name.clone(), any::<bool>()).prop_map(|(name, is_held)| Step::Hold(name, is_held)),
        1 => name.prop_map(Step::Unconfigure),
        1 => Just(Step::Lead),
    ]
}

/// What the checker knows without the schedule: who is configured, who is wanted, what is under way.
#[derive(Default)]
struct Model {
    /// How many requests may be under way at once, and about how many hosts.
    configured: BTreeMap<ProviderName, (u32, u32)>,
    wanted: BTreeSet<(ProviderName, HostName)>,
    held: BTreeSet<ProviderName>,
    under_way: Vec<Question>,
}

impl Model {
    fn check(&self, asked: &[Question]) {
        for (index, question) in asked.iter().enumerate() {
            let pair = (question.provider.clone(), question.host.clone());
            assert!(self.wanted.contains(&pair), "{question:?}");
            assert!(!self.held.contains(&question.provider), "{question:?}");
            let is_same = |other: &&Question| (&other.provider, &other.host) == (&pair.0, &pair.1);
            assert!(self.under_way.iter().chain(&asked[..index]).find(is_same).is_none(), "twice: {pair:?}");
            let is_other =
                |other: &&Question| other.provider == question.provider && other.batch != question.batch;
            let before = self.under_way.iter().chain(&asked[..index]).filter(is_other);
            let before: BTreeSet<BatchId> = before.map(|other| other.batch).collect();
            let (max, size) = self.configured[&question.provider];
            let max = usize::try_from(max).unwrap();
            assert!(before.len() < max, "more than {max} of {}", question.provider);
            let of_batch = asked.iter().filter(|other| other.batch == question.batch);
            let is_of_provider = |other: &Question| other.provider == question.provider;
            assert!(of_batch.clone().all(is_of_provider), "one request to two: {asked:?}");
            assert!(of_batch.count() <= usize::try_from(size).unwrap(), "more than {size}: {asked:?}");
        }
    }
}

fn apply(step: &Step, now: Now, schedule: &mut Schedule, model: &mut Model) {
    let name = |number: u8| provider(["app", "net"][usize::from(number)]);
    match *step {
        Step::Pass(_) => {}
        Step::Finish(index, kind) if !model.under_way.is_empty() => {
            let question = model.under_way.remove(index % model.under_way.len());
            let said = match kind {
                0 => failed(),
                1 => content("a"),
                2 => reply(Outcome::Removed),
                3 => Reply { retry_after: Some(Duration::from_secs(30)), ..failed() },
                _ => unchanged("a"),
            };
            schedule.finish(now, question.ticket, &said);
        }
        Step::Finish(..) => {}
        Step::Add(number, at) => {
            schedule.add_host(now, &name(number), &host(at));
            if model.configured.contains_key(&name(number)) {
                model.wanted.insert((name(number), host(at)));
            }
        }
        Step::Remove(number, at) => {
            schedule.remove_host(&name(number), &host(at));
            model.wanted.remove(&(name(number), host(at)));
        }
        Step::Poll(number, at) => schedule.poll(now, &name(number), at.map(host).as_ref()),
        Step::Hurry(number, at) => schedule.hurry(now, &name(number), &host(at)),
        Step::Configure(number, max_in_flight, batch_size, generation, asks_at_once) => {
            let limits = Limits { max_in_flight, batch_size, generation, asks_at_once, ..LIMITS };
            schedule.set_provider(now, &name(number), limits);
            // The caller holds it anew: one that has just been configured is not held.
            schedule.hold(&name(number), false);
            model.held.remove(&name(number));
            model.configured.insert(name(number), (max_in_flight, batch_size));
        }
        Step::Interval(number, at, secs) => {
            let interval = secs.map(Duration::from_secs);
            schedule.set_interval(now, &name(number), &host(at), interval);
        }
        Step::Hold(number, is_held) => {
            schedule.hold(&name(number), is_held);
            if is_held && model.configured.contains_key(&name(number)) {
                model.held.insert(name(number));
            } else {
                model.held.remove(&name(number));
            }
        }
        Step::Unconfigure(number) => {
            schedule.remove_provider(&name(number));
            model.configured.remove(&name(number));
            model.held.remove(&name(number));
            model.wanted.retain(|(of, _)| *of != name(number));
        }
        Step::Lead => schedule.leadership_begins(now),
    }
}

/// Ticks whenever the schedule wants it, and answers at once, until `until`; returns who was asked.
fn settle(schedule: &mut Schedule, from: Duration, until: Duration) -> BTreeSet<(ProviderName, HostName)> {
    let mut asked = BTreeSet::new();
    let mut now = from;
    while now < until {
        for question in schedule.tick(at(now)) {
            schedule.finish(at(now), question.ticket, &unchanged("a"));
            asked.insert((question.provider, question.host));
        }
        let next = schedule.next_at();
        assert!(next.is_none_or(|next| next > now), "it would be ticked without end");
        now = next.unwrap_or(until);
    }
    asked
}

proptest! {
    /// Whatever happens, no pair is asked about twice at once, no provider more often than allowed, nobody is asked about who has
    /// left; and when the providers answer, everybody is asked about within an interval and the longest pause.
    #[test]
    fn bounds_hold_and_everybody_is_asked(steps in prop::collection::vec(step(), 1..120)) {
        let (mut schedule, mut model) = (Schedule::default(), Model::default());
        let mut now = Duration::ZERO;
        for step in steps {
            if let Step::Pass(millis) = step {
                now += Duration::from_millis(u64::from(millis));
            }
            apply(&step, at(now), &mut schedule, &mut model);
            let asked = schedule.tick(at(now));
            model.check(&asked);
            model.under_way.extend(asked);
            prop_assert!(schedule.next_at().is_none_or(|next| next > now));
        }
        for question in model.under_way.drain(..) {
            schedule.finish(at(now), question.ticket, &unchanged("a"));
        }
        for name in &model.held {
            schedule.hold(name, false);
        }
        let asked = settle(&mut schedule, now, now + HOUR * 3);
        prop_assert_eq!(&asked, &model.wanted);
        for (name, host) in &model.wanted {
            let status = schedule.status(at(now + HOUR * 3), name, host);
            prop_assert!(status.unwrap().confirmed_at.is_some());
        }
    }
}
