//! Judges the rules that concern all messages of the check.

use std::time::Duration;

use os_upgrade_protocol::limits::MESSAGE_BYTES_MAX;
use os_upgrade_protocol::{Announcement, Reply, Versions, subject};

use super::{Scenario, Start};
use crate::testing::controller::{Answer, Sent, acked, waiting_for};
use crate::testing::error::CheckError;
use crate::testing::report::{Row, Rule, Verdict};
use crate::testing::wire::{Event, Seen};

/// The longest time between two heartbeats that counts as ten seconds.
const BEAT_WITHIN: Duration = Duration::from_secs(15);

impl<F: FnMut(&Row) + Send> Scenario<F> {
    /// Checks that the command was acknowledged after the stream had confirmed its reply.
    pub(super) fn check_order(&mut self, sent: &Sent, answer: &Answer) {
        let Some(index) = answer.index().filter(|_| self.controller.wire.knows_order()) else { return };
        let fault = self.controller.wire.inspect(|events| out_of_order(events, sent, index));
        match (&mut self.order, fault) {
            (Ok(count), None) => *count += 1,
            (order @ Ok(_), Some(fault)) => *order = Err(format!("{} {fault}", sent.action)),
            (Err(_), _) => {}
        }
    }

    pub(super) async fn tally(&mut self) -> Result<(), CheckError> {
        match self.order.clone() {
            Ok(0) => self.skip(Rule::AckAfterReply, "needs a command that is answered"),
            Ok(count) => self.judge(Rule::AckAfterReply, true, format!("{count} times")),
            Err(fault) => self.judge(Rule::AckAfterReply, false, fault),
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
        let found = self.controller.wire.inspect(|events| {
            let undisturbed = sent.iter().filter(|sent| !sent.disturbed);
            undisturbed.filter_map(|sent| progress_acks(events, sent, wait)).max_by_key(|(broken, _)| *broken)
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
        let (count, first_fault) = self.controller.wire.inspect(|events| {
            let replies = events.iter().enumerate().filter_map(|(index, event)| {
                let Seen::Reply { payload, in_reply_to, .. } = &event.seen else { return None };
                Some((index, payload, *in_reply_to))
            });
            let mut count = 0;
            let mut first_fault = None;
            for (index, payload, in_reply_to) in replies {
                count += 1;
                first_fault = first_fault.or_else(|| reply_fault(sent, index, payload, in_reply_to));
            }
            (count, first_fault)
        });
        match first_fault {
            Some(fault) => self.judge(Rule::Replies, false, fault),
            None if count == 0 => self.skip(Rule::Replies, "needs a command that is answered"),
            None => self.judge(Rule::Replies, true, format!("{count} replies")),
        }
    }

    async fn versions(&mut self) -> Result<(), CheckError> {
        let filter = subject::versions(&self.controller.host);
        let published = self.controller.stored_with_sequences(subject::VERSIONS_STREAM, &filter).await?;
        let parse = |(sequence, payload): &(u64, Vec<u8>)| Ok((*sequence, Versions::parse(payload)?));
        let parsed: Result<Vec<_>, os_upgrade_protocol::ParseError> = published.iter().map(parse).collect();
        match parsed {
            Err(error) => self.judge(Rule::Versions, false, error.to_string()),
            Ok(all) if all.is_empty() => {
                self.skip(Rule::Versions, "needs a worker that publishes versions");
            }
            Ok(all) => {
                // A worker that cannot read back its versions may publish the same ones once after each start.
                let cannot_read_back = self.controller.consumer_creator.was_requested();
                let starts = if cannot_read_back { self.starts.as_slice() } else { &[] };
                let holds = repeats_follow_starts(&all, starts);
                let seen = match (holds, cannot_read_back) {
                    (true, _) => format!("published {} times", all.len()),
                    (false, false) => "the same versions twice in a row".to_owned(),
                    (false, true) => {
                        "the same versions twice in a row, not as the first after a start".to_owned()
                    }
                };
                self.judge(Rule::Versions, holds, seen);
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
        if !promised && wire.inspect(beats).is_empty() {
            // Heartbeats are optional, and the announcement promises none.
            self.row(Rule::Heartbeats, Verdict::Holds, "none, and none announced");
            return Ok(());
        }
        let regular = |events: &[Event]| {
            let close = |pair: &[std::time::Instant]| pair[1] - pair[0] <= BEAT_WITHIN;
            beats(events).windows(2).any(close).then_some(())
        };
        let found = waiting_for("heartbeats, for at most 30 s", wire.until(BEAT_WITHIN * 2, regular)).await;
        let count = wire.inspect(beats).len();
        let seen = match found {
            Some(()) => format!("{count} heartbeats"),
            None => format!("{count} heartbeats, no two within {} s", BEAT_WITHIN.as_secs()),
        };
        self.judge(Rule::Heartbeats, found.is_some(), seen);
        Ok(())
    }
}

/// Whether all versions differ from their predecessors, except that one repetition may follow each start. `all` contains
/// stream sequences and versions.
fn repeats_follow_starts(all: &[(u64, Versions)], starts: &[Start]) -> bool {
    let mut starts = starts.iter();
    let repeats = all.windows(2).filter(|pair| pair[0].1 == pair[1].1);
    repeats.map(|pair| (pair[0].0, pair[1].0)).all(|(before, repeat)| {
        // Starts and repetitions are in chronological order, and each start is used at most once.
        starts.any(|start| start.after < repeat && before <= start.until)
    })
}

/// The fault in the order of reply, confirmation and acknowledgement; `None` if the order is right.
fn out_of_order(events: &[Event], sent: &Sent, reply: usize) -> Option<String> {
    let Some(Event { seen: Seen::Reply { inbox, .. }, .. }) = events.get(reply) else { return None };
    let Some(inbox) = inbox else {
        return Some("was answered without asking the stream to confirm the reply".to_owned());
    };
    let stored = Seen::Stored { inbox: inbox.clone() };
    let stored = events.iter().position(|event| event.seen == stored);
    match (stored, acked(events, sent)) {
        (_, None) => Some("was answered but not acknowledged".to_owned()),
        (None, Some(_)) => Some("was acknowledged, but its reply is not in the stream".to_owned()),
        (Some(stored), Some(acked)) if acked < stored => {
            Some("was acknowledged before the stream had stored its reply".to_owned())
        }
        (Some(_), Some(_)) => None,
    }
}

/// For a command that took long: whether the rule is broken, and what was observed. `None` if it did not take long.
fn progress_acks(events: &[Event], sent: &Sent, wait: Duration) -> Option<(bool, String)> {
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

/// The fault of a reply at this index in the observed messages; `None` if it is right.
fn reply_fault(sent: &[Sent], index: usize, payload: &[u8], in_reply_to: Option<u64>) -> Option<String> {
    let reply = match Reply::parse(payload) {
        Ok(reply) => reply,
        Err(error) => return Some(format!("an invalid reply: {error}")),
    };
    if reply.result.as_str().len() > MESSAGE_BYTES_MAX {
        return Some(format!("a result of {} bytes", reply.result.as_str().len()));
    }
    // A reply that names no command belongs to the last one.
    let command = match in_reply_to {
        Some(sequence) => sent.iter().find(|sent| sent.sequence == sequence),
        None => sent.iter().rfind(|sent| sent.mark <= index),
    };
    match command {
        None => Some("a reply to an unknown command".to_owned()),
        Some(command) if command.silent => Some(format!("an unexpected reply to {}", command.action)),
        Some(command) if command.action != reply.action => {
            Some(format!("a reply with action {} to {}", reply.action, command.action))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_allowed_after_starts() {
        let start = |after, until| Start { after, until };
        for (published, starts, expected) in [
            // Changed each time.
            ("a b a", vec![], true),
            ("a a", vec![], false),
            // After its one start, before it, and once too often.
            ("a a b", vec![start(1, 1)], true),
            ("a b b", vec![start(1, 1)], false),
            ("a a b", vec![start(2, 3)], false),
            ("a a a", vec![start(1, 1)], false),
            // Versions published during the restart may be from the old process or the new one.
            ("a b b", vec![start(1, 2)], true),
            ("a a b", vec![start(1, 2)], true),
            ("a a a", vec![start(1, 3)], false),
            // A start for each.
            ("a a a", vec![start(1, 1), start(2, 2)], true),
            ("a a a", vec![start(1, 1), start(1, 1)], false),
            ("a b b", vec![start(0, 0), start(2, 2)], true),
        ] {
            let versions = |text: &str| Versions([("linux".to_owned(), text.to_owned())].into());
            let all: Vec<_> = (1..).zip(published.split(' ').map(versions)).collect();
            assert_eq!(repeats_follow_starts(&all, &starts), expected, "{published} {starts:?}");
        }
    }
}
