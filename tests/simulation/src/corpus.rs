//! Seeds that have found something.
//!
//! What a seed plays changes whenever something more is drawn, so each says when it found what it did; it need not find
//! that again. Planted bugs are the memory that is checked, see [`Bug::seed`](crate::Bug::seed). A seed that fails in
//! `make test` or `make sim` comes here with its mend.

/// A seed, and what it found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// When it found that, as a date.
    pub when: &'static str,
    /// What was wrong then.
    pub what: &'static str,
}

/// Every seed that is known to have found something.
pub const CORPUS: [Found; 4] = [
    Found {
        seed: 1_561,
        when: "2026-11-21",
        what: "a cancel after a clock had gone back let the run of a later occurrence start twice under one id",
    },
    Found {
        seed: 25_362,
        when: "2026-11-21",
        what: "a run took a host for unreachable that had answered its reboot a second before",
    },
    Found {
        seed: 4_812,
        when: "2026-11-21",
        what: "the checker did not expect an append that left a process after it had stood still for 151 s",
    },
    Found {
        seed: 1_795_407_632_538,
        when: "2026-11-23",
        what: "the world had a slot released while its host was at work, in a run of hours, and waited for it in vain",
    },
];
