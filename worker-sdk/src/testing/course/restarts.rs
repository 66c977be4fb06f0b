//! The worker is restarted, or its consumer deleted: nothing is forgotten, done twice, or skipped.

use os_upgrade_protocol::{Action, subject};

use super::{Act, Course, NO_RESTART, NOT_PREPARED, WATCHED, replies_to};
use crate::testing::error::{CheckError, nats};
use crate::testing::report::{Row, Rule, Verdict};
use crate::testing::wire::Seen;

impl<F: FnMut(&Row) + Send> Course<F> {
    pub(super) async fn restarts(&mut self) -> Result<(), CheckError> {
        let Some(mut restart) = self.restart.take() else {
            for rule in [Rule::RestartRemembers, Rule::UpgradeCut] {
                self.skip(rule, NO_RESTART);
            }
            return Ok(());
        };
        self.controller.restarting = true;
        self.remembers(&mut restart).await?;
        self.is_cut(&mut restart).await
    }

    /// Prepared before a restart, upgraded after it, and not once more after another.
    async fn remembers(&mut self, restart: &mut Act) -> Result<(), CheckError> {
        if !self.is_prepared().await? {
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

    /// Restarted as soon as it has been handed its upgrade.
    async fn is_cut(&mut self, restart: &mut Act) -> Result<(), CheckError> {
        if !self.is_prepared().await? {
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

    /// Deletes the consumer; the next command must still be carried out, and no earlier one again.
    pub(super) async fn remake(&mut self) -> Result<(), CheckError> {
        self.controller.restarting = true;
        if !self.starts.is_empty() {
            // A worker that was killed between its answer and its note of it answers once more: not after this one.
            self.is_prepared().await?;
        }
        let stream = self.controller.stream(subject::CONTROL_STREAM).await?;
        for consumer in self.controller.consumers().await? {
            stream.delete_consumer(&consumer.name).await.map_err(nats)?;
        }
        let sent = self.controller.prepare(None).await?;
        let answer = self.controller.answer(&sent).await;
        let wire = &self.controller.wire;
        wire.until(WATCHED, |events| (replies_to(events, &sent) > 1).then_some(())).await;
        let replies = wire.look(|events| {
            let after = events[sent.mark..].iter();
            after.filter(|event| matches!(event.seen, Seen::Reply { .. })).count()
        });
        let good = answer.result() == Some("done") && replies == 1;
        let seen = match replies {
            0 | 1 => format!("the next prepare was {}", self.seen(&answer)),
            more => format!("{more} replies, though one command was new"),
        };
        self.judge(Rule::ConsumerRemade, good, seen);
        Ok(())
    }
}
