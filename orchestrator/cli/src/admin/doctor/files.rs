//! What is on this machine: data directory, store, nats-server.

use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use os_upgrade_adapters::fleetlock::FleetLockClient;
use os_upgrade_platform::file_lock;
use os_upgrade_platform::nats_server;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_store::{self as store, FoldError, Folded, OpenError};

use super::check::Check;

/// With less free space than this, in bytes, a run of a large site may not fit any more.
const FREE_WARNING: u64 = 1024 * 1024 * 1024;
/// With less than this, hardly anything does.
const FREE_PROBLEM: u64 = 64 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

pub(super) fn data_directory(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "data directory";
    let path = &settings.store.path;
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Check::warning(
                NAME,
                format!("{shown} is not there"),
                "it is made at the first start",
            )];
        }
        Err(error) => return vec![Check::problem(NAME, format!("{shown}: {error}"), "check [store] path")],
        Ok(found) if !found.is_dir() => {
            return vec![Check::problem(NAME, format!("{shown} is not a directory"), "check [store] path")];
        }
        Ok(_) => {}
    }
    let writable = match access(path, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Check::ok(NAME, format!("{shown} can be written")),
        Err(error) => {
            let advice = "make it writable for the user of the orchestrator, and its file system too";
            Check::problem(NAME, format!("{shown} cannot be written: {error}"), advice)
        }
    };
    vec![writable, free_space(path), user_of(path)]
}

fn free_space(path: &Path) -> Check {
    const NAME: &str = "free space";
    let advice = "make room: with a full disk nothing is lost, and nothing goes on";
    match statvfs(path) {
        Err(error) => Check::warning(NAME, format!("not known: {error}"), "check the file system"),
        Ok(found) => {
            let free = found.blocks_available() * found.fragment_size();
            let text = format!("{} MiB", free / MIB);
            if free < FREE_PROBLEM {
                Check::problem(NAME, text, advice)
            } else if free < FREE_WARNING {
                Check::warning(NAME, text, advice)
            } else {
                Check::ok(NAME, text)
            }
        }
    }
}

fn user_of(path: &Path) -> Check {
    const NAME: &str = "used by";
    match file_lock::holder(&path.join("lock")) {
        Some(pid) => Check::ok(NAME, format!("process {pid}, an orchestrator or a restoration")),
        None => Check::ok(NAME, "nobody"),
    }
}

/// The store, and what its facts lead to.
pub(super) async fn store(settings: &Settings) -> (Option<Folded>, Vec<Check>) {
    const NAME: &str = "store";
    let path = settings.store.database();
    let site = settings.site.name.as_str();
    let folded = match store::fold(&path, site).await {
        Ok(Some(folded)) => folded,
        Ok(None) => {
            return (None, vec![Check::ok(NAME, format!("{} is not there or empty", path.display()))]);
        }
        Err(error) => return (None, vec![Check::problem(NAME, with_causes(&error), advice(&error))]),
    };
    let position = &folded.position;
    let found = format!(
        "site {site}, {} facts up to journal message {}, control message {}",
        folded.facts, position.sequence, position.control
    );
    let whole = match store::integrity(&path, site).await {
        Ok(None) => Check::ok(NAME, found),
        Ok(Some(damage)) => Check::problem(NAME, format!("it is damaged: {damage}"), MADE_AGAIN),
        Err(error) => Check::problem(NAME, with_causes(&error), advice(&error)),
    };
    (Some(folded), vec![whole])
}

const MADE_AGAIN: &str = "stop the orchestrator and move the file away: it is made again from the journal; if that is lost \
                          too, restore a backup";

fn advice(error: &FoldError) -> &'static str {
    match error {
        FoldError::Open(OpenError::Damaged { .. } | OpenError::Older { .. })
        | FoldError::Store(_)
        | FoldError::Unfit { .. } => MADE_AGAIN,
        FoldError::Open(OpenError::Foreign { .. } | OpenError::OtherSite { .. }) => {
            "check [store] path and [site] name: the file is not this site's"
        }
        FoldError::Open(OpenError::Newer { .. }) | FoldError::Unknown { .. } => {
            "use the version of the program that wrote it, or a newer one"
        }
        FoldError::Open(
            OpenError::NotWritable { .. }
            | OpenError::InUse { .. }
            | OpenError::Schema { .. }
            | OpenError::Other { .. },
        ) => "check the file and its permissions",
    }
}

/// What the client of a lock server needs here, where there is one. The server is not asked: that would take a slot.
pub(super) fn lock_server(settings: &Settings) -> Option<Check> {
    const NAME: &str = "lock server";
    let url = settings.fleet_lock.url.as_ref()?;
    Some(match FleetLockClient::of_settings(&settings.fleet_lock) {
        Ok(_) => Check::ok(NAME, format!("{url} can be asked; whether it answers was not tried")),
        Err(error) => Check::problem(NAME, with_causes(&error), "correct the file, or the key that names it"),
    })
}

/// The managed nats-server, where one is wanted.
pub(super) async fn nats_server(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "nats-server";
    match settings.nats.mode() {
        NatsMode::External { .. } => return Vec::new(),
        NatsMode::Managed => {}
    }
    let program = match nats_server::find().await {
        Ok(found) => Check::ok(NAME, format!("{} {}", found.path.display(), found.version)),
        Err(error) => Check::problem(NAME, error.to_string(), "install one, or give [nats] url"),
    };
    vec![program, streams_directory(&settings.store.nats())]
}

fn streams_directory(path: &Path) -> Check {
    const NAME: &str = "stream directory";
    let streams = path.join("jetstream");
    let shown = streams.display();
    match fs::read_dir(&streams) {
        Ok(_) => match access(&streams, AccessFlags::W_OK | AccessFlags::X_OK) {
            Ok(()) => Check::ok(NAME, format!("{shown}")),
            Err(error) => {
                Check::problem(NAME, format!("{shown} cannot be written: {error}"), "make it writable")
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::ok(NAME, format!("{shown} is not there yet"))
        }
        Err(error) => Check::problem(NAME, format!("{shown}: {error}"), "make it readable"),
    }
}
