//! Many ids lock at once when one slot is free: no more than one may be granted, and every answer must be correct.

use futures::future::join_all;

use super::answer::Answer;
use super::case::Expected;
use super::outcome::{Filled, Outcome};
use super::report::{Level, Verdict};
use super::session::Session;

/// The number of ids that lock at once.
const CONTENDERS: usize = 8;
/// The number of times they do.
const ROUNDS: usize = 8;

/// Tries the case on a group whose slots are all held.
pub(super) async fn contend(session: &Session<'_>, filled: &Filled) -> Outcome {
    let expected = match session.options.level {
        Level::Protocol => format!("at most 1 of {CONTENDERS} granted, no failure"),
        Level::Strict => format!("1 of {CONTENDERS} granted, the others refused as full"),
    };
    let outcome = |verdict, got: String| Outcome::new(verdict, expected.clone(), got);
    let freed = session.unlock(&session.filler(filled.count)).await;
    if !freed.is_success() {
        return outcome(Verdict::Fail, format!("cannot free a slot: {freed}"));
    }
    let ids: Vec<String> = (1..=CONTENDERS).map(|number| session.names.contender(number)).collect();
    for round in 1..=ROUNDS {
        let locked = join_all(ids.iter().map(|id| session.lock(id))).await;
        // All ids unlock, even those that hold no slot, as clients do when they start.
        let unlocked = join_all(ids.iter().map(|id| session.unlock(id))).await;
        let granted = locked.iter().filter(|answer| answer.is_success()).count();
        if granted > 1 {
            let got = format!("round {round}: {granted} granted");
            // Another client may have given back a slot meanwhile; then as many are granted one after the other too.
            let more = count_free(session, granted).await >= granted;
            return if more {
                outcome(Verdict::Skip, format!("{got}, but other clients gave back slots meanwhile"))
            } else {
                outcome(Verdict::Fail, got)
            };
        }
        if granted == 0 && session.options.level == Level::Strict {
            return outcome(Verdict::Fail, format!("round {round}: none granted"));
        }
        if let Some(answer) = locked.iter().find(|answer| !is_correct(session, filled, answer)) {
            return outcome(Verdict::Fail, format!("round {round}, pre-reboot: {answer}"));
        }
        if let Some(answer) = unlocked.iter().find(|answer| !answer.is(Expected::Granted, &session.names)) {
            return outcome(Verdict::Fail, format!("round {round}, steady-state: {answer}"));
        }
    }
    outcome(Verdict::Pass, format!("as expected in {ROUNDS} rounds"))
}

/// Whether `answer` grants, or refuses as the server does without contention.
fn is_correct(session: &Session<'_>, filled: &Filled, answer: &Answer) -> bool {
    let refused = match session.options.level {
        Level::Protocol => answer.status() == filled.refusal.status(),
        Level::Strict => answer.is(Expected::Full, &session.names),
    };
    refused || answer.is(Expected::Granted, &session.names)
}

/// How many slots are free, up to `max`. It takes them.
async fn count_free(session: &Session<'_>, max: usize) -> usize {
    for number in 1..=max {
        if !session.lock(&session.names.contender(number)).await.is_success() {
            return number - 1;
        }
    }
    max
}
