//! Operators' reasons for starts and cancels, which format 4 added.

use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::format::Stored as _;
use os_upgrade_kernel::run::Turns;
use os_upgrade_kernel::{Fact, State, StopCause, Trigger};

use super::words::{check_formats, check_words};
use crate::common::{run, start};

/// The cause of a run that `eve` cancelled.
pub(super) fn cancelled(reason: Option<&str>) -> StopCause {
    StopCause::Cancelled { actor: "eve".to_owned(), reason: reason.map(ToOwned::to_owned) }
}

fn started(reason: Option<&str>) -> Fact {
    Fact::RunStarted {
        run: run("r1"),
        trigger: Trigger::Operator { actor: "admin".to_owned(), reason: reason.map(ToOwned::to_owned) },
        not_after: start(),
        rollout: Rollout::default(),
        hosts: Vec::new(),
    }
}

fn stopping(reason: Option<&str>) -> Fact {
    Fact::RunStopping { run: run("r1"), cause: cancelled(reason) }
}

#[test]
fn reasons_need_format_4() {
    let cause = (cancelled(Some("a storm")), r#"{"kind":"cancelled","actor":"eve","reason":"a storm"}"#);
    check_formats(&[cause], |_| 4);
    let whole = serde_json::to_string(&started(Some("a CVE"))).unwrap();
    let trigger = r#""trigger":{"kind":"operator","actor":"admin","reason":"a CVE"}"#;
    assert!(whole.contains(trigger), "{whole}");
    check_formats(&[(started(Some("a CVE")), whole.as_str())], Fact::format);
    let stopped =
        r#"{"type":"run-stopping","run":"r1","cause":{"kind":"cancelled","actor":"eve","reason":"a storm"}}"#;
    check_formats(&[(stopping(Some("a storm")), stopped)], Fact::format);
    let formats = [started(None), started(Some("a CVE")), stopping(None), stopping(Some("a storm"))];
    assert_eq!(formats.map(|fact| fact.format()), [2, 4, 2, 4]);

    // So does a state with a run that has one.
    let state_after = |facts: &[Fact]| {
        let mut state = State::default();
        for fact in facts {
            state.apply(start(), fact).unwrap();
        }
        // Runs are counted since format 9.
        state.turns = Turns::default();
        state.run.as_mut().unwrap().number = 0;
        check_words("State", &serde_json::to_value(&state).unwrap(), state.format());
        state.format()
    };
    assert_eq!(state_after(&[started(None), stopping(None)]), 2);
    assert_eq!(state_after(&[started(Some("a CVE"))]), 4);
    assert_eq!(state_after(&[started(None), stopping(Some("a storm"))]), 4);
}
