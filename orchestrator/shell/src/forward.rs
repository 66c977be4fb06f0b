//! Requests that a follower passes on to the leader: what goes over the bus, and what is under way.
//!
//! A request is passed on once, to the very process that held the lease when it was last looked at, and never by one
//! that was itself passed a request; so it is carried out at most once, and only by whoever leads. When its outcome
//! is not known, the asker is told so.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use os_upgrade_kernel::{Answer, Request};
use os_upgrade_protocol::json;
use serde::{Deserialize, Serialize};

use crate::clock::Now;
use crate::not_done::NotDone;

/// How long the leader's answer may take. Less than a follower's asker waits.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Largest request that is passed on, in bytes; the bus may take less.
pub const REQUEST_BYTES_MAX: usize = 512 * 1_024;
/// Requests that a follower has passed on at once, and that a leader has been passed at once.
pub const UNDER_WAY_MAX: usize = 256;
/// How long an answer may be held back until this instance has read what it is about.
const READ_WITHIN: Duration = Duration::from_millis(500);

/// What tells a call from the others.
pub type CallId = u64;

/// What came of a call.
pub type Outcome = Result<Answered, NotDone>;

/// An answer, given after an append that began after the request had arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answered {
    /// What it says.
    pub answer: Answer,
    /// A sequence of the journal at which it is so.
    pub sequence: u64,
}

/// A request as a follower passes it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forwarded {
    /// The revision of the lease at which the follower saw who leads. A leader counts its own renewals from there and
    /// so knows, whatever the clocks show, a request that has been under way for too long: one that a client library
    /// has kept while it was disconnected, say. Its asker has been told long ago that the outcome is not known, and
    /// may have asked for the contrary since.
    pub lease: u64,
    /// What is asked.
    pub request: Request,
}

/// The request was certainly not delivered.
pub fn not_forwarded(why: impl fmt::Display) -> NotDone {
    NotDone::unchanged(format!("the request was not passed on to the leader: {why}"))
}

/// A request as it goes over the bus.
pub fn encode(forwarded: &Forwarded) -> Result<Vec<u8>, NotDone> {
    let payload = serde_json::to_vec(forwarded).map_err(not_forwarded)?;
    if payload.len() > REQUEST_BYTES_MAX {
        let bytes = payload.len();
        return Err(not_forwarded(format_args!(
            "the request has {bytes} bytes; {REQUEST_BYTES_MAX} can be passed on"
        )));
    }
    Ok(payload)
}

/// Reads a request that was passed on.
pub fn decode(payload: &[u8]) -> Result<Forwarded, NotDone> {
    json::object(payload)
        .map_err(|error| NotDone::unchanged(format!("the leader cannot read the request: {error}")))
}

/// What came of a request that was passed on, as it goes back over the bus.
pub fn encode_outcome(outcome: &Outcome) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&match outcome {
        Ok(answered) => Payload::Answered(answered.clone()),
        Err(not_done) => Payload::NotDone(not_done.clone()),
    })
}

/// Reads the leader's answer.
pub fn decode_outcome(payload: &[u8]) -> Outcome {
    match json::object(payload) {
        Ok(Payload::Answered(answered)) => Ok(answered),
        Ok(Payload::NotDone(not_done)) => Err(not_done),
        Err(error) => Err(NotDone::unknown(format!("the leader's answer cannot be read ({error})"))),
    }
}

/// [`Outcome`] as an object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Payload {
    Answered(Answered),
    NotDone(NotDone),
}

/// The requests that this instance has passed on.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    under_way: BTreeSet<CallId>,
    unread: Vec<Unread>,
}

/// An answer of the leader's that this instance does not show yet: who has been told that something is so must find
/// it here too.
#[derive(Debug)]
struct Unread {
    call: CallId,
    answered: Answered,
    until: Duration,
}

impl Forwards {
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() + self.unread.len() >= UNDER_WAY_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.unread.is_empty()
    }

    /// Waits for none of them any more; those whose outcome is not known.
    pub(crate) fn give_up(&mut self) -> Vec<CallId> {
        let unread = std::mem::take(&mut self.unread).into_iter().map(|unread| unread.call);
        std::mem::take(&mut self.under_way).into_iter().chain(unread).collect()
    }

    pub(crate) fn begin(&mut self, call: CallId) {
        self.under_way.insert(call);
    }

    /// The leader, or the bus, has been heard; what to say now, if there will be no answer.
    pub(crate) fn heard(&mut self, now: Now, call: CallId, outcome: Outcome) -> Option<NotDone> {
        if !self.under_way.remove(&call) {
            return None;
        }
        let answered = match outcome {
            Ok(answered) => answered,
            Err(not_done) => return Some(not_done),
        };
        self.unread.push(Unread { call, answered, until: now.monotonic + READ_WITHIN });
        None
    }

    /// The answers that can be given now that the journal has been read up to `sequence`, or that have waited long
    /// enough for it: they are true whether they show here or not.
    pub(crate) fn shown(&mut self, now: Now, sequence: u64) -> Vec<(CallId, Answered)> {
        if self.unread.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.unread);
        let ready = |unread: &Unread| unread.answered.sequence <= sequence || unread.until <= now.monotonic;
        let (ready, unread) = all.into_iter().partition(ready);
        self.unread = unread;
        ready.into_iter().map(|unread: Unread| (unread.call, unread.answered)).collect()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{Accepted, RunOperation, RunRefusal, StartBlocker};

    use super::*;

    #[test]
    fn outcomes_are_read_back() {
        let refusal = RunRefusal::NotStartable(StartBlocker::ClockSkew { seconds: 40 });
        let answers = [Ok(Accepted::Done), Ok(Accepted::Created), Err(refusal.into())];
        let answered = answers.map(|answer| Ok(Answered { answer, sequence: 7 }));
        let not_done = [NotDone::unchanged("a"), NotDone::unknown("b")].map(Err);
        for outcome in answered.into_iter().chain(not_done) {
            assert_eq!(decode_outcome(&encode_outcome(&outcome).unwrap()), outcome);
        }
    }

    #[test]
    fn unreadable_payloads() {
        for payload in
            ["", "{}", r#"["cancel","a"]"#, r#"{"answered":{"answer":{"Ok":"perhaps"},"sequence":1}}"#]
        {
            let outcome = decode_outcome(payload.as_bytes());
            assert!(matches!(outcome, Err(NotDone::Unknown { .. })), "{payload}");
            assert!(matches!(decode(payload.as_bytes()), Err(NotDone::Unchanged { .. })), "{payload}");
        }
    }

    #[test]
    fn requests_are_bounded() {
        let request = |length| Request::new("a".repeat(length), RunOperation::Cancel).into();
        let forwarded = |length| Forwarded { lease: 7, request: request(length) };
        assert_eq!(decode(&encode(&forwarded(9)).unwrap()), Ok(forwarded(9)));
        assert!(matches!(encode(&forwarded(REQUEST_BYTES_MAX)), Err(NotDone::Unchanged { .. })));
    }

    #[test]
    fn an_answer_waits_until_it_shows_and_no_longer_than_it_may() {
        let at =
            |millis| Now { wall: chrono::DateTime::UNIX_EPOCH, monotonic: Duration::from_millis(millis) };
        let answered = || Answered { answer: Ok(Accepted::Done), sequence: 7 };
        let mut forwards = Forwards::default();
        forwards.begin(1);
        forwards.begin(2);
        assert_eq!(forwards.heard(at(0), 1, Ok(answered())), None);
        assert_eq!(forwards.heard(at(100), 2, Ok(answered())), None);
        assert_eq!(forwards.shown(at(100), 6), []);
        assert_eq!(forwards.shown(at(500), 6), [(1, answered())]);
        assert_eq!(forwards.shown(at(500), 7), [(2, answered())]);
        assert_eq!(forwards.heard(at(500), 2, Ok(answered())), None, "it has been answered");
    }
}
