//! Commands in the control stream.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Order, Owner, State};
use os_upgrade_protocol::{Action, CommandId, HostName};

use super::runs::Runs;
use super::violation::Violation;
use crate::time::Micros;

/// A command in the stream.
#[derive(Debug, Clone)]
pub(super) struct CommandSeen {
    pub(super) id: CommandId,
    pub(super) not_after: Option<DateTime<Utc>>,
    /// The boot to leave, if it names one.
    pub(super) leave: Option<String>,
    /// Whether it was delivered to its worker.
    given: bool,
    /// Whether a reply names it.
    pub(super) replied: bool,
    /// Whether its worker has begun to execute it, and has not dropped it since.
    pub(super) executed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Commands {
    by_sequence: BTreeMap<u64, CommandSeen>,
    sequences: BTreeMap<CommandId, u64>,
}

impl Commands {
    /// A command that was sent at `sent` is stored in the stream.
    pub(super) fn stored(
        &mut self,
        sequence: u64,
        order: &Order,
        sent: Micros,
        runs: &Runs,
    ) -> Result<(), Violation> {
        let Order { id, not_after, boot_id } = order;
        let seen = CommandSeen {
            id: id.clone(),
            not_after: *not_after,
            leave: boot_id.clone(),
            given: false,
            replied: false,
            executed: false,
        };
        self.by_sequence.insert(sequence, seen);
        if let Some(earlier) = self.sequences.insert(id.clone(), sequence) {
            let text = format!("{id} is in the stream at {earlier} and at {sequence}");
            return Err(Violation::new("once", text));
        }
        let wrong = |text| Err(Violation::new("S2", text));
        match runs.get(&id.run) {
            None if Owner::from(&id.run).entry().is_some() => Ok(()),
            None => wrong(format!("{id} belongs to no run")),
            Some(run) if run.end_shown.is_some_and(|shown| shown < sent) => {
                wrong(format!("{id} is sent after its run's end"))
            }
            Some(run) if Some(run.not_after) != *not_after => {
                wrong(format!("{id} has another not-after than its run"))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&CommandSeen> {
        self.by_sequence.get(&sequence)
    }

    /// A command is delivered to its worker.
    pub(super) fn delivered(&mut self, sequence: u64) {
        if let Some(command) = self.by_sequence.get_mut(&sequence) {
            command.given = true;
        }
    }

    /// A worker begins to execute a command.
    pub(super) fn begun(&mut self, sequence: u64) -> Result<&CommandSeen, Violation> {
        let Some(command) = self.by_sequence.get_mut(&sequence) else {
            return Err(Violation::new("worker", format!("command {sequence} was never stored")));
        };
        command.executed = true;
        Ok(command)
    }

    /// A worker, whose clock shows `wall`, drops a command without a reply. It may if the command was interrupted and is too
    /// late, but for an `upgrade`.
    pub(super) fn dropped(&mut self, sequence: u64, wall: DateTime<Utc>) {
        if let Some(command) = self.by_sequence.get_mut(&sequence) {
            let is_late = command.not_after.is_some_and(|not_after| wall > not_after);
            command.executed &= !is_late || command.id.action == Action::Upgrade;
        }
    }

    /// A reply names a command.
    pub(super) fn replied(&mut self, sequence: u64) -> Option<&CommandSeen> {
        let command = self.by_sequence.get_mut(&sequence)?;
        command.replied = true;
        Some(command)
    }

    /// The worker of `host` does not know any more which commands it has begun.
    pub(super) fn executions_forgotten(&mut self, host: &HostName) {
        for command in self.by_sequence.values_mut().filter(|command| command.id.host == *host) {
            command.executed = false;
        }
    }

    /// A command was deleted, which must not happen while the run goes on for its host, by the journal.
    pub(super) fn check_deleted(&self, sequence: u64, runs: &Runs, journal: &State) -> Result<(), Violation> {
        let Some(CommandSeen { id, .. }) = self.get(sequence) else { return Ok(()) };
        let ended = runs.get(&id.run).is_none_or(|run| run.ended.is_some());
        let run = journal.run.as_ref().filter(|run| run.id == id.run);
        let given_up = run.and_then(|run| run.host(&id.host)).is_some_and(|host| host.status.is_final());
        if !ended && !given_up {
            return Err(Violation::new("once", format!("{id} is deleted while its run goes on")));
        }
        Ok(())
    }

    /// The command at `sequence`, if it was not delivered.
    pub(super) fn if_undelivered(&self, sequence: u64) -> Option<&CommandId> {
        self.get(sequence).filter(|command| !command.given).map(|command| &command.id)
    }
}

/// A command leaves an orchestrator whose clock shows `wall`.
pub(super) fn check_sent(order: &Order, wall: DateTime<Utc>) -> Result<(), Violation> {
    let Order { id, not_after, .. } = order;
    match not_after {
        Some(not_after) if wall >= *not_after => {
            let text = format!("{id} is sent at {wall}, after its not-after {not_after}");
            Err(Violation::new("S2", text))
        }
        Some(_) | None => Ok(()),
    }
}
