//! Random events of a site.

use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::{Retries, Rollout, UnreachablePolicy};
use proptest::prelude::*;

/// Host names; the last is in no view, so never in a run.
pub(crate) const HOSTS: [&str; 5] = ["h1", "h2", "h3", "h4", "stranger"];

/// External FleetLock clients, one with the name of a host.
pub(crate) const CLIENTS: [&str; 3] = ["h1", "node-7", "node-8"];

/// How a run proceeds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawnRollout {
    max_concurrent: u32,
    max_failures: u32,
    fail_unreachable: bool,
    boot_timeout_secs: u64,
    /// How many hosts are prepared at once, and how often again; absent: all are, once.
    rolling: Option<u32>,
}

impl From<DrawnRollout> for Rollout {
    fn from(drawn: DrawnRollout) -> Self {
        let boot_timeout = Duration::from_secs(drawn.boot_timeout_secs);
        let short = (drawn.boot_timeout_secs < 1_800).then_some(boot_timeout);
        let backoff = Duration::from_secs(30);
        let retries = drawn.rolling.map(|prepare| Retries { prepare, backoff, max_backoff: backoff });
        let unreachable =
            if drawn.fail_unreachable { UnreachablePolicy::Fail } else { UnreachablePolicy::Skip };
        Self {
            max_concurrent: drawn.max_concurrent,
            max_failures: drawn.max_failures.into(),
            unreachable,
            max_preparing: drawn.rolling,
            retries,
            prepare_timeout: short,
            upgrade_timeout: short,
            boot_timeout,
            expected_duration: None,
            provider_wait: None,
        }
    }
}

/// Something that happens. Indices are taken modulo the number of choices at that moment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    /// One of the effects is carried out, with this outcome.
    CarryOut {
        effect: usize,
        outcome: usize,
    },
    /// All unsent commands appear in the control stream.
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
    /// Whether workers have had time to answer, so that a missing reply means something.
    Hear {
        heard: bool,
    },
    PutConfig {
        rollout: DrawnRollout,
        applications: bool,
    },
    Settings {
        external: bool,
        release: bool,
        slots: [u32; 3],
        groups: usize,
        /// Whether hosts are approved automatically.
        approves: bool,
        /// Whether hosts are nodes of a Kubernetes cluster, and whether those of hosts that failed are uncordoned.
        kubernetes: Option<bool>,
        /// Whether a command reboots hosts, and whether another one says that they have booted.
        command: Option<bool>,
    },
    Fence,
    /// An external FleetLock client locks or unlocks.
    Client {
        id: usize,
        group: usize,
        unlock: bool,
    },
    /// An operator holds a slot, releases it, or reclaims it from a holder that has left.
    Operator {
        id: usize,
        group: usize,
        choice: usize,
    },
    /// An operator approves a host, withdraws it, or gives it up.
    Enrol {
        host: usize,
        choice: usize,
    },
    /// An operator changes the reboot queue.
    Reboot {
        host: usize,
        choice: usize,
    },
    Lie(Lie),
}

/// Messages that no correct bus or lock server would send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    FenceStored { sequence: u64 },
    Command { host: usize, run: usize, action: usize, attempt: u32, named: usize },
    Reply { host: usize, action: usize, result: usize, in_reply_to: Option<u64>, malformed: bool },
    OldControl { sequence: u64 },
    Gap { by: u64 },
    Lock { host: usize, outcome: usize, unlock: bool },
    Retracted { host: usize, sequence: u64, deleted: bool },
}

pub(crate) fn index() -> impl Strategy<Value = usize> {
    0..60_usize
}

pub(crate) fn honest() -> impl Strategy<Value = Move> {
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
        1 => (0..4_u32, 0..3_u32, any::<bool>(), prop::bool::weighted(0.9), prop::sample::select(vec![1, 60, 1_800]),
            prop::option::of(1..4_u32))
            .prop_map(|(max_concurrent, max_failures, fail_unreachable, applications, boot_timeout_secs, rolling)| {
                let rollout = DrawnRollout { max_concurrent, max_failures, fail_unreachable, boot_timeout_secs, rolling };
                Move::PutConfig { rollout, applications }
            }),
        1 => any::<bool>().prop_map(|heard| Move::Hear { heard }),
        2 => (any::<bool>(), any::<bool>(), prop::array::uniform3(0..3_u32), 1..4_usize, any::<bool>(),
            prop::option::weighted(0.7, any::<bool>()), prop::option::weighted(0.4, any::<bool>()))
            .prop_map(|(external, release, slots, groups, approves, kubernetes, command)| {
                Move::Settings { external, release, slots, groups, approves, kubernetes, command }
            }),
        1 => Just(Move::Fence),
        3 => client(),
        1 => operator(),
        2 => enrol(),
        2 => reboot(),
    ]
}

fn reboot() -> impl Strategy<Value = Move> {
    (index(), index()).prop_map(|(host, choice)| Move::Reboot { host, choice })
}

fn enrol() -> impl Strategy<Value = Move> {
    (index(), index()).prop_map(|(host, choice)| Move::Enrol { host, choice })
}

fn operator() -> impl Strategy<Value = Move> {
    (index(), index(), index()).prop_map(|(id, group, choice)| Move::Operator { id, group, choice })
}

fn client() -> impl Strategy<Value = Move> {
    (index(), index(), any::<bool>()).prop_map(|(id, group, unlock)| Move::Client { id, group, unlock })
}

/// Events of a site that is busy with runs, most of which end before or at their `not-after`.
pub(crate) fn busy() -> impl Strategy<Value = Move> {
    prop_oneof![
        24 => (index(), index()).prop_map(|(effect, outcome)| Move::CarryOut { effect, outcome }),
        3 => Just(Move::Deliver),
        20 => (index(), prop_oneof![8 => Just(0_usize), 1 => index()], any::<bool>())
            .prop_map(|(host, result, header)| Move::Answer { host, result, header }),
        6 => (20..200_u64).prop_map(|timeout_secs| Move::Trigger { timeout_secs, validate: false }),
        4 => (0..120_i64).prop_map(|seconds| Move::Wait { seconds }),
        1 => Just(Move::Cancel),
        1 => (any::<bool>(), prop::array::uniform3(1..3_u32), any::<Option<bool>>(), any::<Option<bool>>())
            .prop_map(|(external, slots, kubernetes, command)| {
                Move::Settings { external, release: false, slots, groups: 3, approves: true, kubernetes, command }
            }),
        2 => client(),
        1 => operator(),
        1 => enrol(),
        2 => reboot(),
    ]
}

/// Events of a site with the embedded semaphore whose runs end early, so that few of their hosts have their turn.
pub(crate) fn short_runs(kubernetes: Option<bool>) -> impl Strategy<Value = Move> {
    let settings = move |(release, slots)| Move::Settings {
        external: false,
        release,
        slots,
        groups: 3,
        approves: true,
        kubernetes,
        command: None,
    };
    let rollout = |(max_concurrent, max_failures)| {
        let (fail_unreachable, boot_timeout_secs, rolling) = (false, 1_800, None);
        let rollout =
            DrawnRollout { max_concurrent, max_failures, fail_unreachable, boot_timeout_secs, rolling };
        Move::PutConfig { rollout, applications: true }
    };
    prop_oneof![
        8 => (200..2_000_u64).prop_map(|timeout_secs| Move::Trigger { timeout_secs, validate: false }),
        12 => (index(), prop_oneof![3 => Just(0_usize), 1 => Just(3)])
            .prop_map(|(host, result)| Move::Answer { host, result, header: true }),
        3 => Just(Move::Cancel),
        8 => (index(), index()).prop_map(|(effect, outcome)| Move::CarryOut { effect, outcome }),
        3 => (0..400_i64).prop_map(|seconds| Move::Wait { seconds }),
        3 => (any::<bool>(), prop::array::uniform3(1..3_u32)).prop_map(settings),
        2 => (1..3_u32, 0..3_u32).prop_map(rollout),
        1 => client(),
        2 => operator(),
        2 => reboot(),
    ]
}

pub(crate) fn hostile() -> impl Strategy<Value = Lie> {
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
        (index(), 0..60_u64, any::<bool>()).prop_map(|(host, sequence, deleted)| Lie::Retracted {
            host,
            sequence,
            deleted
        }),
    ]
}

pub(crate) fn moves(length: usize) -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(prop_oneof![6 => honest(), 1 => hostile().prop_map(Move::Lie)], length / 2..length)
}
