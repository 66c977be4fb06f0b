//! Carrying out a restoration. The power may fail after each step: run again, the restoration continues or begins again.
//! Until it is finished, no orchestrator uses the incomplete journal.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::Utc;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::append::AppendOutcome;
use os_upgrade_shell::journal::codec::{Kind as MessageKind, Message, encode};
use os_upgrade_shell::journal::{AppendId, Tip};
use os_upgrade_store::{self as store, Position, Projector, Streams};

use super::archive::{self, At, Kind, Manifest};
use super::plan::{Plan, SAVED};
use super::site::{HeldLease, Site};
use super::{RecoveryError, collect};

/// A completed step of a restoration. Steps are not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The site's previous data is saved in this file.
    Saved(PathBuf),
    /// The control stream is marked, and emptied or kept.
    ControlReady,
    /// The journal is created from scratch, and empty.
    JournalEmptied,
    /// The journal contains the state and the record of the restoration.
    JournalWritten,
    /// The store continues with the new journal.
    StoreReady,
    /// Orchestrators can start.
    Finished,
}

/// Carries out `plan`. `taken` is called after every step; if it fails, the restoration stops there, as after a power
/// cut.
///
/// # Errors
/// A step failed. Nothing is lost: run the restoration again.
pub async fn carry_out(
    site: &Site,
    plan: &Plan,
    lease: &HeldLease,
    mut taken: impl FnMut(&Step) -> Result<(), RecoveryError>,
) -> Result<(), RecoveryError> {
    site.bus.try_messages().await.map_err(anyhow::Error::from)?;
    let layout = site.layout();
    lease.check()?;
    let saved = save(site).await?;
    taken(&Step::Saved(saved))?;

    lease.check()?;
    let control = if plan.summary.control_kept {
        site.bus.begin_restoration(&plan.id).await?;
        site.bus.control_created().await?
    } else {
        let control = site.bus.renew_control(&layout, plan.summary.control_from, &plan.id).await?;
        control.cached_info().created
    };
    taken(&Step::ControlReady)?;

    lease.check()?;
    let journal = site.bus.renew_journal(&layout, plan.summary.journal_from, &plan.id).await?;
    let streams = Streams { journal_created_at: journal.cached_info().created, control_created_at: control };
    taken(&Step::JournalEmptied)?;

    let before =
        Tip { sequence: plan.summary.journal_from - 1, append_id: Some(plan.position.append_id.clone()) };
    let messages = messages(plan, &before);
    for (place, message) in (before.sequence..).zip(&messages) {
        append(site, place, message).await?;
    }
    let last = messages.last().expect("a restoration has a record");
    let committed = Committed {
        follows: before.sequence,
        sequence: before.sequence + messages.len() as u64,
        append_id: last.append_id.clone(),
        before: plan.state.clone(),
        record: plan.record.clone(),
    };
    taken(&Step::JournalWritten)?;

    lease.check()?;
    let position =
        Position { sequence: before.sequence, control: plan.state.control, streams, ..plan.position.clone() };
    match &plan.unpacked {
        None => rebase(site, &site.settings.store.database(), &position, committed).await?,
        Some(unpacked) => {
            let store = unpacked.path().join(archive::STORE);
            rebase(site, &store, &position, committed).await?;
            put_in_place(&store, &site.settings.store.database())?;
        }
    }
    taken(&Step::StoreReady)?;

    finish(site, lease).await?;
    taken(&Step::Finished)
}

/// Finishes a restoration of which only the marks on the streams are left.
///
/// # Errors
/// The bus does not answer.
pub async fn finish(site: &Site, lease: &HeldLease) -> Result<(), RecoveryError> {
    lease.check()?;
    Ok(site.bus.finish_restoration().await?)
}

/// The new journal's messages: the restored state, and the record that follows it. Their chain of append ids continues
/// the old journal's.
fn messages(plan: &Plan, before: &Tip) -> Vec<Message> {
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    let mut appends = 0;
    let mut next_id = || {
        appends += 1;
        AppendId::new(&format!("{nonce}-{appends}"))
    };
    let mut messages = encode(MessageKind::Snapshot { previous: 0 }, &plan.state, before, &mut next_id);
    let tip = Tip {
        sequence: before.sequence + messages.len() as u64,
        append_id: messages.last().map(|message| message.append_id.clone()),
    };
    messages.extend(encode(MessageKind::Record, &plan.record, &tip, &mut next_id));
    messages
}

async fn append(site: &Site, expected: u64, message: &Message) -> Result<(), RecoveryError> {
    match site.bus.append(expected, message).await {
        AppendOutcome::Stored { sequence } if sequence == expected + 1 => Ok(()),
        AppendOutcome::Full(limit) => Err(anyhow::Error::from(limit).into()),
        AppendOutcome::Stored { .. } | AppendOutcome::Unknown => {
            Err(RecoveryError::NotAppended(expected + 1))
        }
    }
}

/// Saves the site's present data to a file in the data directory.
async fn save(site: &Site) -> Result<PathBuf, RecoveryError> {
    let directory = &site.settings.store.path;
    let scratch = archive::scratch_directory(directory)?;
    let database = site.settings.store.database();
    let copy = scratch.path().join(archive::STORE);
    let position = if store::copy(&database, site.layout().site, &copy).await.is_ok() {
        store::fold(&copy, site.layout().site).await.ok().flatten()
    } else {
        // The store cannot be read and is about to be replaced, so the file is saved as it is.
        fs::copy(&database, &copy).map_err(|source| RecoveryError::File { path: database, source })?;
        None
    };
    for (stream, file) in SAVED {
        collect::messages(&site.bus, stream, &scratch.path().join(file)).await?;
    }
    let now = Utc::now();
    let manifest = Manifest {
        format: archive::FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        kind: Kind::Saved,
        site: site.layout().site.to_owned(),
        made_at: now,
        position: position.map(|folded| At {
            journal: folded.position.sequence,
            append_id: folded.position.append_id.to_string(),
            control: folded.position.control,
            control_end: folded.position.control,
        }),
        files: std::collections::BTreeMap::new(),
    };
    let path = directory.join(format!("saved-{}.tar.gz", now.format("%Y%m%dT%H%M%S%.3fZ")));
    archive::write(&path, false, manifest, scratch.path())?;
    Ok(path)
}

/// Moves the store at `path` to the new streams, adds the restoration to its history, and closes it.
async fn rebase(
    site: &Site,
    path: &Path,
    position: &Position,
    restored: Committed,
) -> Result<(), RecoveryError> {
    let mut projector = Projector::open(path, site.layout().site).await?;
    projector.rebase(position, restored).await?;
    Ok(projector.close().await?)
}

/// Replaces the present store, which has been saved, with the restored one.
fn put_in_place(store: &Path, database: &Path) -> Result<(), RecoveryError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RecoveryError::File { path, source }
    };
    fs::File::open(store).and_then(|file| file.sync_all()).map_err(failed(store))?;
    // The old store's log must not be applied to the new one.
    for suffix in ["-wal", "-shm"] {
        let mut log = database.as_os_str().to_owned();
        log.push(suffix);
        match fs::remove_file(&log) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(Path::new(&log))(error)),
        }
    }
    fs::rename(store, database).map_err(failed(database))?;
    archive::sync_directory(archive::parent(database)).map_err(failed(database))
}
