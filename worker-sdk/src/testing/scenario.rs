//! The scenario of a check: sends commands and judges the rules by the worker's answers.

mod configurations;
mod reboots;
mod restarts;
mod tally;

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures::future::BoxFuture;
use os_upgrade_protocol::{Action, subject};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::controller::{Answer, Controller, POLL_EVERY, Sent, filters, waiting_for};
use super::error::{CheckError, nats};
use super::report::{Report, Row, Rule, Verdict};

/// The `not-after` of a run that should end during the check.
const SHORT_RUN: TimeDelta = TimeDelta::seconds(3);
/// The `not-after` of a run that should not end during the check.
const LONG_RUN: TimeDelta = TimeDelta::hours(12);
/// How long to watch for a wrong answer.
const WATCHED: Duration = Duration::from_secs(2);
/// How long a worker may take to receive a hint.
const HINT_WAIT: Duration = Duration::from_secs(1);

const NO_CONSUMER: &str = "needs a consumer of the host's commands";
const NO_RESTART: &str = "needs a way to restart the worker: --restart-command, or Check::on_restart";
const NOT_PREPARED: &str = "needs a prepare that is answered with done";

/// A function that restarts the worker or reboots its host.
pub(super) type Step = Box<dyn FnMut() -> BoxFuture<'static, Result<(), String>> + Send>;

/// A restart of the worker: its old process ended when the versions stream's last sequence was between `after` and
/// `until`.
#[derive(Debug, Clone, Copy)]
struct Start {
    after: u64,
    until: u64,
}

/// A check under way.
pub(super) struct Scenario<F> {
    controller: Controller,
    restart: Option<Step>,
    reboot: Option<Step>,
    /// The boot that the worker announced before its host was rebooted.
    left: Option<String>,
    /// The restarts of the worker so far.
    starts: Vec<Start>,
    rows: Vec<Row>,
    on_row: F,
    /// How many replies were in the right order, or the first fault.
    order: Result<usize, String>,
}

impl<F: FnMut(&Row) + Send> Scenario<F> {
    pub(super) fn new(
        controller: Controller,
        restart: Option<Step>,
        reboot: Option<Step>,
        on_row: F,
    ) -> Self {
        Self {
            controller,
            restart,
            reboot,
            left: None,
            starts: Vec::new(),
            rows: Vec::new(),
            on_row,
            order: Ok(0),
        }
    }

    pub(super) async fn run(mut self) -> Result<Report, CheckError> {
        if self.find_worker().await? {
            self.forbidden_commands().await?;
            self.prepares().await?;
            let wants_reboot = self.upgrades().await?;
            self.controller.wire.listen_to_worker().await.map_err(CheckError::Nats)?;
            if wants_reboot {
                self.reboots().await?;
            }
            self.requested_reboots().await?;
            self.restarts().await?;
            self.configurations().await?;
            self.tally().await?;
            self.delete_consumer().await?;
            self.leave_expired_prepare().await?;
        }
        for rule in Rule::ALL {
            if self.rows.iter().all(|row| row.rule != rule) {
                self.skip(rule, NO_CONSUMER);
            }
        }
        Ok(Report { rows: self.rows })
    }

    /// Ends with an expired `prepare`, so that the first `upgrade` of a later check has none to build on.
    async fn leave_expired_prepare(&mut self) -> Result<(), CheckError> {
        let not_after = Utc::now() + SHORT_RUN;
        let sent = self.controller.prepare(Some(not_after)).await?;
        self.controller.answer(&sent).await;
        self.controller.settle(&sent).await?;
        let left = (not_after - Utc::now()).to_std().unwrap_or_default();
        waiting_for("the end of the last run", sleep(left)).await;
        Ok(())
    }

    /// Restarts the worker with `step` and records it. If the worker may have restarted earlier on its own, `since` is the
    /// versions stream's last sequence before that.
    async fn start_again(&mut self, step: &mut Step, since: Option<u64>) -> Result<(), CheckError> {
        let after = match since {
            Some(since) => since,
            None => self.controller.last_versions().await?,
        };
        waiting_for("the command that restarts the worker, or its host", step())
            .await
            .map_err(CheckError::Act)?;
        self.starts.push(Start { after, until: self.controller.last_versions().await? });
        Ok(())
    }

    fn row(&mut self, rule: Rule, verdict: Verdict, seen: impl Into<String>) {
        let row = Row { rule, verdict, expected: rule.expected(), seen: seen.into() };
        (self.on_row)(&row);
        self.rows.push(row);
    }

    fn judge(&mut self, rule: Rule, holds: bool, seen: impl Into<String>) {
        self.row(rule, if holds { Verdict::Holds } else { Verdict::Broken }, seen);
    }

    fn skip(&mut self, rule: Rule, needs: &str) {
        self.row(rule, Verdict::Skipped, needs);
    }

    /// Waits for the worker's announcement and consumer; false if there is no consumer.
    async fn find_worker(&mut self) -> Result<bool, CheckError> {
        let (host, patience) = (&self.controller.host, self.controller.patience);
        let until = Instant::now() + patience;
        let filter = subject::workers_of(host);
        let worker = async {
            let (mut announced, mut consumers) = (Vec::new(), Vec::new());
            while (announced.is_empty() || consumers.is_empty()) && Instant::now() < until {
                announced = self.controller.stored(subject::WORKERS_STREAM, &filter).await?;
                consumers = self.controller.consumers().await?;
                sleep(POLL_EVERY).await;
            }
            Ok::<_, CheckError>((announced, consumers))
        };
        let what = format_args!("a worker of {host} and its consumer, for at most {} s", patience.as_secs());
        let (announced, consumers) = waiting_for(what, worker).await?;
        self.announcement(&announced);
        let Some(consumer) = consumers.first() else {
            let mut seen = format!("no consumer within {} s", self.controller.patience.as_secs());
            if let Some(error) = self.controller.consumer_creator.error() {
                seen = format!("{seen}; the requested one was not created: {error}");
            }
            self.row(Rule::DurableConsumer, Verdict::Broken, seen);
            return Ok(false);
        };
        let config = &consumer.config;
        let kind = match (&config.durable_name, &config.deliver_subject) {
            (_, Some(_)) => "a push consumer".to_owned(),
            (None, None) => format!("{}, which is not durable", consumer.name),
            (Some(name), None) if consumers.len() == 1 => name.clone(),
            (Some(_), None) => format!("{} consumers", consumers.len()),
        };
        let good = config.deliver_subject.is_none() && config.durable_name.is_some() && consumers.len() == 1;
        self.judge(Rule::DurableConsumer, good, kind);
        let explicit = config.ack_policy == async_nats::jetstream::consumer::AckPolicy::Explicit;
        self.judge(Rule::ExplicitAcks, explicit, format!("{:?}", config.ack_policy).to_lowercase());
        self.judge(Rule::OneAtATime, config.max_ack_pending == 1, config.max_ack_pending.to_string());
        let filters = filters(consumer);
        let own = filters == [subject::command(&self.controller.host)];
        let seen = if filters.is_empty() { "everything".to_owned() } else { filters.join(", ") };
        self.judge(Rule::OwnSubject, own, seen);
        Ok(true)
    }

    fn announcement(&mut self, announced: &[Vec<u8>]) {
        let parsed = announced.last().map(|payload| os_upgrade_protocol::Announcement::parse(payload));
        let (good, seen) = match parsed {
            None => (false, "no announcement".to_owned()),
            Some(Err(error)) => (false, error.to_string()),
            Some(Ok(says)) if announced.len() > 1 => {
                (false, format!("{} and {} more applications", says.application, announced.len() - 1))
            }
            Some(Ok(says)) => {
                (says.host == self.controller.host, format!("{} on {}", says.application, says.host))
            }
        };
        self.judge(Rule::Announced, good, seen);
    }

    /// Sends commands that a worker must not carry out before a `prepare`.
    async fn forbidden_commands(&mut self) -> Result<(), CheckError> {
        let sent = self.controller.command(Action::Upgrade, false).await?;
        self.expect_decline(Rule::UpgradeUnprepared, &sent).await?;
        let sent = self.controller.command(Action::Reboot, false).await?;
        self.expect_immediate_answer(Rule::RebootNotDue, &sent).await?;
        let others = json!([format!("not-{}", self.controller.host)]);
        let sent = self.controller.prepare_of(others, None, true).await?;
        self.expect_silence(Rule::PrepareOfOthers, &sent).await?;
        let hosts = json!([self.controller.host]);
        let past = Some(Utc::now() - TimeDelta::hours(1));
        let sent = self.controller.prepare_of(hosts, past, true).await?;
        self.expect_silence(Rule::PrepareLate, &sent).await
    }

    async fn prepares(&mut self) -> Result<(), CheckError> {
        let sent = self.controller.prepare(Some(Utc::now() + LONG_RUN)).await?;
        let answer = self.answer(&sent).await?;
        self.judge(Rule::Prepare, answer.result() == Some("done"), self.seen(&answer));

        let hint = subject::hint(&self.controller.host);
        self.controller.client.publish(hint, "".into()).await.map_err(nats)?;
        // Hints and commands take different ways to the worker. If the hint arrived with the command, it could apply to it.
        self.controller.client.flush().await.map_err(nats)?;
        sleep(HINT_WAIT).await;
        let sent = self.controller.prepare(None).await?;
        let answer = self.answer(&sent).await?;
        self.judge(Rule::HintIdle, answer.result() == Some("done"), self.seen(&answer));

        let hosts = ["another", self.controller.host.as_str()];
        let odd =
            json!({ "unknown": [1], "action": "prepare", "hosts": hosts, "not-after": "", "also": null });
        let sent = self.controller.send(Action::Prepare, &odd, false).await?;
        let answer = self.answer(&sent).await?;
        self.judge(Rule::UnknownFields, answer.result() == Some("done"), self.seen(&answer));

        let not_after = Utc::now() + SHORT_RUN;
        let sent = self.controller.prepare(Some(not_after)).await?;
        if self.answer(&sent).await?.result() != Some("done") {
            self.skip(Rule::UpgradeLate, NOT_PREPARED);
            return Ok(());
        }
        let late = (not_after - Utc::now()).to_std().unwrap_or_default() + Duration::from_millis(200);
        waiting_for("the end of a run", sleep(late)).await;
        let sent = self.controller.command(Action::Upgrade, true).await?;
        self.expect_silence(Rule::UpgradeLate, &sent).await
    }

    /// An ordinary upgrade; returns whether it requires a reboot.
    async fn upgrades(&mut self) -> Result<bool, CheckError> {
        if !self.prepare_run().await? {
            for rule in [Rule::Upgrade, Rule::DeliveredTwice, Rule::UpgradeTwice] {
                self.skip(rule, NOT_PREPARED);
            }
            self.skip_reboots(NOT_PREPARED);
            return Ok(false);
        }
        let sent = self.controller.command(Action::Upgrade, false).await?;
        self.deliver_again(&sent).await?;
        let answer = self.answer(&sent).await?;
        let good = matches!(answer.result(), Some("done" | "reboot-required"));
        self.judge(Rule::Upgrade, good, self.seen(&answer));
        self.watch_for_second_answer(&sent).await;
        let wants_reboot = answer.result() == Some("reboot-required");
        if !wants_reboot {
            self.skip_reboots("needs an upgrade that is answered with reboot-required; in `os-upgrade-worker exec` its script exits with 194");
        }
        let sent = self.controller.command(Action::Upgrade, false).await?;
        self.expect_decline(Rule::UpgradeTwice, &sent).await?;
        Ok(wants_reboot)
    }

    /// Waits until the command is delivered, and has it delivered again.
    async fn deliver_again(&mut self, sent: &Sent) -> Result<(), CheckError> {
        self.controller.disturb(sent);
        if let Some(ack) = self.controller.delivered(sent).await? {
            self.controller.client.publish(ack, "-NAK".into()).await.map_err(nats)?;
            self.controller.client.flush().await.map_err(nats)?;
        }
        Ok(())
    }

    async fn watch_for_second_answer(&mut self, sent: &Sent) {
        let wire = &self.controller.wire;
        let second = wire.until(WATCHED, |events| (replies_to(events, sent) > 1).then_some(())).await;
        let count = wire.inspect(|events| replies_to(events, sent));
        self.judge(Rule::DeliveredTwice, second.is_none(), format!("{count} replies"));
    }

    /// Prepares a new, long run; returns whether the worker answered `done`.
    async fn prepare_run(&mut self) -> Result<bool, CheckError> {
        let sent = self.controller.prepare(Some(Utc::now() + LONG_RUN)).await?;
        Ok(self.answer(&sent).await?.result() == Some("done"))
    }

    /// Waits for the answer to a command that should be executed, and checks the order of reply and acknowledgement.
    async fn answer(&mut self, sent: &Sent) -> Result<Answer, CheckError> {
        let answer = self.controller.answer(sent).await;
        self.check_order(sent, &answer);
        self.controller.settle(sent).await?;
        Ok(answer)
    }

    /// Judges a command that must be acknowledged but not answered.
    async fn expect_silence(&mut self, rule: Rule, sent: &Sent) -> Result<(), CheckError> {
        let answer = self.controller.answer_within(sent, self.controller.patience).await;
        self.judge(rule, answer == Answer::Acked, answer.seen(self.controller.patience));
        self.controller.settle(sent).await
    }

    /// Judges an `upgrade` that must not be carried out, and may be answered with an error.
    async fn expect_decline(&mut self, rule: Rule, sent: &Sent) -> Result<(), CheckError> {
        let answer = self.controller.answer_within(sent, self.controller.patience).await;
        self.check_order(sent, &answer);
        self.judge(rule, answer.declines(), answer.seen(self.controller.patience));
        self.controller.settle(sent).await
    }

    /// Judges a command whose answer needs no work.
    async fn expect_immediate_answer(&mut self, rule: Rule, sent: &Sent) -> Result<(), CheckError> {
        let answer = self.controller.answer_within(sent, self.controller.patience).await;
        self.check_order(sent, &answer);
        self.judge(rule, answer.result().is_some(), answer.seen(self.controller.patience));
        self.controller.settle(sent).await
    }

    fn seen(&self, answer: &Answer) -> String {
        answer.seen(self.controller.work_wait)
    }
}

/// The number of replies to a command.
fn replies_to(events: &[super::wire::Event], sent: &Sent) -> usize {
    let is_reply = |event: &&super::wire::Event| {
        matches!(&event.seen, super::wire::Seen::Reply { in_reply_to, .. }
            if super::controller::answers(*in_reply_to, sent))
    };
    events[sent.mark..].iter().filter(is_reply).count()
}
