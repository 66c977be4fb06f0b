//! Reading the streams: messages as lines of JSON, the journal to its end, and commands that no reply has answered.

use std::collections::{BTreeMap, btree_map};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use os_upgrade_bus::Bus;
use os_upgrade_bus::scan::{ScanError, Scanned};
use os_upgrade_kernel::control::SentCommand;
use os_upgrade_kernel::{ControlMessage, Outstanding, State};
use os_upgrade_protocol::{Action, Announcement, CommandId, GroupName, HostName, Outcome, Reply, subject};
use os_upgrade_shell::control_stream;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::JournalError;
use os_upgrade_shell::journal::follow::Follower;
use serde_json::json;

use super::RecoveryError;

/// Writes every message of `stream` to `path`, one JSON object a line: sequence, time, subject, headers, payload in
/// base64.
pub(super) async fn messages(bus: &Bus, stream: &str, path: &Path) -> Result<(), RecoveryError> {
    let failed = |source| RecoveryError::File { path: path.to_owned(), source };
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    bus.scan(stream, 1, |message| Ok(write_line(&mut file, message)?)).await?;
    file.flush().map_err(failed)
}

fn write_line(file: &mut impl std::io::Write, message: &Scanned<'_>) -> std::io::Result<()> {
    let line = json!({
        "sequence": message.sequence,
        "time": message.time().map(|time| time.to_rfc3339()),
        "subject": message.subject(),
        "headers": message.headers(),
        "payload": STANDARD.encode(message.payload()),
    });
    writeln!(file, "{line}")
}

/// Follows the journal from the follower's tip to its present end; `take` is called with each record.
pub(super) async fn follow(
    bus: &Bus,
    follower: &mut Follower,
    mut take: impl FnMut(Committed),
) -> Result<(), RecoveryError> {
    let from = follower.tip.sequence + 1;
    let mut broken = None;
    let scanned = bus.scan(subject::JOURNAL_STREAM, from, |message| {
        match message.as_journal().and_then(|read| follower.read(message.sequence, &read)) {
            Ok(committed) => {
                committed.into_iter().for_each(&mut take);
                Ok(())
            }
            Err(error) => {
                let text = error.to_string();
                broken = Some(error);
                Err(text.into())
            }
        }
    });
    match (scanned.await, broken) {
        (_, Some(error)) => Err(error.into()),
        (Err(error), None) => Err(error.into()),
        (Ok(()), None) => Ok(()),
    }
}

/// Folds the journal from its beginning to its end. The inner error: the journal is damaged.
pub async fn fold_journal(bus: &Bus) -> Result<Result<Follower, JournalError>, RecoveryError> {
    let mut follower = Follower::default();
    match follow(bus, &mut follower, |_| {}).await {
        Ok(()) => Ok(Ok(follower)),
        Err(RecoveryError::Journal(error)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// Commands in the control stream that may be under way, or may still be carried out, and whose outcome `state` does
/// not have: those of its active run, and those after its position. `known_stream`: the position is one in this stream.
pub(super) async fn outstanding(
    bus: &Bus,
    state: &State,
    known_stream: bool,
) -> Result<Vec<Outstanding>, ScanError> {
    let from = if known_stream { first_unaccounted(state) } else { 1 };
    let mut open = OpenCommands::default();
    bus.scan(subject::CONTROL_STREAM, from, |message| {
        open.apply(message);
        Ok(())
    })
    .await?;
    // A run of which nothing is known, such as one whose start is lost, has taken the groups that hosts announce.
    let mut announced = BTreeMap::new();
    if open.0.keys().any(|(host, _)| known_group(state, host).is_none()) {
        bus.scan(subject::WORKERS_STREAM, 1, |message| {
            if let Ok(Announcement { host, group: Some(group), .. }) = Announcement::parse(message.payload())
            {
                announced.insert(host, group);
            }
            Ok(())
        })
        .await?;
    }
    let group_of = |host: &HostName| {
        let group = known_group(state, host).or_else(|| announced.get(host));
        group.unwrap_or(&state.settings.default_group).clone()
    };
    let open = open.0.into_iter().map(|((host, _), (sequence, id))| Outstanding {
        group: group_of(&host),
        host,
        owner: id.run.into(),
        action: id.action,
        sequence,
    });
    Ok(open.collect())
}

/// The first sequence of a command that may be outstanding: `state` has the outcomes of all earlier ones.
fn first_unaccounted(state: &State) -> u64 {
    let hosts = state.run.iter().flat_map(|run| run.hosts().values());
    let sent = hosts.filter_map(|host| host.command?.sequence);
    sent.min().unwrap_or(u64::MAX).min(state.control + 1)
}

/// For every host, the last unsettled `prepare`, and the last unsettled command that changes the host.
#[derive(Default)]
struct OpenCommands(BTreeMap<(HostName, bool), (u64, CommandId)>);

impl OpenCommands {
    fn apply(&mut self, message: &Scanned<'_>) {
        let Some(raw) = message.as_control() else { return };
        let sequence = message.sequence;
        match control_stream::read(&raw) {
            ControlMessage::Command { host, id: Some(id) } => {
                self.0.insert((host, id.action == Action::Prepare), (sequence, id));
            }
            ControlMessage::Reply { host, reply: Ok(reply), in_reply_to } => {
                let key = (host, reply.action == Action::Prepare);
                let settled = |(command, id): &mut (u64, CommandId)| {
                    let command = SentCommand { action: id.action, sequence: *command };
                    command.answered_by(Some(&id.run), reply.action, &in_reply_to, sequence)
                        && is_settled(&reply)
                };
                if let btree_map::Entry::Occupied(mut open) = self.0.entry(key)
                    && settled(open.get_mut())
                {
                    open.remove();
                }
            }
            // Foreign or invalid messages settle nothing.
            ControlMessage::Command { id: None, .. }
            | ControlMessage::Reply { reply: Err(_), .. }
            | ControlMessage::Leader
            | ControlMessage::Unknown { .. } => {}
        }
    }
}

/// Whether the host has certainly finished the command and does not keep its slot.
fn is_settled(reply: &Reply) -> bool {
    match reply.action {
        Action::Prepare => true,
        Action::Upgrade | Action::Reboot => reply.result == Outcome::Done,
    }
}

/// The group of the host's slot, or else its group in the last runs.
fn known_group<'a>(state: &'a State, host: &HostName) -> Option<&'a GroupName> {
    let of_run = state.known_runs().find_map(|run| run.host(host)).map(|host| &host.group);
    let of_slot = state.slots.get(host).map(|slot| &slot.group);
    of_slot.or(of_run)
}
