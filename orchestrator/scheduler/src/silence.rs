//! What it means that agents are silent: whether their machines are lost, or something keeps the leader from hearing many of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::MachineId;

/// A machine whose last heartbeat is older has missed one. Agents send one every five seconds.
const HEARD_WITHIN: Duration = Duration::from_secs(10);
/// How long an agent may be silent, unless its host is being upgraded.
pub const GRACE: Duration = Duration::from_secs(30);
/// Machines that fell silent within this time of each other may have done so for the same reason.
const TOGETHER_WITHIN: Duration = Duration::from_mins(5);

/// How long a machine's agent has been silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// The time for which this leader was connected since the agent's last heartbeat.
    pub silent_for: Duration,
    /// How long the agent may be silent: [`GRACE`], or longer while its host is being upgraded.
    pub grace: Duration,
}

/// What a machine's silence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It is not silent.
    Heard,
    /// It has missed heartbeats, for less than its grace.
    Quiet,
    /// It has been silent for its grace, alone or with few others: what was on it goes elsewhere.
    Lost,
    /// It has been silent for its grace, and so have more than half of those that could be reached when it fell silent, which says more
    /// about the network than about them. Nothing moves.
    Mass {
        /// How many fell silent together, it among them.
        silent: usize,
        /// How many could be reached then.
        reachable: usize,
    },
}

impl Reach {
    fn is_past_grace(self) -> bool {
        self.silent_for >= self.grace
    }

    /// Whether it has fallen silent, and not because its host is being upgraded. Those that fall silent together are noticed one after the
    /// other, so the first one must not be judged before the others count.
    fn is_silent(self) -> bool {
        if self.grace > GRACE { self.is_past_grace() } else { self.has_missed() }
    }

    fn has_missed(self) -> bool {
        self.silent_for > HEARD_WITHIN
    }

    /// Whether it is known if it could be reached. Of a host that is being upgraded and has missed heartbeats it is not: it may be rebooting, or cut
    /// off like others.
    fn is_known(self) -> bool {
        self.is_silent() || !self.has_missed()
    }
}

/// Judges all machines of a site at once.
///
/// A machine past its grace is lost unless more than half of those that could be reached when it fell silent did so within five minutes
/// of it. Machines that were silent long before were dead by then, and do not count; those that fell silent later could be reached. Those that
/// miss heartbeats while their host is being upgraded count on neither side.
pub fn judge(reaches: &BTreeMap<MachineId, Reach>) -> BTreeMap<MachineId, Silence> {
    let sorted = |counts: fn(&Reach) -> bool| {
        let mut silences: Vec<Duration> =
            reaches.values().filter(|reach| counts(reach)).map(|reach| reach.silent_for).collect();
        silences.sort_unstable();
        silences
    };
    let (known, silent) = (sorted(|reach| reach.is_known()), sorted(|reach| reach.is_silent()));
    let judge_one = |reach: &Reach| {
        if !reach.is_past_grace() {
            return if reach.has_missed() { Silence::Quiet } else { Silence::Heard };
        }
        let first = reach.silent_for.saturating_sub(TOGETHER_WITHIN);
        let last = reach.silent_for.saturating_add(TOGETHER_WITHIN);
        let until = |silences: &[Duration]| silences.partition_point(|silence| *silence <= last);
        let together = until(&silent) - silent.partition_point(|silence| *silence < first);
        let reachable = until(&known);
        if 2 * together > reachable { Silence::Mass { silent: together, reachable } } else { Silence::Lost }
    };
    reaches.iter().map(|(machine, reach)| (*machine, judge_one(reach))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine(number: usize) -> MachineId {
        MachineId::new(&format!("{number:032x}")).unwrap()
    }

    fn reach(silent_for: u64, grace: u64) -> Reach {
        Reach { silent_for: Duration::from_secs(silent_for), grace: Duration::from_secs(grace) }
    }

    fn judged(reaches: impl IntoIterator<Item = Reach>) -> Vec<Silence> {
        let reaches = reaches.into_iter().enumerate();
        judge(&reaches.map(|(number, reach)| (machine(number + 1), reach)).collect()).into_values().collect()
    }

    /// What machines are that have been silent for so many seconds.
    fn after(silences: &[u64]) -> Vec<Silence> {
        judged(silences.iter().map(|&silent_for| reach(silent_for, 30)))
    }

    #[test]
    fn few_are_lost_and_many_are_a_mass() {
        use Silence::{Heard, Lost, Quiet};
        let mass = |silent, reachable| Silence::Mass { silent, reachable };
        let table: [(&str, &[u64], &[Silence]); 17] = [
            ("no machine", &[], &[]),
            ("all there", &[0, 5, 10], &[Heard, Heard, Heard]),
            ("missed heartbeats", &[11, 29], &[Quiet, Quiet]),
            ("the only one", &[30], &[mass(1, 1)]),
            ("one of two", &[0, 30], &[Heard, Lost]),
            ("both of two", &[30, 31], &[mass(2, 2), mass(2, 2)]),
            ("one of three", &[0, 0, 30], &[Heard, Heard, Lost]),
            ("two of three", &[0, 30, 35], &[Heard, mass(2, 3), mass(2, 3)]),
            ("two of four", &[0, 0, 30, 35], &[Heard, Heard, Lost, Lost]),
            ("the others are about to be", &[29, 29, 30, 30], &[Quiet, Quiet, mass(4, 4), mass(4, 4)]),
            ("one after the other", &[0, 30, 390], &[Heard, Lost, Lost]),
            ("five minutes apart", &[0, 30, 330], &[Heard, mass(2, 3), mass(2, 3)]),
            ("just over five minutes apart", &[0, 30, 331], &[Heard, Lost, Lost]),
            ("later ones could be reached", &[0, 30, 9000, 9000], &[Heard, Lost, Lost, Lost]),
            ("the old dead shield nobody", &[0, 30, 30, 9000], &[Heard, mass(2, 3), mass(2, 3), Lost]),
            ("the last one", &[30, 9000], &[mass(1, 1), Lost]),
            ("a slow chain", &[0, 0, 30, 270, 510], &[Heard, Heard, Lost, mass(3, 5), Lost]),
        ];
        for (case, silences, expected) in table {
            assert_eq!(after(silences), expected, "{case}");
        }
    }

    #[test]
    fn each_machine_has_its_own_grace() {
        let upgrading = reach(600, 1200);
        assert_eq!(
            judged([upgrading, reach(600, 30), reach(0, 30)]),
            [Silence::Quiet, Silence::Lost, Silence::Heard]
        );
        // It counts neither as silent nor as reachable while it misses heartbeats.
        let mass = |silent, reachable| Silence::Mass { silent, reachable };
        let two = [reach(30, 30), reach(0, 30)];
        for (upgrading, expected) in [
            (reach(10, 1200), [Silence::Heard, Silence::Lost, Silence::Heard]),
            (reach(11, 1200), [Silence::Quiet, Silence::Lost, Silence::Heard]),
            (reach(1200, 1200), [Silence::Lost, Silence::Lost, Silence::Heard]),
        ] {
            assert_eq!(judged([upgrading, two[0], two[1]]), expected, "{upgrading:?}");
        }
        assert_eq!(judged([reach(11, 1200), reach(30, 30)]), [Silence::Quiet, mass(1, 1)]);
        assert_eq!(judged([reach(10, 1200), reach(30, 30)]), [Silence::Heard, Silence::Lost]);
        let longest = reach(u64::MAX, 30);
        assert_eq!(judged([longest, reach(0, 30)]), [Silence::Lost, Silence::Heard]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The definition, word for word, on each machine alone.
        #[test]
        fn judging_all_at_once_is_judging_each(
            all in prop::collection::vec((0_u64..1200, prop_oneof![Just(30_u64), Just(900)]), 0..12)
        ) {
            let reaches: Vec<Reach> = all.iter().map(|&(silent, grace)| reach(silent, grace)).collect();
            let is_past = |(silent, grace): &(u64, u64)| silent >= grace;
            for (one, silence) in all.iter().zip(judged(reaches)) {
                let is_silent = |it: &(u64, u64)| if it.1 > 30 { is_past(it) } else { it.0 > 10 };
                let group = all.iter().filter(|it| is_silent(it) && it.0.abs_diff(one.0) <= 300).count();
                let is_known = |it: &(u64, u64)| is_silent(it) || it.0 <= 10;
                let reachable = all.iter().filter(|it| is_known(it) && it.0 <= one.0 + 300).count();
                let expected = match (is_past(one), 2 * group > reachable) {
                    (false, _) if one.0 <= 10 => Silence::Heard,
                    (false, _) => Silence::Quiet,
                    (true, false) => Silence::Lost,
                    (true, true) => Silence::Mass { silent: group, reachable },
                };
                prop_assert_eq!(silence, expected);
            }
        }

        #[test]
        fn a_silence_of_more_than_half_moves_nothing(
            silent in prop::collection::vec(30_u64..=330, 1..20),
            others in 0_usize..20,
        ) {
            let mut silences = vec![0; others];
            silences.extend(&silent);
            let lost = after(&silences).contains(&Silence::Lost);
            prop_assert_eq!(lost, silent.len() <= others);
        }
    }
}
