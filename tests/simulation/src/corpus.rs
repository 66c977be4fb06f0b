//! Seeds that once found a fault.
//!
//! Any change in what is drawn changes the world of a seed, so these need not find their fault again; each records
//! what it found, and when. Planted bugs do prove that faults are found, see [`Bug::seed`](crate::Bug::seed). Add a
//! seed that fails in `make test` or `make sim` here, together with the fix.

/// A seed, and what it found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The date on which it found the fault.
    pub when: &'static str,
    /// The fault.
    pub what: &'static str,
}

/// Every recorded seed.
pub const CORPUS: &[Found] = &[
    Found {
        seed: 1_561,
        when: "2026-11-21",
        what: "after a clock was set back, a cancel let the run of a later occurrence start twice under one id",
    },
    Found {
        seed: 25_362,
        when: "2026-11-21",
        what: "a run took a host for unreachable that had answered its reboot a second before",
    },
    Found {
        seed: 4_812,
        when: "2026-11-21",
        what: "the checker did not expect an append from a process that had been paused for 151 s",
    },
    Found {
        seed: 1_795_407_632_538,
        when: "2026-11-23",
        what: "the world tried to release the slot of a host at work, in a run of hours, and waited for that without end",
    },
    Found {
        seed: 1_010_886,
        when: "2026-11-23",
        what: "the checker judged a record that was appended once more by the clock of that moment",
    },
    Found {
        seed: 1_000_245,
        when: "2026-11-23",
        what: "an instance that took over did not notice a purge since its last inspection, and trimmed its traces away",
    },
    Found {
        seed: 20_003_471,
        when: "2026-11-24",
        what: "the checker called a copy none that had taken the lease once it had expired",
    },
    Found {
        seed: 20_012_457,
        when: "2026-11-24",
        what: "a leader trimmed the journal to a snapshot after a purge, before the next inspection could find it",
    },
    Found {
        seed: 20_070_096,
        when: "2026-11-24",
        what: "a leader that had been cut off trimmed the journal by what it had known of the others' stores before",
    },
    Found {
        seed: 20_075_666,
        when: "2026-11-24",
        what: "the checker wanted a purge to be found after which a snapshot came first",
    },
    Found {
        seed: 70_004_319,
        when: "2026-11-24",
        what: "the checker expected a worker to know an upgrade from more answers ago than it keeps, after a rollback; so did 70061024",
    },
    Found {
        seed: 80_000_042,
        when: "2026-11-24",
        what: "a run was recorded as missed in a window as long as `minimum-remaining`, in which none could start",
    },
    Found {
        seed: 80_000_819,
        when: "2026-11-24",
        what: "a new leader recorded missed runs by a clock that was days ahead, before hosts could contradict it",
    },
    Found {
        seed: 80_000_173,
        when: "2026-11-24",
        what: "the checker did not know that a leadership by a clock that is behind may look back to the time of that clock",
    },
    Found {
        seed: 92_004_556,
        when: "2026-11-25",
        what: "the checker took a run for wrong in a window that a clock, minutes ahead until then, had recorded as missed",
    },
    Found {
        seed: 70_006_770,
        when: "2026-11-25",
        what: "the checker awaited records of missed runs while a host, withdrawn with a wrong clock, disputed the leader's",
    },
    Found {
        seed: 70_061_024,
        when: "2026-11-25",
        what: "the checker took an answer for kept that a worker had forgotten, after a rollback, for one that it gave anew",
    },
    Found {
        seed: 1_795_634_253_933,
        when: "2026-11-25",
        what: "a new leader with changed settings recorded missed runs by a clock that was minutes ahead, before hosts could contradict it",
    },
    Found {
        seed: 98_000_762,
        when: "2026-11-25",
        what: "missed runs were recorded twice as soon as hosts were heard, after a leadership by a clock a day behind; so they were by 98003926",
    },
    Found {
        seed: 210_014_010,
        when: "2026-11-25",
        what: "the checker took a host that was down, the only one that took part, for a witness of a wrong clock",
    },
    Found {
        seed: 210_020_881,
        when: "2026-11-25",
        what: "a host was sent a run's prepare while its reboot on request was unanswered, and its worker, which began anew with the last command, never got the reboot",
    },
    Found {
        seed: 210_022_461,
        when: "2026-11-25",
        what: "the same, after an acknowledgement that had not arrived",
    },
    Found {
        seed: 2_806,
        when: "2026-11-26",
        what: "the leader panicked when a boot check, of a host that the operator's command had rebooted, did not answer",
    },
    Found {
        seed: 1_301_153,
        when: "2026-11-26",
        what: "the checker did not know that a boot that is announced late may be taken for the one by the operator's command",
    },
    Found {
        seed: 310_000_818,
        when: "2026-11-26",
        what: "the checker took the cancelled second entry of a host for the first one, whose node was being drained",
    },
    Found {
        seed: 310_002_792,
        when: "2026-11-26",
        what: "the checker did not know that an instance whose lease had lapsed, and ended its command, may renew it",
    },
    Found {
        seed: 310_020_043,
        when: "2026-11-26",
        what: "the checker did not know that a leader may need another fence between an attempt that began and its command",
    },
    Found {
        seed: 334_000_466,
        when: "2026-11-26",
        what: "a boot that was over in the second in which a reboot by command was due counted as the one that was waited for",
    },
    Found {
        seed: 334_016_558,
        when: "2026-11-26",
        what: "after a leadership by a clock that was days behind, missed runs were recorded twice",
    },
    Found {
        seed: 1_795_699_957_689,
        when: "2026-11-26",
        what: "an entry whose host was neither in its old boot nor in one that the boot check counts was said to go on by itself",
    },
    Found {
        seed: 1_500_006_476,
        when: "2026-11-28",
        what: "a host whose slot its lock server had freed was asked for in every run, and kept back the one that really held a slot",
    },
    Found {
        seed: 1_600_006_550,
        when: "2026-11-28",
        what: "the checker took a late prepare, dropped before that was saved, for one acknowledged before its reply",
    },
    Found {
        seed: 3_000_459,
        when: "2026-11-29",
        what: "with `max-preparing`, a host that hung in `prepare` was prepared first in each run, and the others never",
    },
    Found {
        seed: 5_004_397,
        when: "2026-11-29",
        what: "a host that held a slot and hung took the only place to be prepared of its group in each run",
    },
    Found {
        seed: 2_478,
        when: "2026-11-30",
        what: "a host with a newer manifest than its site counted as ahead no more once something changed for another host, and refused what it was told",
    },
    Found {
        seed: 420,
        when: "2026-11-30",
        what: "after a restoration that had lost everything, a withdrawn host kept what it had, since the site knew of nothing to take from it",
    },
];

/// How many of them were found before there was a reboot queue.
const BEFORE_THE_QUEUE: usize = 19;

/// How many of them were found before there was a Kubernetes cluster.
const BEFORE_THE_CLUSTER: usize = 22;

/// How many of them were found before an operator's command could reboot hosts.
const BEFORE_THE_COMMAND: usize = 22;

/// How many of them were found before the site could lose its power.
const BEFORE_THE_OUTAGE: usize = 30;

/// How many of them were found before operators steered runs.
const BEFORE_STEERING: usize = 32;

/// How many of them were found before providers said what hosts are to have.
const BEFORE_DELIVERY: usize = 34;

/// How many of them were found before hosts were removed at the end, and workers lost the state of their configurations.
const BEFORE_FORGETTING: usize = 36;

/// How many of them were found before providers were told of events and called back.
const BEFORE_HOOKS: usize = 36;

/// How many of them were found before hosts ran units.
const BEFORE_UNITS: usize = 36;

/// Whether `seed` was found before hosts ran units. In its world none does, so that it stays what it was.
pub(crate) fn is_older_than_units(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_UNITS).any(|found| found.seed == seed)
}

/// Whether `seed` was found before providers were told of events and called back. In its world all are asked for files, so that it stays
/// what it was.
pub(crate) fn is_older_than_hooks(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_HOOKS).any(|found| found.seed == seed)
}

/// Whether `seed` was found before hosts were removed at the end, and workers lost the state of their configurations. In its world neither
/// happens, so that it stays what it was.
pub(crate) fn is_older_than_forgetting(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_FORGETTING).any(|found| found.seed == seed)
}

/// Whether `seed` was found before providers said what hosts are to have. Its world has none, so that it stays what it was.
pub(crate) fn is_older_than_delivery(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_DELIVERY).any(|found| found.seed == seed)
}

/// Whether `seed` was found before an operator's command could reboot hosts. Its world has none, so that it stays what it was.
pub(crate) fn is_older_than_the_command(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_THE_COMMAND).any(|found| found.seed == seed)
}

/// Whether `seed` was found before operators steered runs. Its world is not steered, so that it stays what it was.
pub(crate) fn is_older_than_steering(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_STEERING).any(|found| found.seed == seed)
}

/// Whether `seed` was found before the site could lose its power. Its world does not, so that it stays what it was.
pub(crate) fn is_older_than_the_outage(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_THE_OUTAGE).any(|found| found.seed == seed)
}

/// Whether `seed` was found before there was a Kubernetes cluster. Its world has none, so that it stays what it was.
pub(crate) fn is_older_than_the_cluster(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_THE_CLUSTER).any(|found| found.seed == seed)
}

/// Whether `seed` was found before there was a reboot queue. Its world has none, so that it stays what it was.
pub(crate) fn is_older_than_the_queue(seed: u64) -> bool {
    CORPUS.iter().take(BEFORE_THE_QUEUE).any(|found| found.seed == seed)
}
