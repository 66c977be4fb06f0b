//! A description of what the bus has lost, for operators, found by comparing the streams with the store.

use std::fmt::Write as _;
use std::time::Duration;

use os_upgrade_bus::Bus;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_console::{Importance, summary};
use os_upgrade_kernel::Fact;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::subject;
use os_upgrade_shell::instance::{Loss, Stream};
use os_upgrade_store::{CommandRow, FactRow, History, StoreError};
use tokio::time::Instant;

/// The most facts or commands that are named; of the rest only the number is given.
const NAMED_MAX: usize = 12;
/// The most facts that are searched for the important ones.
const FACTS_READ_MAX: u32 = 10_000;
/// How long to wait for the store to get what was acknowledged before the loss.
const CATCH_UP: Duration = Duration::from_secs(2);
/// How often the store's position is read in that time.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What the operator can do.
const ADVICE: &str = "nothing is sent until an operator has stopped this and decided: bring the lost data back, or go \
                      on from the store with `os-upgrade restore --from-store`";

/// What `losses` mean, as far as the store shows, and what the operator can do.
pub async fn describe_with_advice(bus: &Bus, history: &History, losses: &[Loss]) -> String {
    let mut sentences = describe_losses(bus, history, losses).await;
    sentences.push(ADVICE.to_owned());
    sentences.join("; ")
}

/// What `losses` mean, as far as the store shows: one sentence for each.
pub async fn describe_losses(bus: &Bus, history: &History, losses: &[Loss]) -> Vec<String> {
    let mut sentences = Vec::new();
    for loss in losses {
        let found = match loss.stream {
            Stream::Journal => journal(bus, history, loss).await,
            Stream::Control => control(bus, history, loss).await,
        };
        sentences.push(
            found.unwrap_or_else(|error| format!("what {} has lost is not known: {error}", loss.stream)),
        );
    }
    sentences
}

/// Why a loss could not be described.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Streams(#[from] StreamsError),
}

async fn journal(bus: &Bus, history: &History, loss: &Loss) -> Result<String, Error> {
    await_position(history, loss.known).await?;
    let first = match loss.first_missing() {
        Some(first) => first,
        None => first_other_record(bus, history).await?,
    };
    let stored = history.position().await?.map_or(0, |position| position.sequence);
    let (count, facts) = history.facts_from(first, FACTS_READ_MAX).await?;
    let mut text = format!("{} lost", span("journal", &first.to_string(), loss.known));
    match facts.first().zip(facts.last()) {
        None => text.push_str(", in which the store has no fact"),
        Some((oldest, _)) => {
            let since = os_upgrade_protocol::time::format(oldest.at);
            let _ = write!(
                text,
                ", with {} since {since}: {}",
                counted(count, "fact"),
                name_facts(count, &facts)
            );
        }
    }
    if stored < loss.known {
        let _ = write!(text, "; the store itself ends at {stored}");
    }
    Ok(text)
}

/// Waits until the store has `known`, within [`CATCH_UP`]: records from right before the loss may still be on their
/// way.
async fn await_position(history: &History, known: u64) -> Result<(), Error> {
    let start = Instant::now();
    while start.elapsed() < CATCH_UP {
        if history.position().await?.is_some_and(|position| position.sequence >= known) {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// The sequence after the last record that store and journal share, found by bisection: before a shared record, all
/// records are shared.
async fn first_other_record(bus: &Bus, history: &History) -> Result<u64, Error> {
    let mut sequences = history.sequences().await?;
    // What was trimmed is in no journal.
    let begins = bus.first_sequence(subject::JOURNAL_STREAM, ">").await?.unwrap_or(1);
    sequences.retain(|sequence| *sequence >= begins);
    let mut bisection = Bisection::of(sequences.len());
    while let Some(index) = bisection.next() {
        bisection.record(index, same_record(bus, history, sequences[index]).await?);
    }
    let last_common = bisection.good().checked_sub(1).and_then(|last| sequences.get(last));
    Ok(last_common.map_or(begins, |last| last + 1))
}

async fn same_record(bus: &Bus, history: &History, sequence: u64) -> Result<bool, Error> {
    let Some(record) = bus.record_at(sequence).await? else { return Ok(false) };
    let limit = u32::try_from(record.facts.len()).unwrap_or(u32::MAX);
    let (_, rows) = history.facts_from(sequence, limit).await?;
    let same = |(row, fact): (&FactRow, &Fact)| {
        row.sequence == sequence && row.at == record.at && read(row).as_ref() == Some(fact)
    };
    Ok(!record.facts.is_empty()
        && rows.len() == record.facts.len()
        && rows.iter().zip(&record.facts).all(same))
}

/// Finds how many leading items are good, given that no good item follows a bad one.
#[derive(Debug)]
struct Bisection {
    good: usize,
    bad: usize,
}

impl Bisection {
    fn of(items: usize) -> Self {
        Self { good: 0, bad: items }
    }

    /// The index of the next item to check; `None` at the end.
    fn next(&self) -> Option<usize> {
        (self.good < self.bad).then(|| self.good + (self.bad - self.good) / 2)
    }

    fn record(&mut self, index: usize, is_good: bool) {
        if is_good {
            self.good = index + 1;
        } else {
            self.bad = index;
        }
    }

    /// The number of good items, once [`Self::next`] returns `None`.
    fn good(&self) -> usize {
        self.good
    }
}

async fn control(bus: &Bus, history: &History, loss: &Loss) -> Result<String, Error> {
    let mut commands = history.commands().await?;
    // Answered commands before the first that is there were purged.
    if let Some(first) = bus.first_sequence(subject::CONTROL_STREAM, subject::COMMANDS).await? {
        commands.retain(|command| command.sequence >= first);
    }
    let common = if let Some(first) = loss.first_missing() {
        commands.partition_point(|command| command.sequence < first)
    } else {
        let mut bisection = Bisection::of(commands.len());
        while let Some(index) = bisection.next() {
            bisection.record(index, is_in_stream(bus, &commands[index]).await?);
        }
        bisection.good()
    };
    let missing = &commands[common..];
    let first = loss.first_missing().or_else(|| Some(missing.first()?.sequence));
    let first = first.map_or_else(|| "some".to_owned(), |first| first.to_string());
    let mut text = format!("{} lost", span("control", &first, loss.known));
    if missing.is_empty() {
        text.push_str(", with no command that the store knows of");
    } else {
        let named = missing.iter().map(|command| format!("{} of {}", command.action, command.host));
        let _ = write!(
            text,
            ", with {}: {}",
            counted(missing.len() as u64, "command"),
            list(named, missing.len())
        );
    }
    Ok(text)
}

async fn is_in_stream(bus: &Bus, command: &CommandRow) -> Result<bool, Error> {
    let found = bus.subject_at(subject::CONTROL_STREAM, command.sequence).await?;
    let wanted = HostName::new(&command.host).ok().map(|host| subject::command(&host));
    Ok(found.is_some() && found == wanted)
}

/// A range of messages as a subject with its verb.
fn span(stream: &str, first: &str, last: u64) -> String {
    if first == last.to_string() {
        format!("{stream} message {last} is")
    } else {
        format!("{stream} messages {first} to {last} are")
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The first few of `names`, and how many more there are of `count`.
fn list(names: impl Iterator<Item = String>, count: usize) -> String {
    let first: Vec<String> = names.take(NAMED_MAX).collect();
    let more = count.saturating_sub(first.len());
    let mut text = first.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

fn read(row: &FactRow) -> Option<Fact> {
    serde_json::from_str(row.fact.get()).ok()
}

/// The most important facts, in their order in the journal.
fn name_facts(count: u64, rows: &[FactRow]) -> String {
    let mut named: Vec<(Importance, usize, String)> = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| {
            let (weight, summary) = summary(&read(row)?);
            (weight < Importance::Bookkeeping).then_some((weight, index, summary))
        })
        .collect();
    named.sort();
    named.truncate(NAMED_MAX);
    named.sort_by_key(|(_, index, _)| *index);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if named.is_empty() {
        return "none about a run, a host or a configuration".to_owned();
    }
    list(named.into_iter().map(|(_, _, name)| name), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_first_difference() {
        for bound in 0..=7 {
            let mut bisection = Bisection::of(7);
            while let Some(index) = bisection.next() {
                bisection.record(index, index < bound);
            }
            assert_eq!(bisection.good(), bound);
        }
    }

    #[test]
    fn lists_are_bounded() {
        let names = |count: usize| list((0..count).map(|name| name.to_string()), count);
        assert_eq!(names(3), "0, 1, 2");
        assert_eq!(names(14), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more");
    }
}
