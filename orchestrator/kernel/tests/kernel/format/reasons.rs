//! Operators' reasons for starts and cancels.

use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::{Fact, State, StopCause, Trigger};

use super::words::{check_values, check_words};
use crate::common::{run, start};

/// The cause of a run that `eve` cancelled.
pub(super) fn cancelled(reason: Option<&str>) -> StopCause {
    StopCause::Cancelled { actor: "eve".to_owned(), reason: reason.map(ToOwned::to_owned) }
}

fn started(reason: Option<&str>) -> Fact {
    Fact::Run(RunFact::Started {
        run: run("r1"),
        trigger: Trigger::Operator {
            actor: "admin".to_owned(),
            reason: reason.map(ToOwned::to_owned),
            targeted: false,
        },
        not_after: start(),
        rollout: Rollout::default(),
        hosts: Vec::new(),
    })
}

fn stopping(reason: Option<&str>) -> Fact {
    Fact::Run(RunFact::Stopping { run: run("r1"), cause: cancelled(reason) })
}

#[test]
fn operators_reasons() {
    let cause = (cancelled(Some("a storm")), r#"{"kind":"cancelled","actor":"eve","reason":"a storm"}"#);
    check_values(&[cause]);
    let whole = serde_json::to_string(&started(Some("a CVE"))).unwrap();
    let trigger = r#""trigger":{"kind":"operator","actor":"admin","reason":"a CVE"}"#;
    assert!(whole.contains(trigger), "{whole}");
    check_values(&[(started(Some("a CVE")), whole.as_str())]);
    let stopped =
        r#"{"type":"run-stopping","run":"r1","cause":{"kind":"cancelled","actor":"eve","reason":"a storm"}}"#;
    check_values(&[(stopping(Some("a storm")), stopped)]);

    let mut state = State::default();
    for fact in [started(Some("a CVE")), stopping(Some("a storm"))] {
        state.apply(start(), &fact).unwrap();
    }
    check_words("State", &serde_json::to_value(&state).unwrap());
}
