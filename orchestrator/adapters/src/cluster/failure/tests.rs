//! What each failure means for a job.

use super::*;
use crate::kubernetes::rights::EVICT_POD;

const DETAIL: &str = "why";

fn outcome(error: Error) -> (NodeOutcome, Option<RetryAfter>) {
    Failure::from(error).into_outcome()
}

#[test]
fn lack_of_an_answer_is_unreachable() {
    let detail = || DETAIL.to_owned();
    for error in [
        Error::Unreachable { detail: detail() },
        Error::NoCredentials { detail: detail() },
        Error::ServerFailed { status: 503, detail: detail() },
        Error::Throttled { retry_after: None },
    ] {
        let expected = NoAnswer::Failed { detail: error.to_string() };
        assert_eq!(outcome(error), (NodeOutcome::Unreachable { why: expected }, None));
    }
    let late = Error::TimedOut { limit: Duration::from_secs(1) };
    assert_eq!(outcome(late), (NodeOutcome::Unreachable { why: NoAnswer::TimedOut }, None));
}

#[test]
fn throttling_asks_for_a_bounded_pause() {
    for (asked, expected) in [(Duration::from_secs(7), Duration::from_secs(7)), (Duration::MAX, PAUSE_MAX)] {
        let (_, pause) = outcome(Error::Throttled { retry_after: Some(asked) });
        assert_eq!(pause, Some(RetryAfter::Server(expected)));
    }
}

/// Without a client, certainly nothing was sent.
#[test]
fn client_that_cannot_be_made_sends_nothing() {
    let error = BuildError::NotInCluster { variable: "V" };
    let (outcome, _) = Failure::from(error).into_outcome();
    let NodeOutcome::Unreachable { why: NoAnswer::NotSent { detail } } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(detail.contains('V'), "{detail}");
}

#[test]
fn refusals_are_bounded_and_name_the_right() {
    let detail = || "x".repeat(100_000);
    for error in [
        Error::Unauthorized,
        Error::Forbidden { right: EVICT_POD, detail: detail() },
        Error::NotFound { right: GET_NODE, detail: detail() },
        Error::NotFound { right: LIST_PODS, detail: detail() },
        Error::Conflict { detail: detail() },
        Error::Inapplicable { detail: detail() },
        Error::Refused { status: 418, detail: detail() },
        Error::Malformed { detail: detail() },
        Error::AnswerTooLarge { bytes_max: 1 },
        Error::ListTooLarge { right: LIST_PODS, what: detail(), mebibytes_max: 64, objects_max: 1 },
    ] {
        let is_missing_right = error.is_missing_right();
        let (outcome, pause) = outcome(error);
        let NodeOutcome::Refused { detail } = outcome else { panic!("{outcome:?}") };
        assert!(detail.len() < 10_000 && pause.is_none());
        assert_eq!(detail.contains(EVICT_POD.resource), is_missing_right, "{detail}");
    }
}

#[test]
fn list_that_is_too_large_says_what_to_do() {
    let (outcome, _) = outcome(Error::ListTooLarge {
        right: LIST_PODS,
        what: "pods of the node n".to_owned(),
        mebibytes_max: 64,
        objects_max: 20_000,
    });
    let detail = "the list of the pods of the node n has more than 64 MiB or 20000 objects: delete finished pods, and \
                  shorten the annotations and environments of others";
    assert_eq!(outcome, NodeOutcome::Refused { detail: detail.to_owned() });
}

#[test]
fn only_a_node_can_be_gone() {
    let not_found = |right| Failure::from(Error::NotFound { right, detail: String::new() });
    assert!(not_found(GET_NODE).is_node_gone() && not_found(PATCH_NODE).is_node_gone());
    assert!(!not_found(LIST_PODS).is_node_gone());
    assert!(!Failure::from(Error::Refused { status: 404, detail: String::new() }).is_node_gone());
}
