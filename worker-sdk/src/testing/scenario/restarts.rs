//! Restarts of the worker and the deletion of its consumer: nothing may be forgotten, done twice, or skipped.

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use os_upgrade_protocol::{Action, subject};

use super::{NO_RESTART, NOT_PREPARED, Scenario, Step, WATCHED, replies_to};
use crate::testing::error::{CheckError, nats};
use crate::testing::report::{Row, Rule, Verdict};
use crate::testing::wire::Seen;

/// Whether there is no such consumer.
fn is_gone(error: &ConsumerError) -> bool {
    matches!(error.kind(), ConsumerErrorKind::JetStream(why) if why.error_code() == ErrorCode::CONSUMER_NOT_FOUND)
}

impl<F: FnMut(&Row) + Send> Scenario<F> {
    pub(super) async fn restarts(&mut self) -> Result<(), CheckError> {
        let Some(mut restart) = self.restart.take() else {
            for rule in [Rule::RestartRemembers, Rule::UpgradeCut] {
                self.skip(rule, NO_RESTART);
            }
            return Ok(());
        };
        self.controller.restarting = true;
        self.remembers(&mut restart).await?;
        self.upgrade_cut(&mut restart).await
    }

    /// A prepare, a restart, the upgrade, another restart, and a second upgrade that must be declined.
    async fn remembers(&mut self, restart: &mut Step) -> Result<(), CheckError> {
        if !self.prepare_run().await? {
            self.skip(Rule::RestartRemembers, NOT_PREPARED);
            return Ok(());
        }
        self.start_again(restart, None).await?;
        let sent = self.controller.command(Action::Upgrade, false).await?;
        let answer = self.answer(&sent).await?;
        if !matches!(answer.result(), Some("done" | "reboot-required")) {
            let seen = format!("after a restart, the upgrade was {}", self.seen(&answer));
            self.row(Rule::RestartRemembers, Verdict::Broken, seen);
            return Ok(());
        }
        self.start_again(restart, None).await?;
        let sent = self.controller.command(Action::Upgrade, false).await?;
        let answer = self.controller.answer_within(&sent, self.controller.work_wait).await;
        self.controller.settle(&sent).await?;
        let seen = format!("after another restart, a second upgrade was {}", self.seen(&answer));
        self.judge(Rule::RestartRemembers, answer.declines(), seen);
        Ok(())
    }

    /// A restart as soon as the upgrade has been delivered.
    async fn upgrade_cut(&mut self, restart: &mut Step) -> Result<(), CheckError> {
        if !self.prepare_run().await? {
            self.skip(Rule::UpgradeCut, NOT_PREPARED);
            return Ok(());
        }
        let sent = self.controller.command(Action::Upgrade, false).await?;
        self.controller.delivered(&sent).await?;
        self.start_again(restart, None).await?;
        let answer = self.controller.answer(&sent).await;
        self.controller.settle(&sent).await?;
        self.judge(Rule::UpgradeCut, answer.result().is_some(), self.seen(&answer));
        Ok(())
    }

    /// Deletes the consumer; the next command must be carried out, and no earlier one again.
    pub(super) async fn delete_consumer(&mut self) -> Result<(), CheckError> {
        self.controller.restarting = true;
        if !self.starts.is_empty() {
            // A worker that was killed before it recorded its last answer may answer that command again. After one more
            // command it cannot.
            self.prepare_run().await?;
        }
        let stream = self.controller.stream(subject::CONTROL_STREAM).await?;
        for consumer in self.controller.consumers().await? {
            match stream.delete_consumer(&consumer.name).await {
                Ok(_) => {}
                // A worker may delete its own.
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(nats(error)),
            }
        }
        let sent = self.controller.prepare(None).await?;
        let answer = self.controller.answer(&sent).await;
        let wire = &self.controller.wire;
        wire.until(WATCHED, |events| (replies_to(events, &sent) > 1).then_some(())).await;
        let replies = wire.inspect(|events| {
            let after = events[sent.mark..].iter();
            after.filter(|event| matches!(event.seen, Seen::Reply { .. })).count()
        });
        let good = answer.result() == Some("done") && replies == 1;
        let seen = match replies {
            0 | 1 => format!("the next prepare was {}", self.seen(&answer)),
            more => format!("{more} replies to one new command"),
        };
        self.judge(Rule::ConsumerRemade, good, seen);
        Ok(())
    }
}
