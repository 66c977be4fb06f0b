//! Planning a restoration, so that the operator sees it first. Nothing is changed here.

use std::path::{Path, PathBuf};

use chrono::Utc;
use os_upgrade_bus::streams::Unfinished;
use os_upgrade_kernel::{
    ApplyError, HostStatus, Record, Restoration, RestoreSource, SlotState, State, restoration,
};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{HostName, RunId, subject};
use os_upgrade_shell::instance::{Acknowledged, Loss, Stream, Streams, losses};
use os_upgrade_shell::journal::JournalError;
use os_upgrade_store::{self as store, Folded, History, Position};
use serde::Serialize;

use super::archive::{self, Kind, Manifest};
use super::backup::catch_up;
use super::site::{HeldLease, Site};
use super::{RecoveryError, collect};
use crate::loss;

/// The actor in the record of a restoration.
const ACTOR: &str = "os-upgrade restore";
/// The id of a restoration from the store.
const FROM_STORE: &str = "store";
/// Why there is something to restore although nothing else is missing.
const INTERRUPTED: &str = "an earlier restoration was interrupted before it had replaced the journal";

/// What is restored.
#[derive(Debug)]
pub enum Source {
    /// The store of this instance.
    Store,
    Backup {
        file: PathBuf,
        /// Whether the site's present data may be replaced.
        replace: bool,
    },
}

/// What a restoration has to do.
#[derive(Debug)]
pub enum Work {
    /// Nothing, for this reason.
    Nothing(String),
    /// An earlier restoration was interrupted just before its end: only its marks are left.
    FinishInterrupted,
    /// Carry out this plan.
    Restore(Box<Plan>),
}

/// A restoration, ready to be carried out.
#[derive(Debug)]
pub struct Plan {
    /// The summary for operators.
    pub summary: Summary,
    /// The state to restore.
    pub(super) state: State,
    /// Its position in the old journal.
    pub(super) position: Position,
    /// The record of the restoration, which ends the run and holds every slot that may be in use.
    pub(super) record: Record,
    /// The id of the restoration: that of the backup, or [`FROM_STORE`].
    pub(super) id: String,
    /// The unpacked backup with the store that replaces the present one; `None` for a restoration from the store.
    pub(super) unpacked: Option<tempfile::TempDir>,
}

/// A summary of a restoration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    pub site: String,
    /// What is restored: the store or a backup.
    pub source: String,
    /// Why there is something to do: one sentence for each loss, or the backup.
    pub because: Vec<String>,
    /// The last known journal sequence.
    pub known_to: u64,
    /// The number of facts up to there.
    pub facts: u64,
    /// The sequence of the new journal's first message.
    pub journal_from: u64,
    /// Whether the control stream is kept; else it is emptied and continues at `control-from`.
    pub control_kept: bool,
    /// The sequence of the control stream's next message.
    pub control_from: u64,
    /// The active run, which ends as failed.
    pub run_ended: Option<RunId>,
    /// Hosts of that run that were under way.
    pub under_way: Vec<HostName>,
    /// Hosts whose slot is held after the restoration, because they may still be at work.
    pub held: Vec<HostName>,
}

impl Plan {
    /// Plans the restoration of `source` at `site` while the site's `lease` is held, so that the plan still holds when it
    /// is carried out. Without it this is a dry run, which writes nothing to the site: the store is copied and a backup
    /// unpacked below the system's temporary directory instead of next to the store.
    ///
    /// # Errors
    /// An orchestrator is running, the source cannot be used, or the site has data that must not be replaced.
    pub async fn make(
        site: &Site,
        source: &Source,
        lease: Option<&HeldLease>,
    ) -> Result<Work, RecoveryError> {
        let dry_run = lease.is_none();
        if dry_run
            && let Some(holder) = site.bus.lease_holder().await?
            && holder.instance != site.directory.instance()
        {
            return Err(RecoveryError::Led(holder.instance));
        }
        match source {
            Source::Store => Box::pin(from_store(site, dry_run)).await,
            Source::Backup { file, replace } => {
                let beside = if dry_run { std::env::temp_dir() } else { site.settings.store.path.clone() };
                Box::pin(from_backup(site, file, *replace, &beside)).await
            }
        }
    }
}

async fn from_store(site: &Site, dry_run: bool) -> Result<Work, RecoveryError> {
    let database = site.settings.store.database();
    let folded = store::fold(&database, site.layout().site).await?;
    let folded = folded.ok_or_else(|| RecoveryError::EmptyStore(database.clone()))?;
    let mark = site.bus.unfinished_restoration().await?;
    let found = Comparison::of(site, &folded).await?;
    // If only the control stream has lost data, the journal may be ahead of the store. Its records must be kept.
    let folded = if mark.is_none() && found.has_more(&folded) {
        let scratch = dry_run.then(|| archive::scratch_directory(&std::env::temp_dir())).transpose()?;
        let caught_up = match &scratch {
            None => database.clone(),
            Some(scratch) => {
                let copy = scratch.path().join(archive::STORE);
                store::copy(&database, site.layout().site, &copy).await?;
                copy
            }
        };
        catch_up(&site.bus, site.layout().site, &caught_up, folded).await?
    } else {
        folded
    };
    let mut because = found.describe(site).await?;
    if because.is_empty() {
        match mark {
            Some(Unfinished { has_journal: true, .. }) => return Ok(Work::FinishInterrupted),
            // The control stream may have been emptied, and a commands be missing that the journal has.
            Some(Unfinished { has_journal: false, .. }) => because.push(INTERRUPTED.to_owned()),
            None => {}
        }
    }
    if because.is_empty() {
        match collect::fold_journal(&site.bus).await? {
            Ok(_) => return Ok(Work::Nothing(nothing_missing(&folded))),
            // A journal of another version is not lost and must not be replaced.
            Err(error) if error.is_of_another_version() => return Err(error.into()),
            Err(error) => because.push(with_causes(&error)),
        }
    }
    let origin = Origin { folded, source: RestoreSource::Store, because, id: FROM_STORE.to_owned() };
    origin.plan(site, &found, None).await
}

fn nothing_missing(folded: &Folded) -> String {
    let sequence = folded.position.sequence;
    format!("nothing is missing: the journal has everything that the store has, up to message {sequence}")
}

async fn from_backup(site: &Site, file: &Path, replace: bool, beside: &Path) -> Result<Work, RecoveryError> {
    let (unpacked, manifest, folded) = unpack(site, file, beside).await?;
    let id = archive::id(file)?;
    let resumed = site.bus.unfinished_restoration().await?.filter(|unfinished| unfinished.id == id);
    let present = store::fold(&site.settings.store.database(), site.layout().site).await;
    if resumed.as_ref().is_some_and(|unfinished| unfinished.has_journal)
        && let Ok(Some(present)) = &present
        && Comparison::of(site, present).await?.losses.is_empty()
    {
        return Ok(Work::FinishInterrupted);
    }
    let found = Comparison::of(site, &folded).await?;
    let existing = existing_data(&found.streams, matches!(present, Ok(None)));
    if let Some(existing) = existing.filter(|_| !replace && resumed.is_none()) {
        return Err(RecoveryError::NotEmpty(existing));
    }
    let kind = match manifest.kind {
        Kind::Backup => "backup",
        Kind::Saved => "file saved before a restoration",
    };
    let made = os_upgrade_protocol::time::format(manifest.made_at);
    let because = vec![format!("the {kind} {} of {made} is to be restored", file.display())];
    let origin = Origin { folded, source: RestoreSource::Backup, because, id };
    origin.plan(site, &found, Some(unpacked)).await
}

/// Unpacks a backup into a directory in `beside`, and folds its history.
async fn unpack(
    site: &Site,
    file: &Path,
    beside: &Path,
) -> Result<(tempfile::TempDir, Manifest, Folded), RecoveryError> {
    let unpacked = archive::scratch_directory(beside)?;
    let manifest = archive::read(file, site.layout().site, unpacked.path())?;
    let store = unpacked.path().join(archive::STORE);
    let folded = store::fold(&store, site.layout().site).await?;
    let folded = folded.ok_or_else(|| archive::ArchiveError::NoStore(file.to_owned()))?;
    let state = std::fs::read(unpacked.path().join(archive::STATE));
    if let Ok(state) = state {
        let state = serde_json::from_slice::<State>(&state);
        if !state.is_ok_and(|state| state == folded.state) {
            return Err(RecoveryError::Inconsistent(file.to_owned()));
        }
    }
    Ok((unpacked, manifest, folded))
}

/// A description of the data that would be replaced; `None` if there is none.
fn existing_data(streams: &Streams, store_is_empty: bool) -> Option<String> {
    let journal = streams.journal.filter(|journal| journal.last_sequence >= journal.first_sequence.max(1));
    let journal = journal.map(|journal| format!("its journal has messages up to {}", journal.last_sequence));
    let store = (!store_is_empty).then(|| "its store is not empty".to_owned());
    let both: Vec<_> = journal.into_iter().chain(store).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// The streams, and what they lack of the state to restore.
struct Comparison {
    streams: Streams,
    losses: Vec<Loss>,
}

impl Comparison {
    async fn of(site: &Site, folded: &Folded) -> Result<Self, RecoveryError> {
        let store = folded.position.knowledge();
        let tip = os_upgrade_shell::journal::Tip::default();
        let known = Acknowledged::of_store(&store).with(&tip, &folded.state);
        let streams = site.bus.inspect(&known).await?;
        let losses = losses(&known, &streams);
        Ok(Self { streams, losses })
    }

    /// Whether only the control stream has lost data, and the journal is ahead of the store.
    fn has_more(&self, folded: &Folded) -> bool {
        let of_journal = |loss: &Loss| loss.stream == Stream::Journal;
        let last = self.streams.journal.map_or(0, |journal| journal.last_sequence);
        !self.losses.is_empty() && !self.losses.iter().any(of_journal) && last > folded.position.sequence
    }

    fn control_kept(&self) -> bool {
        !self.losses.iter().any(|loss| loss.stream == Stream::Control)
    }

    /// A description of each loss, and of what the store knows about it.
    async fn describe(&self, site: &Site) -> Result<Vec<String>, RecoveryError> {
        let mut because: Vec<_> = self.losses.iter().map(ToString::to_string).collect();
        if !because.is_empty() {
            let history = History::open(&site.settings.store.database()).await?;
            because.extend(loss::describe_losses(&site.bus, &history, &self.losses).await);
        }
        Ok(because)
    }
}

/// What a restoration starts from.
struct Origin {
    folded: Folded,
    source: RestoreSource,
    because: Vec<String>,
    id: String,
}

impl Origin {
    async fn plan(
        self,
        site: &Site,
        found: &Comparison,
        unpacked: Option<tempfile::TempDir>,
    ) -> Result<Work, RecoveryError> {
        let Self { folded, source, because, id } = self;
        let Folded { state, position, facts, extent: _ } = folded;
        let control_kept = found.control_kept();
        let outstanding = collect::outstanding(&site.bus, &state, control_kept).await?;
        let control_end = found.streams.control.map_or(0, |control| control.last_sequence);
        // New commands must not get the sequences of earlier ones.
        let control = if control_kept { control_end } else { control_end.max(state.control) };
        let at = Utc::now();
        let restoration_of = Restoration { source, actor: ACTOR.to_owned(), control_kept, outstanding };
        let record = Record { at, control, facts: restoration(&state, restoration_of) };
        let after = state_after(&state, &record, &position)?;
        let journal_end = found.streams.journal.map_or(0, |journal| journal.last_sequence);
        // Nor must a new message get the sequence of a known one.
        let journal_from = match source {
            RestoreSource::Store => position.sequence + 1,
            RestoreSource::Backup => position.sequence.max(journal_end) + 1,
        };
        let under_way = state.run.iter().flat_map(|run| {
            let hosts = run.hosts().iter();
            hosts.filter(|(_, host)| HostStatus::is_under_way(host.status)).map(|(name, _)| name.clone())
        });
        let held = after.slots.iter().filter(|(_, slot)| slot.state == SlotState::Held);
        let summary = Summary {
            site: site.layout().site.to_owned(),
            source: source.as_str().to_owned(),
            because,
            known_to: position.sequence,
            facts,
            journal_from,
            control_kept,
            control_from: control + 1,
            run_ended: state.run.as_ref().map(|run| run.id.clone()),
            under_way: under_way.collect(),
            held: held.map(|(host, _)| host.clone()).collect(),
        };
        Ok(Work::Restore(Box::new(Plan { summary, state, position, record, id, unpacked })))
    }
}

fn state_after(state: &State, record: &Record, position: &Position) -> Result<State, RecoveryError> {
    let mut after = state.clone();
    let applied: Result<(), ApplyError> = after.apply_record(record);
    let sequence = position.sequence + 1;
    applied.map_err(|source| JournalError::Unfit { sequence, source })?;
    Ok(after)
}

/// The streams whose messages a restoration saves before it replaces or empties them.
pub(super) const SAVED: [(&str, &str); 2] =
    [(subject::JOURNAL_STREAM, archive::JOURNAL), (subject::CONTROL_STREAM, archive::CONTROL)];
