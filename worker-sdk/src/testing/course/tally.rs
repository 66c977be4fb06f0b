//! What is concluded from everything that was seen.

use std::sync::atomic::Ordering;
use std::time::Duration;

use os_upgrade_protocol::limits::MESSAGE_BYTES_MAX;
use os_upgrade_protocol::{Announcement, Reply, Versions, subject};

use super::Course;
use crate::testing::CheckError;
use crate::testing::controller::{Answer, Sent, acked};
use crate::testing::report::{Row, Rule, Verdict};
use crate::testing::wire::{Event, Seen};

/// The longest time between two heartbeats that is taken for ten seconds.
const BEAT_WITHIN: Duration = Duration::from_secs(15);

impl<F: FnMut(&Row) + Send> Course<F> {
    /// Whether the command was acknowledged after the stream had confirmed its reply.
    pub(super) fn look_at_order(&mut self, sent: &Sent, answer: &Answer) {
        let Some(place) = answer.place().filter(|_| self.controller.wire.knows_order()) else { return };
        let wrong = self.controller.wire.look(|events| out_of_order(events, sent, place));
        match (&mut self.order, wrong) {
            (Ok(count), None) => *count += 1,
            (order @ Ok(_), Some(wrong)) => *order = Err(format!("{} {wrong}", sent.action)),
            (Err(_), _) => {}
        }
    }

    pub(super) async fn tally(&mut self) -> Result<(), CheckError> {
        match self.order.clone() {
            Ok(0) => self.skip(Rule::AckAfterReply, "needs a command that is answered"),
            Ok(count) => self.judge(Rule::AckAfterReply, true, format!("{count} times")),
            Err(wrong) => self.judge(Rule::AckAfterReply, false, wrong),
        }
        self.in_progress().await?;
        self.replies();
        self.versions().await?;
        self.heartbeats().await
    }

    async fn in_progress(&mut self) -> Result<(), CheckError> {
        let consumers = self.controller.consumers().await?;
        let wait = consumers.first().map_or(Duration::from_secs(30), |info| info.config.ack_wait);
        let sent = &self.controller.sent;
        let found = self.controller.wire.look(|events| {
            let quiet = sent.iter().filter(|sent| !sent.disturbed);
            quiet.filter_map(|sent| signs_of_life(events, sent, wait)).max_by_key(|(broken, _)| *broken)
        });
        if let Some((broken, seen)) = found {
            self.judge(Rule::InProgress, !broken, seen);
        } else {
            let secs = wait.as_secs();
            let needs = format!("needs a prepare or upgrade longer than half its ack_wait of {secs} s");
            self.skip(Rule::InProgress, &needs);
        }
        Ok(())
    }

    fn replies(&mut self) {
        let sent = &self.controller.sent;
        let (count, wrong) = self.controller.wire.look(|events| {
            let replies = events.iter().enumerate().filter_map(|(place, event)| {
                let Seen::Reply { payload, in_reply_to, .. } = &event.seen else { return None };
                Some((place, payload, *in_reply_to))
            });
            let mut count = 0;
            let mut wrong = None;
            for (place, payload, in_reply_to) in replies {
                count += 1;
                wrong = wrong.or_else(|| fault(sent, place, payload, in_reply_to));
            }
            (count, wrong)
        });
        match wrong {
            Some(wrong) => self.judge(Rule::Replies, false, wrong),
            None if count == 0 => self.skip(Rule::Replies, "needs a command that is answered"),
            None => self.judge(Rule::Replies, true, format!("{count} replies")),
        }
    }

    async fn versions(&mut self) -> Result<(), CheckError> {
        let filter = subject::versions(&self.controller.host);
        let published = self.controller.stored(subject::VERSIONS_STREAM, &filter).await?;
        let parsed: Result<Vec<_>, _> = published.iter().map(|payload| Versions::parse(payload)).collect();
        match parsed {
            Err(error) => self.judge(Rule::Versions, false, error.to_string()),
            Ok(all) if all.is_empty() => {
                self.skip(Rule::Versions, "needs a worker that publishes versions");
            }
            Ok(all) => {
                let repeated = all.windows(2).filter(|pair| pair[0] == pair[1]).count();
                // Who cannot read back what was said may say it once more after each start.
                let blind = self.controller.consumer_maker.is_asked();
                let allowed = if blind { self.starts.load(Ordering::Relaxed) } else { 0 };
                let seen = if repeated > allowed {
                    "the same ones twice in a row".to_owned()
                } else {
                    format!("published {} times", all.len())
                };
                self.judge(Rule::Versions, repeated <= allowed, seen);
            }
        }
        Ok(())
    }

    async fn heartbeats(&mut self) -> Result<(), CheckError> {
        let filter = format!("os-upgrade:workers.*.{}", self.controller.host.token());
        let announced = self.controller.stored(subject::WORKERS_STREAM, &filter).await?;
        let promised =
            announced.iter().any(|payload| Announcement::parse(payload).is_ok_and(|says| says.heartbeats));
        let beats = |events: &[Event]| -> Vec<_> {
            events.iter().filter(|event| event.seen == Seen::Beat).map(|event| event.at).collect()
        };
        let wire = &self.controller.wire;
        if !promised && wire.look(beats).is_empty() {
            // They are optional, and it says that there are none.
            self.row(Rule::Heartbeats, Verdict::Holds, "none, and none announced");
            return Ok(());
        }
        let regular = |events: &[Event]| {
            let close = |pair: &[std::time::Instant]| pair[1] - pair[0] <= BEAT_WITHIN;
            beats(events).windows(2).any(close).then_some(())
        };
        let found = wire.until(BEAT_WITHIN * 2, regular).await;
        let count = wire.look(beats).len();
        let seen = match found {
            Some(()) => format!("{count} heartbeats"),
            None => format!("{count} heartbeats, no two within {} s", BEAT_WITHIN.as_secs()),
        };
        self.judge(Rule::Heartbeats, found.is_some(), seen);
        Ok(())
    }
}

/// What is wrong with the order of reply, confirmation and acknowledgement.
fn out_of_order(events: &[Event], sent: &Sent, reply: usize) -> Option<String> {
    let Some(Event { seen: Seen::Reply { inbox, .. }, .. }) = events.get(reply) else { return None };
    let Some(inbox) = inbox else {
        return Some("was answered without asking the stream to confirm the reply".to_owned());
    };
    let stored = Seen::Stored { inbox: inbox.clone() };
    let stored = events.iter().position(|event| event.seen == stored);
    match (stored, acked(events, sent)) {
        (_, None) => Some("was answered and not acknowledged".to_owned()),
        (None, Some(_)) => Some("was acknowledged, and its reply is not in the stream".to_owned()),
        (Some(stored), Some(acked)) if acked < stored => {
            Some("was acknowledged before the stream had its reply".to_owned())
        }
        (Some(_), Some(_)) => None,
    }
}

/// Of a command that took long: whether the rule is broken, and what was seen. `None` if it did not take long.
fn signs_of_life(events: &[Event], sent: &Sent, wait: Duration) -> Option<(bool, String)> {
    let after = &events[sent.mark..];
    let of_command = |event: &&Event| match &event.seen {
        Seen::Delivered { sequence } | Seen::InProgress { sequence } | Seen::Acked { sequence } => {
            *sequence == sent.sequence
        }
        Seen::Reply { .. } | Seen::Stored { .. } | Seen::Beat | Seen::Probe => false,
    };
    let all: Vec<_> = after.iter().filter(of_command).collect();
    let took = all.last()?.at - all.first()?.at;
    let deliveries = all.iter().filter(|event| matches!(event.seen, Seen::Delivered { .. })).count();
    let signs = all.iter().filter(|event| matches!(event.seen, Seen::InProgress { .. })).count();
    let seen = format!(
        "{} under way for {:.1} s: {signs} in-progress acks, delivered {deliveries} times",
        sent.action,
        took.as_secs_f32()
    );
    if deliveries > 1 || (took > wait && signs == 0) {
        return Some((true, seen));
    }
    (took > wait / 2 && signs > 0).then_some((false, seen))
}

/// What is wrong with a reply at this place.
fn fault(sent: &[Sent], place: usize, payload: &[u8], in_reply_to: Option<u64>) -> Option<String> {
    let reply = match Reply::parse(payload) {
        Ok(reply) => reply,
        Err(error) => return Some(format!("one that is none: {error}")),
    };
    if reply.result.as_str().len() > MESSAGE_BYTES_MAX {
        return Some(format!("a result of {} bytes", reply.result.as_str().len()));
    }
    // One that does not say what it answers answers the last command.
    let command = match in_reply_to {
        Some(sequence) => sent.iter().find(|sent| sent.sequence == sequence),
        None => sent.iter().rfind(|sent| sent.mark <= place),
    };
    match command {
        None => Some("one to no command".to_owned()),
        Some(command) if command.silent => Some(format!("one to {}, where none is due", command.action)),
        Some(command) if command.action != reply.action => {
            Some(format!("one of action {} to {}", reply.action, command.action))
        }
        Some(_) => None,
    }
}
