//! A backup of a running site: a copy of the store, brought up to the end that the journal had when the backup began.
//! So history and state are consistent, and every change that was answered by then is included.

use std::path::Path;

use chrono::Utc;
use os_upgrade_bus::Bus;
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::subject;
use os_upgrade_settings::{NatsMode, Settings, Store};
use os_upgrade_shell::instance::{Acknowledged, losses};
use os_upgrade_shell::journal::Tip;
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_store::{self as store, Folded, Projector};

use super::archive::{self, At, Kind, Manifest};
use super::site::{Site, connect_to, layout};
use super::{RecoveryError, collect};

/// The most records applied at once.
const BATCH_MAX: usize = 256;

/// Writes a backup of the site to `path`.
///
/// # Errors
/// Store or bus cannot be read, the bus has lost data, or `path` cannot be written.
pub async fn backup(settings: Settings, path: &Path, replace: bool) -> Result<Manifest, RecoveryError> {
    if !replace && path.exists() {
        return Err(archive::ArchiveError::Exists(path.to_owned()).into());
    }
    let directory = &settings.store.path;
    if !directory.is_dir() {
        return Err(RecoveryError::NoDirectory(directory.clone()));
    }
    if let Some(bus) = running_bus(&settings).await {
        return backup_from(&settings, &bus?, path, replace).await;
    }
    // The managed server does not run: it is started for the time of the backup.
    let site = Site::open(settings).await?;
    let written = backup_from(&site.settings, &site.bus, path, replace).await;
    site.close().await;
    written
}

/// Records that a backup was made, for `/metrics`.
///
/// # Errors
/// The data directory cannot be written.
pub fn record(store: &Store) -> Result<(), RecoveryError> {
    let path = store.last_backup();
    // A new file each time: another user may own the last one.
    let written = tempfile::NamedTempFile::new_in(&store.path).and_then(|file| Ok(file.persist(&path)?));
    written.map(drop).map_err(|source| RecoveryError::File { path, source })
}

/// The bus; `None` if it is a managed one that does not run.
async fn running_bus(settings: &Settings) -> Option<Result<Bus, RecoveryError>> {
    match settings.nats.mode() {
        NatsMode::External { .. } => Some(connect_to(settings, None).await),
        NatsMode::Managed => {
            match managed_nats::running(&settings.store.nats()).await.map_err(anyhow::Error::from) {
                Ok(url) => Some(connect_to(settings, Some(url?)).await),
                Err(error) => Some(Err(error.into())),
            }
        }
    }
}

async fn backup_from(
    settings: &Settings,
    bus: &Bus,
    path: &Path,
    replace: bool,
) -> Result<Manifest, RecoveryError> {
    let site = layout(settings).site;
    let database = settings.store.database();
    let scratch = archive::scratch_directory(archive::parent(path))?;
    let copy = scratch.path().join(archive::STORE);
    store::copy(&database, site, &copy).await?;
    let folded = store::fold(&copy, site).await?.ok_or_else(|| RecoveryError::EmptyStore(database))?;

    let known = Acknowledged::of_store(&folded.position.knowledge()).with(&Tip::default(), &folded.state);
    let streams = bus.inspect(&known).await?;
    let lost: Vec<_> = losses(&known, &streams).iter().map(ToString::to_string).collect();
    if !lost.is_empty() {
        return Err(RecoveryError::Lost(format!("NATS has lost data: {}", lost.join("; "))));
    }
    let folded = catch_up(bus, site, &copy, folded).await?;

    let write = |name: &str, bytes: &[u8]| {
        let path = scratch.path().join(name);
        std::fs::write(&path, bytes).map_err(|source| RecoveryError::File { path, source })
    };
    let state = serde_json::to_vec_pretty(&folded.state).expect("a state serialises");
    write(archive::STATE, &state)?;
    // Settings display no passwords in URLs, and name credentials by their files.
    write(archive::SETTINGS, format!("{settings:#?}\n").as_bytes())?;
    let manifest = Manifest {
        format: archive::FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        kind: Kind::Backup,
        site: site.to_owned(),
        made_at: Utc::now(),
        position: Some(At {
            journal: folded.position.sequence,
            append_id: folded.position.append_id.to_string(),
            control: folded.position.control,
            control_end: bus.last_sequence(subject::CONTROL_STREAM).await?,
        }),
        files: std::collections::BTreeMap::new(),
    };
    Ok(archive::write(path, replace, manifest, scratch.path())?)
}

/// Brings the copy up to the journal's end, because the store of a running site is a little behind.
///
/// # Errors
/// The rest of the journal cannot be read, or the store cannot be written.
pub(super) async fn catch_up(
    bus: &Bus,
    site: &str,
    copy: &Path,
    folded: Folded,
) -> Result<Folded, RecoveryError> {
    let Folded { state, position, .. } = folded;
    let tip = Tip { sequence: position.sequence, append_id: Some(position.append_id.clone()) };
    let mut follower = Follower::resume(state, tip);
    let mut records = Vec::new();
    collect::follow(bus, &mut follower, |record| records.push(record)).await?;
    let mut projector = Projector::open(copy, site).await?;
    let mut follows = position.sequence;
    for part in records.chunk_by(|earlier, later| later.follows == earlier.sequence) {
        // The journal was trimmed beyond what the store has, so that its records go on from a snapshot.
        let mut is_after_gap = part.first().is_some_and(|first| first.follows > follows);
        for batch in part.chunks(BATCH_MAX) {
            if std::mem::take(&mut is_after_gap) {
                projector.apply_after_gap(&position.streams, batch).await?;
            } else {
                projector.apply(&position.streams, Some(follows), batch).await?;
            }
            follows = batch.last().map_or(follows, |last| last.sequence);
        }
    }
    projector.sync().await?;
    projector.close().await?;
    let folded = store::fold(copy, site).await?;
    folded.ok_or_else(|| RecoveryError::EmptyStore(copy.to_owned()))
}
