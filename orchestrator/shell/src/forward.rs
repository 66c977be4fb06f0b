//! Requests that a follower forwards to the leader: their messages, and those under way.
//!
//! A request is forwarded once, to the process that held the lease when it was last checked. A forwarded request is not
//! forwarded again. So it is carried out at most once, and only by the leader. If the outcome is unknown, the caller is
//! told so.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use os_upgrade_kernel::{Answer, Request, format};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::json;
use serde::{Deserialize, Serialize};

use crate::clock::Now;
use crate::not_done::NotDone;

/// How long the leader's answer may take. The follower's caller waits longer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// The largest request that is forwarded, in bytes; the limit of the bus may be lower.
pub const REQUEST_BYTES_MAX: usize = 512 * 1_024;
/// The most requests under way at once, both those that a follower forwards and those that a leader receives.
pub const UNDER_WAY_MAX: usize = 256;
/// How long an answer may wait until this instance has read the journal up to its sequence.
const READ_WITHIN: Duration = Duration::from_millis(500);

/// Identifies a call within this process.
pub type CallId = u64;

/// The outcome of a call.
pub type Outcome = Result<Answered, NotDone>;

/// An answer, given after an append that began after the request had arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answered {
    pub answer: Answer,
    /// The journal sequence at which the answer holds.
    pub sequence: u64,
}

/// A request as a follower forwards it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forwarded {
    /// The lease revision at which the follower saw the leader. The leader counts its renewals since then and so
    /// detects, without comparing clocks, a request that was under way for too long, for example because a client
    /// library kept it while disconnected. Its caller was told that the outcome is unknown, and may have requested the
    /// opposite since.
    pub lease: u64,
    pub request: Request,
}

/// The failure of a request that was certainly not delivered.
pub fn not_forwarded(why: impl fmt::Display) -> NotDone {
    NotDone::unchanged(format!("the request was not passed on to the leader: {why}"))
}

/// Encodes a request for the bus.
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

/// Decodes a forwarded request. A follower of a newer version may ask for something that this one does not know: that is
/// refused and not left out.
pub fn decode(payload: &[u8]) -> Result<Forwarded, NotDone> {
    format::read(payload).map_err(|error| {
        NotDone::unchanged(format!("the leader cannot read the request: {}", with_causes(&error)))
    })
}

/// Encodes the outcome of a forwarded request for the bus.
pub fn encode_outcome(outcome: &Outcome) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&match outcome {
        Ok(answered) => Payload::Answered(answered.clone()),
        Err(not_done) => Payload::NotDone(not_done.clone()),
    })
}

/// Decodes the outcome that the leader returned.
pub fn decode_outcome(payload: &[u8]) -> Outcome {
    match json::object(payload) {
        Ok(Payload::Answered(answered)) => Ok(answered),
        Ok(Payload::NotDone(not_done)) => Err(not_done),
        Err(error) => Err(NotDone::unknown(format!("the leader's answer cannot be read ({error})"))),
    }
}

/// [`Outcome`] as a JSON object.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Payload {
    Answered(Answered),
    NotDone(NotDone),
}

/// The requests that this instance has forwarded.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    under_way: BTreeSet<CallId>,
    unread: Vec<Unread>,
}

/// An answer of the leader whose journal sequence this instance has not read yet. The caller must find the change here
/// too.
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

    /// Stops waiting. Returns the calls whose outcome is now unknown.
    pub(crate) fn abandon(&mut self) -> Vec<CallId> {
        let unread = std::mem::take(&mut self.unread).into_iter().map(|unread| unread.call);
        std::mem::take(&mut self.under_way).into_iter().chain(unread).collect()
    }

    pub(crate) fn begin(&mut self, call: CallId) {
        self.under_way.insert(call);
    }

    /// A forwarded request was answered. Returns the failure, if it is one.
    pub(crate) fn answered(&mut self, now: Now, call: CallId, outcome: Outcome) -> Option<NotDone> {
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

    /// Takes the answers that can be given: the journal has been read up to their sequence, or they have waited long
    /// enough. They are true in either case.
    pub(crate) fn take_visible(&mut self, now: Now, sequence: u64) -> Vec<(CallId, Answered)> {
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
    use os_upgrade_kernel::{Accepted, ClockDoubt, RunOperation, RunRefusal, StartBlocker};

    use super::*;

    #[test]
    fn outcomes_are_read_back() {
        let refusal = RunRefusal::NotStartable(StartBlocker::Clock(ClockDoubt::ClockSkew { seconds: 40 }));
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

    /// An older leader that left out what it does not know would do something else than was asked for.
    #[test]
    fn requests_of_newer_versions_are_refused() {
        let forwarded =
            Forwarded { lease: 7, request: Request::new("a", RunOperation::Cancel { reason: None }).into() };
        let request = String::from_utf8(encode(&forwarded).unwrap()).unwrap();
        let newer = request.replace(r#""validate""#, r#""only":["h1"],"validate""#);
        let why = "the leader cannot read the request: it has request/only, which this version does not know";
        assert_eq!(decode(newer.as_bytes()), Err(NotDone::unchanged(why)));
    }

    #[test]
    fn requests_are_bounded() {
        let request = |length| Request::new("a".repeat(length), RunOperation::Cancel { reason: None }).into();
        let forwarded = |length| Forwarded { lease: 7, request: request(length) };
        assert_eq!(decode(&encode(&forwarded(9)).unwrap()), Ok(forwarded(9)));
        assert!(matches!(encode(&forwarded(REQUEST_BYTES_MAX)), Err(NotDone::Unchanged { .. })));
    }

    #[test]
    fn forwarded_answers_wait_for_the_journal() {
        let at =
            |millis| Now { wall: chrono::DateTime::UNIX_EPOCH, monotonic: Duration::from_millis(millis) };
        let answered = || Answered { answer: Ok(Accepted::Done), sequence: 7 };
        let mut forwards = Forwards::default();
        forwards.begin(1);
        forwards.begin(2);
        assert_eq!(forwards.answered(at(0), 1, Ok(answered())), None);
        assert_eq!(forwards.answered(at(100), 2, Ok(answered())), None);
        assert_eq!(forwards.take_visible(at(100), 6), []);
        assert_eq!(forwards.take_visible(at(500), 6), [(1, answered())]);
        assert_eq!(forwards.take_visible(at(500), 7), [(2, answered())]);
        assert_eq!(forwards.answered(at(500), 2, Ok(answered())), None, "it has been answered");
    }
}
