//! Deletes from the streams what nobody needs any more.

use async_nats::jetstream::stream::Stream;
use os_upgrade_protocol::subject;
use os_upgrade_shell::instance::Trim;

use super::Bus;
use super::streams::inspect::{message, stored};
use super::streams::{StreamsError, unusable};

impl Bus {
    /// Trims the journal, then the control stream. Returns whether everything that `trim` names is gone.
    pub async fn trim(&self, trim: Trim) -> bool {
        let trimmed = async {
            let is_trimmed = self.trim_journal(trim.journal_from).await?;
            if is_trimmed {
                self.trim_control(trim.control_from).await?;
            }
            Ok::<_, StreamsError>(is_trimmed)
        };
        let trimmed: Result<bool, StreamsError> = trimmed.await;
        trimmed.inspect_err(|error| tracing::warn!(%error, "the streams cannot be trimmed")).unwrap_or(false)
    }

    /// Returns whether the journal begins at `from` or later.
    async fn trim_journal(&self, from: u64) -> Result<bool, StreamsError> {
        let journal = self.stream(subject::JOURNAL_STREAM).await?;
        // It may have been trimmed further by now. Without a snapshot to begin with, what is left could not be read.
        let Some(first) = message(&journal, from).await? else {
            return Ok(journal.cached_info().state.first_sequence > from);
        };
        if !stored(&first)?.begins_snapshot() {
            tracing::error!(from, "the journal is not trimmed: there is no snapshot");
            return Ok(false);
        }
        let before = messages(&journal);
        journal.purge().sequence(from).await.map_err(|error| unusable(subject::JOURNAL_STREAM, error))?;
        tracing::info!(from, before, "the journal is trimmed to a snapshot");
        Ok(true)
    }

    /// Fences stay: an instance that lags behind looks for the last one that it knows of.
    async fn trim_control(&self, from: u64) -> Result<(), StreamsError> {
        // A purge up to sequence 0 would be one of everything.
        if from <= 1 {
            return Ok(());
        }
        let control = self.stream(subject::CONTROL_STREAM).await?;
        for subjects in [subject::COMMANDS, subject::REPLIES] {
            let purge = control.purge().filter(subjects).sequence(from);
            purge.await.map_err(|error| unusable(subject::CONTROL_STREAM, error))?;
        }
        tracing::info!(from, before = messages(&control), "ended runs are purged from the control stream");
        Ok(())
    }
}

fn messages(stream: &Stream) -> u64 {
    stream.cached_info().state.messages
}
