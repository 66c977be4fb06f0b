//! Brings the server into the state that a case needs, tries the case, and judges the answers.

use super::answer::Answer;
use super::case::{Before, Case, Expected, Operation, Sent, Step, What};
use super::contend::contend;
use super::outcome::{Filled, Outcome};
use super::report::{Level, Row, Verdict};
use super::session::Session;
use super::table::LOCK;

/// Tries cases in one session.
#[derive(Debug)]
pub(super) struct Runner<'a>(pub(super) Session<'a>);

impl Runner<'_> {
    /// Tries `case`.
    pub(super) async fn attempt(&self, case: &Case) -> Row {
        let Outcome { verdict, expected, got } = match self.skip_reason(case) {
            Some(why) => Outcome::skip(why),
            None => match self.prepare(case.before).await {
                Ok(filled) => self.outcome(case, filled).await,
                Err(unprepared) => unprepared,
            },
        };
        Row { verdict, case: case.name, expected, got }
    }

    /// Why `case` is skipped; `None` if it is tried.
    fn skip_reason(&self, case: &Case) -> Option<&'static str> {
        match case.what {
            What::Both(step) if self.expected(&step).is_none() => Some("the protocol leaves it open"),
            What::Both(Step { sent, .. })
                if !self.0.options.url.url().username().is_empty()
                    && sent.headers.iter().any(|(name, _)| *name == "authorization") =>
            {
                Some("the server is used with user and password")
            }
            What::Slots if self.0.options.slots.is_none() => Some("--slots was not given"),
            What::Steps(_) | What::Both(_) | What::Slots | What::Contend => None,
        }
    }

    const fn expected(&self, step: &Step) -> Option<Expected> {
        match self.0.options.level {
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
            (What::Contend, Some(filled)) => contend(&self.0, &filled).await,
            (What::Slots | What::Contend, _) => self.count().await,
        }
    }

    async fn steps(&self, steps: &[Step]) -> Outcome {
        let mut last = Outcome::skip("");
        for step in steps {
            let answer = self.0.ask(&step.sent).await;
            let Some(expected) = self.expected(step) else { continue };
            let verdict = if answer.is(expected, &self.0.names) { Verdict::Pass } else { Verdict::Fail };
            let operation = step.sent.operation;
            last = Outcome::new(verdict, format!("{operation}: {expected}"), answer.to_string());
            if verdict == Verdict::Fail {
                break;
            }
        }
        last
    }

    async fn count(&self) -> Outcome {
        let free = self.0.options.slots.unwrap_or_default();
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
                let answer = self.0.ask(&LOCK).await;
                answer.is_success().then_some(None).ok_or_else(|| no_slot(&answer))
            }
            Before::Full => self.fill().await.map(Some),
        }
    }

    /// Takes every slot of the group that is free.
    async fn fill(&self) -> Result<Filled, Outcome> {
        let max = self.0.options.slots.map_or(self.0.options.slots_max, |slots| slots.saturating_add(1));
        for count in 0..max {
            let refusal = self.0.lock(&self.0.filler(count + 1)).await;
            match (count, refusal.is_success()) {
                (_, true) => {}
                (0, false) => return Err(no_slot(&refusal)),
                (_, false) => return Ok(Filled { count, refusal }),
            }
        }
        Err(match self.0.options.slots {
            Some(slots) => Outcome::new(Verdict::Fail, format!("{slots} granted"), format!("{max} granted")),
            None => Outcome::skip(format!("{max} slots are free; see --slots and --slots-max")),
        })
    }
}

fn no_slot(answer: &Answer) -> Outcome {
    Outcome::skip(format!("the group has no free slot to try it with: {answer}"))
}
