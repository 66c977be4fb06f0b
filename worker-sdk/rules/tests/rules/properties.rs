//! Random histories: whatever fails, crashes or is rolled back in whatever order, the worker keeps its promises (`world.rs`
//! checks them at each action), and once nothing fails any more every command is settled.

use os_upgrade_protocol::Action;
use proptest::prelude::*;

use crate::world::{Execution, World};

#[derive(Debug, Clone)]
enum Op {
    Send(Action, Option<i64>, Option<u8>),
    Deliver,
    Act(Execution),
    ActOn(u8),
    Finish { well: bool, reboot_required: bool },
    Pass(i64),
    Crash,
    Boot,
    RollBack(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let action = prop_oneof![Just(Action::Prepare), Just(Action::Upgrade), Just(Action::Reboot)];
    let seconds = prop_oneof![2 => Just(None), 2 => Just(Some(1000)), 1 => (-2..30i64).prop_map(Some)];
    let run = prop_oneof![Just(None), Just(Some(1)), Just(Some(2))];
    let execution = prop_oneof![6 => Just(Execution::Succeeds), 1 => Just(Execution::Fails), 1 => Just(Execution::AnswerLost)];
    prop_oneof![
        2 => (action, seconds, run).prop_map(|(action, seconds, run)| Op::Send(action, seconds, run)),
        3 => Just(Op::Deliver),
        6 => execution.prop_map(Op::Act),
        6 => (2..8u8).prop_map(Op::ActOn),
        4 => (prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(well, reboot_required)| Op::Finish { well, reboot_required }),
        2 => prop_oneof![0..3i64, 20..70i64].prop_map(Op::Pass),
        1 => Just(Op::Crash),
        1 => Just(Op::Boot),
        1 => any::<u8>().prop_map(Op::RollBack),
    ]
}

/// A whole run with random operations in between, because few purely random histories get that far; or a command and two
/// rollbacks soon after each other; or random operations only.
fn history() -> impl Strategy<Value = Vec<Op>> {
    let noise = || prop::collection::vec(op(), 0..6);
    let step = |action| {
        let begin = vec![Op::Send(action, Some(1000), Some(1)), Op::Deliver, Op::ActOn(6)];
        let finish = Op::Finish { well: true, reboot_required: true };
        (Just(begin), noise(), Just(vec![finish, Op::ActOn(8)]), noise())
            .prop_map(|(begin, one, end, two)| [begin, one, end, two].concat())
    };
    let run = (noise(), step(Action::Prepare), step(Action::Upgrade), step(Action::Reboot), noise())
        .prop_map(|(a, b, c, d, e)| [a, b, c, d, e].concat());
    let begin = vec![Op::Send(Action::Upgrade, None, Some(1)), Op::Deliver];
    let some = || prop::collection::vec(op(), 0..40);
    let rolled_back =
        (Just(begin), some(), any::<u8>(), noise(), 0..16u8, noise()).prop_map(|(a, b, one, c, two, d)| {
            [a, b, vec![Op::RollBack(one)], c, vec![Op::RollBack(two)], d].concat()
        });
    prop_oneof![run, rolled_back, prop::collection::vec(op(), 0..120)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn promises_hold_despite_crashes(history in history()) {
        let mut world = World::new();
        for op in history {
            match op {
                Op::Send(action, seconds, run) => world.send(action, seconds, run),
                Op::Deliver => world.deliver(),
                Op::Act(execution) => world.act(execution),
                Op::ActOn(times) => (0..times).for_each(|_| world.act(Execution::Succeeds)),
                Op::Finish { well, reboot_required } => world.finish(well, reboot_required),
                Op::Pass(seconds) => world.pass(seconds),
                Op::Crash => world.crash(),
                Op::Boot => world.boot(),
                Op::RollBack(moment) => world.roll_back(moment),
            }
        }
        world.heal();
    }
}

/// The stream is rolled back twice, and the worker restarts in between: the acknowledgement of a lost command must not count for
/// the one that has come to its sequence, which would then not be delivered again.
#[test]
fn acknowledgements_of_an_earlier_process_are_not_sent() {
    let mut world = World::new();
    let act = |world: &mut World, times: usize| (0..times).for_each(|_| world.act(Execution::Succeeds));
    act(&mut world, 2);
    world.send(Action::Upgrade, None, Some(1));
    world.deliver();
    act(&mut world, 2);
    world.roll_back(0);
    world.send(Action::Prepare, None, None);
    world.crash();
    act(&mut world, 1);
    world.deliver();
    act(&mut world, 7);
    world.finish(false, false);
    act(&mut world, 5);
    world.roll_back(28);
    world.heal();
}

/// The same without a restart: an acknowledgement of before the rollback goes to the command that has come to its sequence.
#[test]
fn acknowledgements_of_an_earlier_connection_are_not_sent() {
    let mut world = World::new();
    let act = |world: &mut World, times: usize| (0..times).for_each(|_| world.act(Execution::Succeeds));
    world.send(Action::Upgrade, None, Some(1));
    world.deliver();
    act(&mut world, 3);
    world.roll_back(0);
    act(&mut world, 1);
    world.send(Action::Reboot, None, None);
    act(&mut world, 4);
    world.deliver();
    act(&mut world, 7);
    world.finish(true, false);
    act(&mut world, 6);
    world.roll_back(0);
    world.act(Execution::AnswerLost);
    world.roll_back(4);
    world.heal();
}
