//! Random sites driven by random inputs, likely and hostile ones, checked after every input by `common/check.rs`.

mod common;

use chrono::TimeDelta;
use common::{Site, application, config, group, host, run, seen};
use os_upgrade_kernel::config::{Rollout, UnreachablePolicy};
use os_upgrade_kernel::duration::Duration;
use os_upgrade_kernel::{
    Config, ControlMessage, Effect, Input, LockOutcome, LockProvider, OnFailure, Reachability, Request, Run,
    Settings,
};
use os_upgrade_protocol::{Action, CommandId, GroupName, HostName, Outcome, Reply};
use proptest::prelude::*;

/// The last of them is in no view, so never in a run.
const HOSTS: [&str; 5] = ["h1", "h2", "h3", "h4", "stranger"];

/// Something that happens. Indices are taken modulo what there is at that moment.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// One of the effects is carried out, as asked.
    CarryOut {
        effect: usize,
        outcome: usize,
    },
    /// All commands that are to be sent appear in the control stream.
    Deliver,
    /// A worker answers the current command of its host.
    Answer {
        host: usize,
        result: usize,
        header: bool,
    },
    Trigger {
        timeout_secs: u64,
        validate: bool,
    },
    Cancel,
    Wait {
        seconds: i64,
    },
    Skew {
        seconds: Option<i64>,
    },
    See {
        host: usize,
        group: usize,
        reachability: usize,
        gone: bool,
    },
    PutConfig {
        max_concurrent: u32,
        max_failures: u32,
        fail_unreachable: bool,
        applications: bool,
    },
    Settings {
        external: bool,
        release: bool,
        slots: [u32; 3],
        groups: usize,
    },
    Fence,
    Lie(Lie),
}

/// What no honest bus or lock server would say.
#[derive(Debug, Clone, Copy)]
enum Lie {
    FenceStored { sequence: u64 },
    Command { host: usize, run: usize, action: usize, attempt: u32, named: usize },
    Reply { host: usize, action: usize, result: usize, in_reply_to: Option<u64>, malformed: bool },
    OldControl { sequence: u64 },
    Gap { by: u64 },
    Lock { host: usize, outcome: usize, unlock: bool },
    Withdrawn { host: usize, sequence: u64, deleted: bool },
}

fn index() -> impl Strategy<Value = usize> {
    0..60_usize
}

fn honest() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => (index(), prop_oneof![3 => Just(0), 1 => index()])
            .prop_map(|(effect, outcome)| Move::CarryOut { effect, outcome }),
        4 => Just(Move::Deliver),
        16 => (index(), prop_oneof![4 => Just(0_usize), 1 => index()], any::<bool>())
            .prop_map(|(host, result, header)| Move::Answer { host, result, header }),
        4 => (1..2_000_u64, prop::bool::weighted(0.05))
            .prop_map(|(timeout_secs, validate)| Move::Trigger { timeout_secs, validate }),
        1 => Just(Move::Cancel),
        3 => prop_oneof![4 => 0..200_i64, 1 => -500..0_i64, 1 => 500..3_000_i64]
            .prop_map(|seconds| Move::Wait { seconds }),
        1 => prop::option::of(-60..60_i64).prop_map(|seconds| Move::Skew { seconds }),
        1 => (index(), index(), index(), prop::bool::weighted(0.1))
            .prop_map(|(host, group, reachability, gone)| Move::See { host, group, reachability, gone }),
        1 => (0..4_u32, 0..3_u32, any::<bool>(), prop::bool::weighted(0.9)).prop_map(
            |(max_concurrent, max_failures, fail_unreachable, applications)| Move::PutConfig {
                max_concurrent, max_failures, fail_unreachable, applications,
            }
        ),
        1 => (any::<bool>(), any::<bool>(), prop::array::uniform3(0..3_u32), 1..4_usize)
            .prop_map(|(external, release, slots, groups)| Move::Settings { external, release, slots, groups }),
        1 => Just(Move::Fence),
    ]
}

fn hostile() -> impl Strategy<Value = Lie> {
    prop_oneof![
        (0..200_u64).prop_map(|sequence| Lie::FenceStored { sequence }),
        (index(), index(), index(), 0..3_u32, index()).prop_map(|(host, run, action, attempt, named)| {
            Lie::Command { host, run, action, attempt, named }
        }),
        (index(), index(), index(), prop::option::of(0..60_u64), prop::bool::weighted(0.1)).prop_map(
            |(host, action, result, in_reply_to, malformed)| Lie::Reply {
                host,
                action,
                result,
                in_reply_to,
                malformed
            }
        ),
        (0..60_u64).prop_map(|sequence| Lie::OldControl { sequence }),
        (1..20_u64).prop_map(|by| Lie::Gap { by }),
        (index(), index(), any::<bool>()).prop_map(|(host, outcome, unlock)| Lie::Lock {
            host,
            outcome,
            unlock
        }),
        (index(), 0..60_u64, any::<bool>()).prop_map(|(host, sequence, deleted)| Lie::Withdrawn {
            host,
            sequence,
            deleted
        }),
    ]
}

fn moves(length: usize) -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(prop_oneof![6 => honest(), 1 => hostile().prop_map(Move::Lie)], length / 2..length)
}

fn name_of(index: usize) -> HostName {
    host(HOSTS[index % HOSTS.len()])
}

fn group_of(index: usize) -> GroupName {
    group(["default", "edge", "rack"][index % 3])
}

fn outcome_of(index: usize) -> LockOutcome {
    match index % 4 {
        0 => LockOutcome::Granted,
        1 => LockOutcome::Denied { lock_kind: "full".to_owned(), value: "full".to_owned() },
        2 => LockOutcome::Unreachable { detail: "refused".to_owned() },
        _ => LockOutcome::Protocol { detail: "teapot".to_owned() },
    }
}

fn result_of(index: usize) -> Outcome {
    match index % 4 {
        0 | 1 => Outcome::Done,
        2 => Outcome::RebootRequired,
        _ => Outcome::error("no space left"),
    }
}

/// A site, and how many runs have been asked for.
struct Play {
    site: Site,
    runs: usize,
}

impl Play {
    fn new() -> Self {
        let mut site = Site::ready(&HOSTS[..4]);
        site.view.hosts.insert(host("h3"), seen(Some("edge")));
        Self { site, runs: 0 }
    }

    fn input(&mut self, input: Input) {
        self.site.input(input);
    }

    fn play(&mut self, step: &Move) {
        match *step {
            Move::CarryOut { effect, outcome } => self.carry_out(effect, &outcome_of(outcome)),
            Move::Deliver => {
                for effect in self.site.effects() {
                    if let Effect::Send { id, .. } = effect {
                        self.site.command(id);
                    }
                }
            }
            Move::Answer { host, result, header } => self.answer(host, result, header),
            Move::Trigger { timeout_secs, validate } => {
                self.runs += 1;
                let (id, timeout) = (run(&format!("r{}", self.runs)), Duration::from_secs(timeout_secs));
                let actor = "admin".to_owned();
                self.input(Input::Request(Request::Trigger { run: id, timeout, actor, validate }));
            }
            Move::Cancel => self.input(Input::Request(Request::Cancel { actor: "admin".to_owned() })),
            Move::Wait { seconds } => {
                self.site.now += TimeDelta::seconds(seconds);
                self.input(Input::Tick);
            }
            Move::Skew { seconds } => {
                self.site.view.clock_skew = seconds.map(TimeDelta::seconds);
                self.input(Input::Tick);
            }
            Move::See { host, group, reachability, gone } => self.see(host, group, reachability, gone),
            Move::PutConfig { max_concurrent, max_failures, fail_unreachable, applications } => {
                let unreachable =
                    if fail_unreachable { UnreachablePolicy::Fail } else { UnreachablePolicy::Skip };
                let rollout = Rollout { max_concurrent, max_failures, unreachable };
                let mut config = Config { rollout, ..config() };
                if !applications {
                    config.worker_applications[0].name = application("nobodys");
                }
                let actor = "admin".to_owned();
                self.input(Input::Request(Request::PutConfig { config, actor, validate: false }));
            }
            Move::Settings { external, release, slots, groups } => {
                let provider = if external { LockProvider::External } else { LockProvider::Embedded };
                self.input(Input::Settings(Settings {
                    provider,
                    default_group: group("default"),
                    on_failure: if release { OnFailure::Release } else { OnFailure::Hold },
                    groups: (0..groups).map(|index| (group_of(index), slots[index])).collect(),
                }));
            }
            Move::Fence => {
                self.site.fence();
            }
            Move::Lie(lie) => self.lie(lie),
        }
    }

    fn lie(&mut self, lie: Lie) {
        match lie {
            Lie::FenceStored { sequence } => {
                self.input(Input::FenceStored { sequence, leader: "other".to_owned() });
            }
            Lie::Command { host, run: of, action, attempt, named } => {
                let runs = self.runs.max(1);
                let id = CommandId {
                    run: run(&format!("r{}", 1 + of % runs)),
                    host: name_of(named),
                    action: Action::ALL[action % 3],
                    attempt,
                };
                let host = if host % 4 == 0 { name_of(host / 4) } else { id.host.clone() };
                self.site.control(ControlMessage::Command { host, id: Some(id) });
            }
            Lie::Reply { host, action, result, in_reply_to, malformed } => {
                let reply = Reply { action: Action::ALL[action % 3], result: result_of(result) };
                let reply = if malformed { Err("not JSON".to_owned()) } else { Ok(reply) };
                self.site.control(ControlMessage::Reply { host: name_of(host), reply, in_reply_to });
            }
            Lie::OldControl { sequence } => {
                let message = ControlMessage::Unknown { subject: "x".to_owned() };
                self.input(Input::Control { sequence, message });
                self.site.last_sequence = self.site.last_sequence.max(sequence);
            }
            Lie::Gap { by } => self.site.last_sequence += by,
            Lie::Lock { host, outcome, unlock } => {
                let (host, outcome) = (name_of(host), outcome_of(outcome));
                self.input(if unlock {
                    Input::Unlocked { host, outcome }
                } else {
                    Input::Locked { host, outcome }
                });
            }
            Lie::Withdrawn { host, sequence, deleted } => {
                self.input(Input::Withdrawn { host: name_of(host), sequence, deleted });
            }
        }
    }

    fn carry_out(&mut self, effect: usize, outcome: &LockOutcome) {
        let effects = self.site.effects();
        if effects.is_empty() {
            return;
        }
        match effects[effect % effects.len()].clone() {
            Effect::Send { id, .. } => {
                self.site.command(id);
            }
            Effect::Lock { host, .. } => self.input(Input::Locked { host, outcome: outcome.clone() }),
            Effect::Unlock { host, .. } => self.input(Input::Unlocked { host, outcome: outcome.clone() }),
            Effect::NewFence { .. } => {
                self.site.fence();
            }
            Effect::Withdraw { host, sequence } => {
                self.input(Input::Withdrawn { host, sequence, deleted: *outcome == LockOutcome::Granted });
            }
        }
    }

    /// The worker of one of the hosts that have a command answers it.
    fn answer(&mut self, index: usize, result: usize, header: bool) {
        let of_run = self.site.state.run.iter().chain(&self.site.state.last_run).flat_map(Run::hosts);
        let sent: Vec<(HostName, Action, u64)> = of_run
            .filter_map(|(name, host)| {
                let command = host.command?;
                Some((name.clone(), command.action, command.sequence?))
            })
            .collect();
        if let Some((name, action, sequence)) = sent.get(index % sent.len().max(1)) {
            let in_reply_to = header.then_some(*sequence);
            self.site.reply(name.as_str(), *action, result_of(result), in_reply_to);
        }
    }

    fn see(&mut self, host: usize, group: usize, reachability: usize, gone: bool) {
        let name = self::host(HOSTS[host % 4]);
        if gone {
            self.site.view.hosts.remove(&name);
        } else {
            let reachabilities = [Reachability::Unknown, Reachability::Reachable, Reachability::Unreachable];
            let mut seen = seen(None);
            seen.group = (!group.is_multiple_of(4)).then(|| group_of(group));
            seen.reachability = reachabilities[reachability % 3];
            self.site.view.hosts.insert(name, seen);
        }
        self.input(Input::Tick);
    }

    /// Faults stop: everything is carried out as asked, every worker answers, and time goes on.
    fn heal(&mut self) {
        self.site.view.clock_skew = None;
        let claimed = self.site.state.fence.as_ref().map_or(0, |fence| fence.sequence);
        self.site.last_sequence = self.site.last_sequence.max(claimed);
        self.site.fence();
        for _ in 0..100 {
            self.play(&Move::Deliver);
            for index in 0..HOSTS.len() {
                self.answer(index, 0, true);
            }
            for index in 0..self.site.effects().len() {
                self.carry_out(index, &LockOutcome::Granted);
            }
            if self.site.state.run.is_none() && self.site.effects().is_empty() {
                return;
            }
        }
        let (state, effects) =
            (common::render::state(&self.site.state), common::render::effects(&self.site.effects()));
        panic!("no end: {state:#?}, to do: {effects}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is said to it, the kernel decides only what applies, and keeps its promises.
    #[test]
    fn nothing_said_makes_it_break_a_promise(moves in moves(80)) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Once faults stop, a run with slots to have comes to its end by work alone, without waiting for its deadline.
    #[test]
    fn what_has_begun_comes_to_an_end(moves in moves(40), external in any::<bool>()) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
        }
        play.play(&Move::Settings { external, release: false, slots: [9; 3], groups: 3 });
        play.heal();
    }
}
