//! How a case is tried, and how everything it took is given back.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::answer::Answer;
use super::case::{Before, Case, Expected, Operation, Sent, Step, What, Who};
use super::http::Server;
use super::names::Names;
use super::table::{LOCK, UNLOCK};
use super::{Error, Level, Options, Row, Verdict, body, contend};

/// How often giving back is tried at the end.
const GIVE_BACK_ATTEMPTS: usize = 5;
/// How long to wait between two attempts.
const GIVE_BACK_PAUSE: Duration = Duration::from_secs(1);

/// An examination under way.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    pub(super) options: &'a Options,
    pub(super) names: Names,
    server: Server,
    /// Bodies of unlocks that are still to be sent. Noted before a lock is sent, so that one that was cut off is too.
    owed: Mutex<BTreeSet<Vec<u8>>>,
}

/// A group whose slots are all held.
#[derive(Debug)]
pub(super) struct Filled {
    /// How many of them are held by ours.
    pub(super) count: usize,
    /// What the next one was answered.
    pub(super) refusal: Answer,
}

/// What came of a case.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) expected: String,
    pub(super) got: String,
}

impl Outcome {
    pub(super) fn new(verdict: Verdict, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { verdict, expected: expected.into(), got: got.into() }
    }

    fn skip(got: impl Into<String>) -> Self {
        Self::new(Verdict::Skip, "", got)
    }
}

impl<'a> Runner<'a> {
    pub(super) fn new(options: &'a Options) -> Result<Self, Error> {
        let (random, _) = Uuid::new_v4().as_u64_pair();
        let names = Names::new(&options.group, random);
        let server = Server::new(&options.url, options.tls.as_ref())?;
        Ok(Self { options, names, server, owed: Mutex::default() })
    }

    /// Whether there is anybody.
    pub(super) async fn reach(&self) -> Result<(), Error> {
        match self.ask(&UNLOCK).await {
            Answer::Http(_) => Ok(()),
            Answer::None(cause) => Err(Error::Unreachable { url: self.options.url.clone(), cause }),
        }
    }

    /// Tries `case`.
    pub(super) async fn attempt(&self, case: &Case) -> Row {
        let Outcome { verdict, expected, got } = match self.why_not(case) {
            Some(why) => Outcome::skip(why),
            None => match self.prepare(case.before).await {
                Ok(filled) => self.outcome(case, filled).await,
                Err(unprepared) => unprepared,
            },
        };
        Row { verdict, case: case.name, expected, got }
    }

    /// Why nothing can come of `case`, whatever is answered.
    fn why_not(&self, case: &Case) -> Option<&'static str> {
        match case.what {
            What::Both(step) if self.expected(&step).is_none() => Some("the protocol leaves it open"),
            What::Both(Step { sent, .. })
                if !self.options.url.url().username().is_empty()
                    && sent.headers.iter().any(|(name, _)| *name == "authorization") =>
            {
                Some("a user and password are asked for")
            }
            What::Slots if self.options.slots.is_none() => Some("--slots was not given"),
            What::Steps(_) | What::Both(_) | What::Slots | What::Contend => None,
        }
    }

    const fn expected(&self, step: &Step) -> Option<Expected> {
        match self.options.level {
            Level::Protocol => step.protocol,
            Level::Strict => Some(step.ours),
        }
    }

    async fn outcome(&self, case: &Case, filled: Option<Filled>) -> Outcome {
        match (case.what, filled) {
            (What::Steps(steps), _) => self.steps(steps).await,
            (What::Both(step), _) => {
                let unlock = Step { sent: Sent { operation: Operation::Unlock, ..step.sent }, ..step };
                self.steps(&[step, unlock]).await
            }
            (What::Contend, Some(filled)) => contend::contend(self, &filled).await,
            (What::Slots | What::Contend, _) => self.count().await,
        }
    }

    async fn steps(&self, steps: &[Step]) -> Outcome {
        let mut last = Outcome::skip("");
        for step in steps {
            let answer = self.ask(&step.sent).await;
            let Some(expected) = self.expected(step) else { continue };
            let verdict = if answer.is(expected, &self.names) { Verdict::Pass } else { Verdict::Fail };
            let operation = step.sent.operation;
            last = Outcome::new(verdict, format!("{operation}: {expected}"), answer.to_string());
            if verdict == Verdict::Fail {
                break;
            }
        }
        last
    }

    async fn count(&self) -> Outcome {
        let free = self.options.slots.unwrap_or_default();
        let expected = format!("{free} granted");
        match self.fill().await {
            Ok(Filled { count, .. }) if count == free => {
                Outcome::new(Verdict::Pass, expected.clone(), expected)
            }
            Ok(Filled { count, refusal }) => {
                Outcome::new(Verdict::Fail, expected, format!("{count} granted, then {refusal}"))
            }
            Err(unfilled) => unfilled,
        }
    }

    async fn prepare(&self, before: Before) -> Result<Option<Filled>, Outcome> {
        match before {
            Before::Free => Ok(None),
            Before::Held => {
                let answer = self.ask(&LOCK).await;
                answer.is_success().then_some(None).ok_or_else(|| no_slot(&answer))
            }
            Before::Full => self.fill().await.map(Some),
        }
    }

    /// Takes every slot of the group that is free.
    async fn fill(&self) -> Result<Filled, Outcome> {
        let most = self.options.slots.map_or(self.options.slots_max, |slots| slots + 1);
        for count in 0..most {
            let refusal = self.lock(&self.filler(count + 1)).await;
            match (count, refusal.is_success()) {
                (_, true) => {}
                (0, false) => return Err(no_slot(&refusal)),
                (_, false) => return Ok(Filled { count, refusal }),
            }
        }
        Err(match self.options.slots {
            Some(slots) => Outcome::new(Verdict::Fail, format!("{slots} granted"), format!("{most} granted")),
            None => Outcome::skip(format!("{most} slots are free; see --slots and --slots-max")),
        })
    }

    /// Who takes the slot of this number, from 1 on.
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

    async fn ask(&self, sent: &Sent) -> Answer {
        self.send(sent, body::bytes(sent, &self.names), body::releases(sent, &self.names)).await
    }

    /// Sends `body`, of which `releases` give back what may be granted.
    async fn send(&self, sent: &Sent, body: Vec<u8>, mut releases: Vec<Vec<u8>>) -> Answer {
        let locks = sent.operation == Operation::Lock;
        if locks {
            let mut owed = self.owed();
            releases.retain(|release| owed.insert(release.clone()));
        }
        let answer = self.server.ask(sent, body).await;
        let settled = if locks { is_turned_away(&answer) } else { answer.is_success() };
        if settled {
            self.owed().retain(|owed| !releases.contains(owed));
        }
        answer
    }

    fn owed(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what a case may have taken, as far as the server lets it. Somebody who was refused says so too: a
    /// server may remember who waits.
    pub(super) async fn release_all(&self) {
        let owed: Vec<_> = self.owed().iter().cloned().collect();
        for release in owed {
            let answer = self.server.ask(&UNLOCK, release.clone()).await;
            if is_given_back(&answer) {
                self.owed().remove(&release);
            }
        }
    }

    /// Gives back everything, for a bounded time; the ids of which that is not certain.
    pub(super) async fn give_back(&self) -> Vec<String> {
        for attempt in 0..GIVE_BACK_ATTEMPTS {
            self.release_all().await;
            if self.owed().is_empty() {
                break;
            }
            if attempt + 1 < GIVE_BACK_ATTEMPTS {
                tokio::time::sleep(GIVE_BACK_PAUSE).await;
            }
        }
        let ids: BTreeSet<_> = self.owed().iter().map(|body| id_of(body)).collect();
        ids.into_iter().collect()
    }
}

fn no_slot(answer: &Answer) -> Outcome {
    Outcome::skip(format!("the group has no free slot to try it with: {answer}"))
}

/// Whether a lock that was answered so has left nothing behind, neither a holder nor somebody who waits.
fn is_turned_away(answer: &Answer) -> bool {
    let waits = matches!(answer.status(), Some(408 | 409 | 423 | 425 | 429));
    answer.status().is_some_and(|status| (300..500).contains(&status)) && !waits
}

/// Whether an unlock that was answered so has left nothing behind: it was done, the server says that the slot is
/// another's, or that there can be no such request.
fn is_given_back(answer: &Answer) -> bool {
    answer.is_success()
        || matches!(answer.status(), Some(400 | 404 | 405 | 409 | 411 | 413 | 415 | 422 | 423))
}

fn id_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = &body["client_params"]["id"];
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
