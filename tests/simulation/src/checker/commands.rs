//! Commands in the control stream.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, CommandId, Outcome, Reply};

use super::Checker;
use crate::locks::LockServer;
use crate::time::Micros;

/// A command that was stored.
#[derive(Debug, Clone)]
pub(super) struct CommandSeen {
    pub(super) id: CommandId,
    pub(super) not_after: DateTime<Utc>,
    /// Whether a worker has been given it.
    pub(super) given: bool,
    /// Whether a reply names it.
    pub(super) replied: bool,
    /// Whether its handler was begun.
    pub(super) executed: bool,
}

impl Checker {
    /// A command leaves an orchestrator whose clock shows `wall`.
    pub(crate) fn command_sent(&mut self, id: &CommandId, not_after: DateTime<Utc>, wall: DateTime<Utc>) {
        if wall >= not_after {
            self.violated("S2", format!("{id} is sent at {wall}, after its not-after {not_after}"));
        }
    }

    /// A command that was sent at `sent` stands in the stream.
    pub(crate) fn command_stored(
        &mut self,
        sequence: u64,
        id: &CommandId,
        not_after: DateTime<Utc>,
        sent: Micros,
        locks: &LockServer,
    ) {
        if let Some(earlier) = self.ids.insert(id.clone(), sequence) {
            self.violated("once", format!("{id} stands in the stream at {earlier} and at {sequence}"));
        }
        match self.runs.get(&id.run) {
            None => self.violated("S2", format!("{id} belongs to no run")),
            Some(run) => {
                if run.end_shown.is_some_and(|shown| shown < sent) {
                    self.violated("S2", format!("{id} is sent after its run's end"));
                } else if run.not_after != not_after {
                    self.violated("S2", format!("{id} has another not-after than its run"));
                }
            }
        }
        self.check_enrolled(id, sent);
        let seen = CommandSeen { id: id.clone(), not_after, given: false, replied: false, executed: false };
        self.commands.insert(sequence, seen);
        match id.action {
            Action::Prepare => {}
            Action::Upgrade | Action::Reboot => self.step_commanded(sequence, id, locks),
        }
    }

    /// A worker is given a command.
    pub(crate) fn delivered(&mut self, sequence: u64) {
        if let Some(command) = self.commands.get_mut(&sequence) {
            command.given = true;
        }
    }

    /// A command has been deleted.
    pub(crate) fn command_deleted(&mut self, sequence: u64) {
        let Some(command) = self.commands.get(&sequence) else { return };
        let ended = self.runs.get(&command.id.run).is_none_or(|run| run.ended.is_some());
        let (id, given) = (command.id.clone(), command.given);
        if !ended && self.host(&id.host).is_some() && !self.was_given_up(&id) {
            self.violated("once", format!("{id} is deleted while its run goes on"));
        }
        if !given {
            self.step_undone(&id.host, sequence);
        }
    }

    /// Whether the host's part in its run is over by the journal.
    fn was_given_up(&self, id: &CommandId) -> bool {
        let run = self.follower.state.run.as_ref().filter(|run| run.id == id.run);
        run.and_then(|run| run.host(&id.host)).is_some_and(|host| host.status.is_final())
    }

    /// A reply stands in the stream.
    pub(crate) fn reply_stored(
        &mut self,
        host: usize,
        sequence: u64,
        payload: &[u8],
        in_reply_to: Option<&str>,
    ) {
        let Ok(reply) = Reply::parse(payload) else { return };
        let in_reply_to: Option<u64> = in_reply_to.and_then(|text| text.parse().ok());
        if let Some(command) = in_reply_to.and_then(|command| self.commands.get_mut(&command)) {
            command.replied = true;
            let run = command.id.run.clone();
            let newest = self.hosts[host].upgrade.is_none_or(|newest| in_reply_to >= Some(newest));
            if newest && reply.action == Action::Upgrade && reply.result == Outcome::RebootRequired {
                self.hosts[host].upgrade = in_reply_to;
                self.hosts[host].reboot_due = Some(run);
            }
        }
        let name = self.hosts[host].name.clone();
        self.step_answered(&name, &reply, in_reply_to, sequence);
    }
}
