//! A due reboot: no answer before it, a restart without a reboot, the answer after it, and a second reboot command.

use os_upgrade_protocol::{Action, Announcement};

use super::{NO_RESTART, Scenario, WATCHED};
use crate::testing::controller::{Answer, Sent};
use crate::testing::error::CheckError;
use crate::testing::report::{Row, Rule};

const REQUESTED: [Rule; 2] = [Rule::RebootOnRequest, Rule::RebootOfOtherBoot];
const RULES: [Rule; 4] = [Rule::RebootPending, Rule::RestartIsNoReboot, Rule::Rebooted, Rule::RebootTwice];
const NO_REBOOT: &str = "needs a way to reboot the host: --reboot-command, or Check::on_reboot";

impl<F: FnMut(&Row) + Send> Scenario<F> {
    pub(super) fn skip_reboots(&mut self, needs: &str) {
        for rule in RULES {
            self.skip(rule, needs);
        }
    }

    /// Checks the rules about reboots after an upgrade that requires one.
    pub(super) async fn reboots(&mut self) -> Result<(), CheckError> {
        let Some(mut reboot) = self.reboot.take() else {
            self.skip_reboots(NO_REBOOT);
            return Ok(());
        };
        self.left = self.controller.announcement().await?.and_then(|says| says.boot_id);
        // A worker that really reboots its host does so as soon as it receives the command.
        let since = Some(self.controller.last_versions().await?);
        let sent = self.controller.command(Action::Reboot, false).await?;
        self.controller.disturb(&sent);
        self.controller.delivered(&sent).await?;
        let early = self.controller.answer_within(&sent, WATCHED).await;
        let pending = early == Answer::Nothing;
        let seen = if pending { "nothing before the reboot".to_owned() } else { early.seen(WATCHED) };
        self.judge(Rule::RebootPending, pending, seen);
        if !pending {
            self.controller.settle(&sent).await?;
            for rule in [Rule::RestartIsNoReboot, Rule::Rebooted] {
                self.skip(rule, "needs a reboot that is not answered before it");
            }
            self.start_again(&mut reboot, since).await?;
            self.reboot = Some(reboot);
            return self.reboots_twice().await;
        }
        let still_pending = self.restart_without_reboot(&sent).await?;
        if !still_pending {
            self.skip(Rule::Rebooted, "needs a worker that does not mistake its restart for the reboot");
            self.start_again(&mut reboot, since).await?;
            self.reboot = Some(reboot);
            return self.reboots_twice().await;
        }
        self.start_again(&mut reboot, since).await?;
        self.reboot = Some(reboot);
        let answer = self.answer(&sent).await?;
        self.judge(Rule::Rebooted, answer.result() == Some("done"), self.seen(&answer));
        self.reboots_twice().await
    }

    /// Restarts the worker without a reboot; returns whether the reboot command is still unanswered.
    async fn restart_without_reboot(&mut self, sent: &Sent) -> Result<bool, CheckError> {
        let Some(mut restart) = self.restart.take() else {
            self.skip(Rule::RestartIsNoReboot, NO_RESTART);
            return Ok(true);
        };
        self.start_again(&mut restart, None).await?;
        self.restart = Some(restart);
        let answer = self.controller.answer_within(sent, WATCHED).await;
        let seen = match &answer {
            Answer::Nothing => "no reply".to_owned(),
            Answer::Reply { .. } | Answer::NoReply { .. } | Answer::Acked => answer.seen(WATCHED),
        };
        // An error is allowed, because the host did not reboot.
        let good = answer != Answer::Acked && answer.result() != Some("done");
        self.judge(Rule::RestartIsNoReboot, good, seen);
        Ok(answer == Answer::Nothing)
    }

    /// Checks reboots that name the boot to leave, without an upgrade before them.
    pub(super) async fn requested_reboots(&mut self) -> Result<(), CheckError> {
        if let Some(left) = self.left.take() {
            // Until then it may announce the boot that it has left.
            self.controller.has_left(&left).await?;
        }
        let announced = self.controller.announcement().await?;
        let Some(Announcement { boot_id, .. }) = announced.filter(|says| says.reboots_on_request) else {
            for rule in REQUESTED {
                self.judge(rule, true, "it does not announce reboots-on-request");
            }
            return Ok(());
        };
        let Some(boot) = boot_id else {
            for rule in REQUESTED {
                self.judge(rule, false, "it announces reboots-on-request, and no boot-id");
            }
            return Ok(());
        };
        let other = format!("not-{boot}");
        let sent = self.controller.reboot_of(&other).await?;
        self.expect_immediate_answer(Rule::RebootOfOtherBoot, &sent).await?;
        let Some(mut reboot) = self.reboot.take() else {
            self.skip(Rule::RebootOnRequest, NO_REBOOT);
            return Ok(());
        };
        let since = Some(self.controller.last_versions().await?);
        let sent = self.controller.reboot_of(&boot).await?;
        self.controller.disturb(&sent);
        self.controller.delivered(&sent).await?;
        let early = self.controller.answer_within(&sent, WATCHED).await;
        self.start_again(&mut reboot, since).await?;
        self.reboot = Some(reboot);
        if early != Answer::Nothing {
            self.judge(Rule::RebootOnRequest, false, early.seen(WATCHED));
            return self.controller.settle(&sent).await;
        }
        let answer = self.answer(&sent).await?;
        let has_left = self.controller.has_left(&boot).await?;
        let seen = if has_left { self.seen(&answer) } else { "it announces the same boot".to_owned() };
        self.judge(Rule::RebootOnRequest, has_left && answer.result() == Some("done"), seen);
        Ok(())
    }

    async fn reboots_twice(&mut self) -> Result<(), CheckError> {
        let sent = self.controller.command(Action::Reboot, false).await?;
        self.expect_immediate_answer(Rule::RebootTwice, &sent).await
    }
}
