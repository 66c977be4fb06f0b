//! Random sites driven by random inputs, likely and hostile ones, checked after every input by `common/check.rs`.

use crate::common::moves::{Move, busy, moves, short_runs};
use crate::common::play::{Play, World};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the input, the kernel decides only facts that apply, and keeps its promises.
    #[test]
    fn any_input_keeps_the_promises(moves in moves(80)) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Once faults stop, a run with available slots finishes its work, without waiting for its deadline.
    #[test]
    fn runs_finish_once_faults_stop(
        moves in moves(40), external in any::<bool>(), kubernetes in any::<Option<bool>>(),
        command in any::<Option<bool>>(),
    ) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
        }
        play.play(&Move::Settings { external, release: false, slots: [9; 3], groups: 3, approves: true, kubernetes, command });
        play.heal();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a bus that may store messages much later, and a lock server whose answers may be lost: a host that is
    /// commanded to start holds a slot at the provider until it is done, and no slot there is forgotten.
    #[test]
    fn state_matches_the_world(
        moves in prop::collection::vec(busy(), 60..160), external in any::<bool>(),
        kubernetes in any::<Option<bool>>(),
    ) {
        let mut play = Play::new();
        play.play(&Move::Settings { external, release: false, slots: [1; 3], groups: 3, approves: true, kubernetes, command: None });
        play.world = Some(World::default());
        for step in &moves {
            play.play(step);
            play.world.as_ref().unwrap().check(&play.site);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// However runs end, each slot goes to the host whose last turn lies most runs back.
    #[test]
    fn turns_are_kept(
        moves in any::<Option<bool>>().prop_flat_map(|kubernetes| prop::collection::vec(short_runs(kubernetes), 60..160)),
    ) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
            play.prepare();
        }
    }
}
