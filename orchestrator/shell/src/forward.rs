//! Requests that a follower passes on to the leader: what goes over the bus, and what is under way.
//!
//! A request is passed on once, to the very process that held the lease when it was last looked at, and never by one
//! that was itself passed a request; so it is carried out at most once, and only by whoever leads. When its outcome
//! is not known, the asker is told so.

use std::collections::BTreeSet;
use std::time::Duration;

use os_upgrade_kernel::{Answer, Request};
use os_upgrade_protocol::json;
use serde::{Deserialize, Serialize};

use crate::clock::Now;
use crate::node::CallId;

/// How long the leader's answer may take. Less than a follower's asker waits.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Largest request that is passed on, in bytes; the bus may take less.
pub const REQUEST_BYTES_MAX: usize = 512 * 1_024;
/// Requests that a follower has passed on at once, and that a leader has been passed at once.
pub const UNDER_WAY_MAX: usize = 256;
/// How long an answer may be held back until this instance has read what it is about.
const READ_WITHIN: Duration = Duration::from_millis(500);

/// What the leader says to a request that it was passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Told {
    /// This, after an append that began after the request had arrived.
    Answered {
        /// What it says.
        answer: Answer,
        /// A sequence of the journal at which it is so.
        sequence: u64,
    },
    /// It has no answer.
    Unavailable {
        /// Why, and whether the change may still come to be.
        reason: String,
    },
}

/// What came of passing a request on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The leader said this.
    Told(Told),
    /// It was certainly not delivered.
    NotDelivered {
        /// Why not.
        why: String,
    },
    /// Nobody knows.
    Unknown {
        /// What went wrong.
        why: String,
    },
}

impl Outcome {
    /// The outcome that a payload from the leader means.
    pub fn read(payload: &[u8]) -> Self {
        match json::object(payload) {
            Ok(told) => Self::Told(told),
            Err(error) => Self::Unknown { why: format!("the leader's answer cannot be read ({error})") },
        }
    }
}

/// A request as a follower passes it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Passed {
    /// The revision of the lease at which the follower saw who leads. A leader counts its own renewals from there and
    /// so knows, whatever the clocks show, a request that has been under way for too long: one that a client library
    /// has kept while it was disconnected, say. Its asker has been told long ago that the outcome is not known, and
    /// may have asked for the contrary since.
    pub lease: u64,
    /// What is asked.
    pub request: Request,
}

/// A request as it goes over the bus.
pub fn encode(passed: &Passed) -> Result<Vec<u8>, String> {
    let payload = serde_json::to_vec(passed).map_err(|error| error.to_string())?;
    if payload.len() > REQUEST_BYTES_MAX {
        return Err(format!("the request has {} bytes; {REQUEST_BYTES_MAX} can be passed on", payload.len()));
    }
    Ok(payload)
}

/// Reads a request that was passed on; why not, for whoever asked.
pub fn decode(payload: &[u8]) -> Result<Passed, String> {
    json::object(payload)
        .map_err(|error| format!("the leader cannot read the request, nothing was changed: {error}"))
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
    answer: Answer,
    sequence: u64,
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

    /// The leader, or the bus, has been heard; what to answer now, if anything.
    pub(crate) fn heard(
        &mut self,
        now: Now,
        call: CallId,
        outcome: Outcome,
    ) -> Option<Result<Answer, String>> {
        if !self.under_way.remove(&call) {
            return None;
        }
        match outcome {
            Outcome::Told(Told::Answered { answer, sequence }) => {
                let until = now.monotonic + READ_WITHIN;
                self.unread.push(Unread { call, answer, sequence, until });
                None
            }
            Outcome::Told(Told::Unavailable { reason }) => Some(Err(reason)),
            Outcome::NotDelivered { why } => {
                Some(Err(format!("the request was not passed on to the leader, nothing was changed: {why}")))
            }
            Outcome::Unknown { why } => {
                Some(Err(format!("{why}: the change may still come to be, look at the state")))
            }
        }
    }

    /// The answers that can be given now that the journal has been read up to `sequence`, or that have waited long
    /// enough for it: they are true whether they show here or not.
    pub(crate) fn shown(&mut self, now: Now, sequence: u64) -> Vec<(CallId, Answer)> {
        if self.unread.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.unread);
        let ready = |unread: &Unread| unread.sequence <= sequence || unread.until <= now.monotonic;
        let (ready, unread) = all.into_iter().partition(ready);
        self.unread = unread;
        ready.into_iter().map(|unread: Unread| (unread.call, unread.answer)).collect()
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{Accepted, Refusal};

    use super::*;

    #[test]
    fn what_is_told_is_read_back() {
        let answers = [Ok(Accepted::Done), Ok(Accepted::Created), Err(Refusal::ClockSkew { seconds: 40 })];
        let answered = answers.map(|answer| Told::Answered { answer, sequence: 7 });
        for told in answered.into_iter().chain([Told::Unavailable { reason: "no".to_owned() }]) {
            assert_eq!(Outcome::read(&serde_json::to_vec(&told).unwrap()), Outcome::Told(told));
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_answer() {
        for payload in
            ["", "{}", r#"["cancel","a"]"#, r#"{"type":"answered","answer":{"Ok":"perhaps"},"sequence":1}"#]
        {
            assert!(matches!(Outcome::read(payload.as_bytes()), Outcome::Unknown { .. }), "{payload}");
            let why = decode(payload.as_bytes()).unwrap_err();
            assert!(why.contains("nothing was changed"), "{why}");
        }
    }

    #[test]
    fn requests_are_bounded() {
        let passed = |length| Passed { lease: 7, request: Request::Cancel { actor: "a".repeat(length) } };
        assert_eq!(decode(&encode(&passed(9)).unwrap()), Ok(passed(9)));
        assert!(encode(&passed(REQUEST_BYTES_MAX)).unwrap_err().contains("can be passed on"));
    }

    #[test]
    fn an_answer_waits_until_it_shows_and_no_longer_than_it_may() {
        let at =
            |millis| Now { wall: chrono::DateTime::UNIX_EPOCH, monotonic: Duration::from_millis(millis) };
        let told = || Outcome::Told(Told::Answered { answer: Ok(Accepted::Done), sequence: 7 });
        let mut forwards = Forwards::default();
        forwards.begin(1);
        forwards.begin(2);
        assert_eq!(forwards.heard(at(0), 1, told()), None);
        assert_eq!(forwards.heard(at(100), 2, told()), None);
        assert_eq!(forwards.shown(at(100), 6), []);
        assert_eq!(forwards.shown(at(500), 6), [(1, Ok(Accepted::Done))]);
        assert_eq!(forwards.shown(at(500), 7), [(2, Ok(Accepted::Done))]);
        assert_eq!(forwards.heard(at(500), 2, told()), None, "it has been answered");
    }
}
