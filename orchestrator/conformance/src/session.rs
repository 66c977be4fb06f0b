//! Sends requests to the server, and gives back everything that they took.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::answer::Answer;
use super::body;
use super::case::{Operation, Sent, Who};
use super::http::Server;
use super::names::Names;
use super::report::{Error, Options};
use super::table::{LOCK, UNLOCK};

/// How often giving back is tried at the end.
const GIVE_BACK_ATTEMPTS: usize = 5;
/// The pause between two attempts.
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);
/// How long the server may take to grant a slot after a request without a clear answer. Less than the time for which
/// giving back is tried.
const LATE_WITHIN: Duration = Duration::from_secs(2);
/// How often a request is sent while the server is busy.
const SENT_MAX: usize = 10;
/// The longest pause before it is sent again.
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(10);
/// The shortest pause before it is sent again.
const BUSY_PAUSE_MIN: Duration = Duration::from_millis(100);

/// An examination under way.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) names: Names,
    server: Server,
    /// Once it is cancelled, only unlocks are sent. A request under way is awaited, since its unlock would use another
    /// connection and might arrive first.
    stop: &'a CancellationToken,
    /// The bodies of unlocks that must still succeed. With a time, only an unlock sent after it counts. Entries are added
    /// before a lock is sent.
    owed: Mutex<BTreeMap<Vec<u8>, Option<Instant>>>,
}

/// The outcome of a request, which may have been sent more than once.
#[derive(Debug)]
struct Exchange {
    /// The last answer.
    answer: Answer,
    /// When the last request was sent.
    begun: Instant,
    /// Whether one of the requests may still be carried out.
    late: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(options: &'a Options, stop: &'a CancellationToken) -> Result<Self, Error> {
        let (random, _) = Uuid::new_v4().as_u64_pair();
        let names = Names::new(&options.group, random);
        let server = Server::new(&options.url, options.tls.as_ref())?;
        Ok(Self { options, names, server, stop, owed: Mutex::default() })
    }

    /// Checks that the server answers.
    pub(super) async fn reach(&self) -> Result<(), Error> {
        match self.server.ask(&UNLOCK, body::bytes(&UNLOCK, &self.names)).await {
            Answer::Http(_) => Ok(()),
            Answer::None(cause) => Err(Error::Unreachable { url: self.options.url.clone(), cause }),
        }
    }

    /// The id that takes the slot of this number, from 1 on.
    pub(super) fn filler(&self, number: usize) -> String {
        if number == 1 { self.names.who(Who::Holder) } else { self.names.filler(number) }
    }

    pub(super) async fn lock(&self, id: &str) -> Answer {
        let claim = body::claim(&self.names.group, id);
        self.send(&LOCK, claim.clone(), vec![claim]).await
    }

    pub(super) async fn unlock(&self, id: &str) -> Answer {
        let claim = body::claim(&self.names.group, id);
        self.send(&UNLOCK, claim.clone(), vec![claim]).await
    }

    pub(super) async fn ask(&self, sent: &Sent) -> Answer {
        self.send(sent, body::bytes(sent, &self.names), body::releases(sent, &self.names)).await
    }

    /// Sends `body`, unless stopped. `releases` are the bodies of unlocks that give back what may be granted for it.
    async fn send(&self, sent: &Sent, body: Vec<u8>, releases: Vec<Vec<u8>>) -> Answer {
        if self.stop.is_cancelled() {
            return Answer::None("interrupted".to_owned());
        }
        if sent.operation == Operation::Unlock {
            let Exchange { answer, begun, .. } = self.send_until_served(sent, &body).await;
            if answer.is_success() {
                self.settle(&releases, begun);
            }
            return answer;
        }
        let mut new = releases.clone();
        new.retain(|release| !self.owed().contains_key(release));
        self.owed().extend(new.iter().map(|release| (release.clone(), None)));
        let Exchange { answer, begun, late } = self.send_until_served(sent, &body).await;
        if late {
            let from = Instant::now() + LATE_WITHIN;
            self.owed().extend(releases.into_iter().map(|release| (release, Some(from))));
        } else if is_refused_without_trace(&answer) {
            self.settle(&new, begun);
        }
        answer
    }

    /// Sends `body`, and repeats that after a pause while the server is busy and sends Retry-After.
    async fn send_until_served(&self, sent: &Sent, body: &[u8]) -> Exchange {
        let mut late = false;
        let mut count = 1;
        loop {
            let begun = Instant::now();
            let answer = self.server.ask(sent, body.to_vec()).await;
            late |= may_be_granted_late(&answer);
            let Some(pause) = answer.pause().filter(|_| count < SENT_MAX) else {
                return Exchange { answer, begun, late };
            };
            tokio::select! {
                () = self.stop.cancelled(), if sent.operation == Operation::Lock => {
                    return Exchange { answer, begun, late };
                }
                () = sleep(pause.clamp(BUSY_PAUSE_MIN, BUSY_PAUSE_MAX)) => count += 1,
            }
        }
    }

    /// Removes `releases` from what is owed, as a request sent at `begun` left nothing for them to give back.
    fn settle(&self, releases: &[Vec<u8>], begun: Instant) {
        let counts = |from: &Option<Instant>| from.is_none_or(|from| from <= begun);
        self.owed().retain(|release, from| !releases.contains(release) || !counts(from));
    }

    fn owed(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Option<Instant>>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what a case may have taken, with one attempt each. Refused ids are unlocked too, since a server may
    /// remember them as waiters.
    pub(super) async fn release_all(&self) {
        let owed: Vec<_> = self.owed().keys().cloned().collect();
        for release in owed {
            let Exchange { answer, begun, .. } = self.send_until_served(&UNLOCK, &release).await;
            if is_given_back(&answer) {
                self.settle(&[release], begun);
            }
        }
    }

    /// Gives back everything, for a bounded time. Returns the ids that may still hold a slot.
    pub(super) async fn give_back(&self) -> Vec<String> {
        for attempt in 0..GIVE_BACK_ATTEMPTS {
            self.release_all().await;
            if self.owed().is_empty() {
                break;
            }
            if attempt + 1 < GIVE_BACK_ATTEMPTS {
                sleep(GIVE_BACK_PAUSE).await;
            }
        }
        let ids: BTreeSet<_> = self.owed().keys().map(|body| id_of(body)).collect();
        ids.into_iter().collect()
    }
}

/// Whether a lock with this answer left nothing behind: neither a holder nor a waiter.
fn is_refused_without_trace(answer: &Answer) -> bool {
    let waits = matches!(answer.status(), Some(408 | 409 | 423 | 425 | 429));
    answer.status().is_some_and(|status| (300..500).contains(&status)) && !waits
}

/// Whether a lock with this answer may still be granted later.
const fn may_be_granted_late(answer: &Answer) -> bool {
    matches!(answer.status(), None | Some(502..=504))
}

/// Whether an unlock with this answer left nothing behind: it succeeded, the slot is another's, or the request is invalid.
fn is_given_back(answer: &Answer) -> bool {
    answer.is_success()
        || matches!(answer.status(), Some(400 | 404 | 405 | 409 | 411 | 413 | 415 | 422 | 423))
}

fn id_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = &body["client_params"]["id"];
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
