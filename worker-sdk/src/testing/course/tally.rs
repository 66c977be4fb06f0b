//! What is concluded from everything that was seen.

use std::time::Duration;

use os_upgrade_protocol::limits::MESSAGE_BYTES_MAX;
use os_upgrade_protocol::{Announcement, Reply, Versions, subject};

use super::{Course, Start};
use crate::testing::controller::{Answer, Sent, acked};
use crate::testing::error::CheckError;
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
        let published = self.controller.stored_with_sequences(subject::VERSIONS_STREAM, &filter).await?;
        let parse = |(sequence, payload): &(u64, Vec<u8>)| Ok((*sequence, Versions::parse(payload)?));
        let parsed: Result<Vec<_>, os_upgrade_protocol::ParseError> = published.iter().map(parse).collect();
        match parsed {
            Err(error) => self.judge(Rule::Versions, false, error.to_string()),
            Ok(all) if all.is_empty() => {
                self.skip(Rule::Versions, "needs a worker that publishes versions");
            }
            Ok(all) => {
                // Who cannot read back what was said may say it once more after each start.
                let blind = self.controller.consumer_maker.is_asked();
                let starts = if blind { self.starts.as_slice() } else { &[] };
                let holds = repeats_are_of_starts(&all, starts);
                let seen = match (holds, blind) {
                    (true, _) => format!("published {} times", all.len()),
                    (false, false) => "the same ones twice in a row".to_owned(),
                    (false, true) => {
                        "the same ones twice in a row, not as the first after a start".to_owned()
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

/// Whether each of the versions, with their places in the stream, differs from those before, or is the first after a
/// start, where each start is good for one.
fn repeats_are_of_starts(all: &[(u64, Versions)], starts: &[Start]) -> bool {
    let mut starts = starts.iter();
    let repeats = all.windows(2).filter(|pair| pair[0].1 == pair[1].1);
    repeats.map(|pair| (pair[0].0, pair[1].0)).all(|(before, repeat)| {
        // Starts and repeats are in the order in which they happened, and each start is looked at once.
        starts.any(|start| start.after < repeat && before <= start.until)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_said_again() {
        let start = |after, until| Start { after, until };
        for (said, starts, expected) in [
            // Changed each time.
            ("a b a", vec![], true),
            ("a a", vec![], false),
            // After its one start, before it, and once too often.
            ("a a b", vec![start(1, 1)], true),
            ("a b b", vec![start(1, 1)], false),
            ("a a b", vec![start(2, 3)], false),
            ("a a a", vec![start(1, 1)], false),
            // What came while the worker was ended may be of the old process or the new one.
            ("a b b", vec![start(1, 2)], true),
            ("a a b", vec![start(1, 2)], true),
            ("a a a", vec![start(1, 3)], false),
            // A start for each.
            ("a a a", vec![start(1, 1), start(2, 2)], true),
            ("a a a", vec![start(1, 1), start(1, 1)], false),
            ("a b b", vec![start(0, 0), start(2, 2)], true),
        ] {
            let versions = |text: &str| Versions([("linux".to_owned(), text.to_owned())].into());
            let all: Vec<_> = (1..).zip(said.split(' ').map(versions)).collect();
            assert_eq!(repeats_are_of_starts(&all, &starts), expected, "{said} {starts:?}");
        }
    }
}
