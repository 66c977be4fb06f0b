//! Random sites driven by random inputs, likely and hostile ones, checked after every input by `common/check.rs`.

use crate::common::moves::{Move, busy, moves};
use crate::common::play::{Play, World};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

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
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Once faults stop, a run with slots to have comes to its end by work alone, without waiting for its deadline.
    #[test]
    fn what_has_begun_comes_to_an_end(moves in moves(40), external in any::<bool>()) {
        let mut play = Play::new();
        for step in &moves {
            play.play(step);
        }
        play.play(&Move::Settings { external, release: false, slots: [9; 3], groups: 3, approves: true });
        play.heal();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a bus that may store what it was given much later, and a lock server whose answers may be lost: whoever is
    /// told to start holds a slot where it counts until it is done, and no slot is forgotten there.
    #[test]
    fn what_is_believed_is_true(moves in prop::collection::vec(busy(), 60..160), external in any::<bool>()) {
        let mut play = Play::new();
        play.play(&Move::Settings { external, release: false, slots: [1; 3], groups: 3, approves: true });
        play.world = Some(World::default());
        for step in &moves {
            play.play(step);
            play.world.as_ref().unwrap().check(&play.site);
        }
    }
}
