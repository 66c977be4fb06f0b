//! Checks of this machine: data directory, store, lock server client, nats-server.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use os_upgrade_adapters::fleet_lock_client::FleetLockClient;
use os_upgrade_platform::{data_directory, managed_nats, nats_server, plain_file};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::time;
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_store::{self as store, Extent, FoldError, Folded, OpenError};

use super::check::Check;

/// With less free space than this, in bytes, the records of a large site's run may not fit.
const FREE_WARNING: u64 = 1024 * 1024 * 1024;
/// With less free space than this, in bytes, the orchestrator is about to stop working.
const FREE_PROBLEM: u64 = 64 * 1024 * 1024;

const MIB: u64 = 1024 * 1024;

pub(super) fn data_directory(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "data directory";
    let path = &settings.store.path;
    let shown = path.display();
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Check::warning(
                NAME,
                format!("{shown} does not exist"),
                "it is created at the first start",
            )];
        }
        Err(error) => return vec![Check::problem(NAME, format!("{shown}: {error}"), "check [store] path")],
        Ok(found) if !found.is_dir() => {
            return vec![Check::problem(NAME, format!("{shown} is not a directory"), "check [store] path")];
        }
        Ok(found) => found,
    };
    let writers = plain_file::check_writers(&found, None).err().map(|why| {
        Check::problem(NAME, format!("{shown} {why}"), "whoever can write to it can change the history")
    });
    let writable = match access(path, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Check::ok(NAME, format!("{shown} is writable")),
        Err(error) => {
            let advice = "make it writable for the orchestrator's user, and check that its file system is mounted writable";
            Check::problem(NAME, format!("{shown} is not writable: {error}"), advice)
        }
    };
    writers.into_iter().chain([writable, free_space(path), user_of(path)]).collect()
}

fn free_space(path: &Path) -> Check {
    const NAME: &str = "free space";
    let advice = "free some space: with a full disk nothing is lost, but nothing works";
    match statvfs(path) {
        Err(error) => Check::warning(NAME, format!("unknown: {error}"), "check the file system"),
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
    match data_directory::user(path) {
        Some(pid) => Check::ok(NAME, format!("process {pid}, an orchestrator or a restoration")),
        None => Check::ok(NAME, "no process"),
    }
}

/// The store; also returns the state folded from its facts, unless it is empty or cannot be read.
pub(super) async fn store(settings: &Settings) -> (Option<Folded>, Vec<Check>) {
    const NAME: &str = "store";
    let path = settings.store.database();
    let site = settings.site.name.as_str();
    let folded = match store::fold(&path, site).await {
        Ok(Some(folded)) => folded,
        Ok(None) => {
            let found = format!("{} does not exist or is empty", path.display());
            // A running orchestrator has created it, and fills it once it has read the journal.
            let check = match data_directory::user(&settings.store.path) {
                Some(pid) if path.exists() => Check::warning(
                    NAME,
                    format!("process {pid} has stored nothing in {} so far", path.display()),
                    "it waits for NATS, or has just begun: see os-upgrade cluster status",
                ),
                Some(pid) => Check::problem(
                    NAME,
                    format!("{found}, and process {pid} uses it"),
                    "restart the orchestrator, so that it is rebuilt from the journal",
                ),
                None => Check::ok(NAME, found),
            };
            return (None, vec![check]);
        }
        Err(error) => return (None, vec![Check::problem(NAME, with_causes(&error), advice(&error))]),
    };
    let (position, extent) = (&folded.position, folded.extent);
    let mut found = format!(
        "site {site}, up to journal message {}, control message {}",
        position.sequence, position.control
    );
    if let Some(since) = extent.since {
        let _ = write!(found, ", history since {}", time::format(since));
    }
    if extent.gaps > 0 {
        let _ = write!(
            found,
            ", with {} gaps: another instance may have what was recorded meanwhile",
            extent.gaps
        );
    }
    let whole = match store::integrity(&path, site).await {
        Ok(None) => Check::ok(NAME, found),
        Ok(Some(damage)) => Check::problem(NAME, format!("it is damaged: {damage}"), REBUILD),
        Err(error) => Check::problem(NAME, with_causes(&error), advice(&error)),
    };
    (Some(folded), vec![whole])
}

/// How large the history is.
pub(super) fn storage(Folded { facts, extent, .. }: &Folded) -> Check {
    let Extent { runs, bytes, log_bytes, since: _, gaps: _ } = extent;
    let found = format!("{bytes} bytes, {log_bytes} in its write-ahead log, {facts} facts, {runs} runs");
    Check::ok("storage of history", found)
}

const REBUILD: &str = "stop the orchestrator and move the file away: the next start rebuilds it from the journal; if that is \
                       lost too, restore a backup";

fn advice(error: &FoldError) -> &'static str {
    match error {
        FoldError::Open(OpenError::Damaged { .. } | OpenError::Older { .. })
        | FoldError::Store(_)
        | FoldError::Unfit { .. } => REBUILD,
        FoldError::Open(OpenError::Foreign { .. } | OpenError::OtherSite { .. }) => {
            "check [store] path and [site] name: the file is not this site's"
        }
        FoldError::Open(OpenError::Newer { .. }) | FoldError::Unknown { .. } => {
            "use the version of the program that wrote it, or a newer one"
        }
        FoldError::Open(OpenError::DiskFull { .. }) => "make room on its disk",
        FoldError::Open(
            OpenError::NotWritable { .. }
            | OpenError::InUse { .. }
            | OpenError::Schema { .. }
            | OpenError::Other { .. },
        ) => "check the file and its permissions",
    }
}

/// Whether the client of the lock server can be set up, if one is configured. The server is not called: that would take a
/// slot.
pub(super) fn lock_server(settings: &Settings) -> Option<Check> {
    const NAME: &str = "lock server";
    let url = settings.fleet_lock.url.as_ref()?;
    Some(match FleetLockClient::from_settings(&settings.fleet_lock) {
        Ok(_) => Check::ok(NAME, format!("the client for {url} can be set up; the server was not contacted")),
        Err(error) => {
            Check::problem(NAME, with_causes(&error), "correct the file, or the setting that names it")
        }
    })
}

/// The managed nats-server, if one is configured.
pub(super) async fn nats_server(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "nats-server";
    match settings.nats.mode() {
        NatsMode::External { .. } => return Vec::new(),
        NatsMode::Managed => {}
    }
    let program = match nats_server::find().await {
        Ok(found) => Check::ok(NAME, format!("{} {}", found.path.display(), found.version)),
        // The one that runs was started with another PATH, by `make dev` for instance.
        Err(_) if matches!(managed_nats::running(&settings.store.nats()).await, Ok(Some(_))) => {
            Check::warning(
                NAME,
                format!("one runs, but this PATH has none that is new enough ({})", nats_server::OLDEST),
                format!("install one there, or name it in {}, before the next start", nats_server::ENV),
            )
        }
        Err(error) => Check::problem(NAME, error.to_string(), "install one, or set [nats] url"),
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
                Check::problem(NAME, format!("{shown} is not writable: {error}"), "make it writable")
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Check::ok(NAME, format!("{shown} does not exist yet"))
        }
        Err(error) => Check::problem(NAME, format!("{shown}: {error}"), "make it readable"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn data_directory_that_others_may_write_to_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("[store]\npath = {:?}\n", directory.path());
        let settings = os_upgrade_settings::parse(None, &text, []).unwrap();
        for (mode, expected) in [(0o700, 3), (0o755, 3), (0o775, 4), (0o757, 4)] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(data_directory(&settings).len(), expected, "{mode:o}");
        }
    }
}
