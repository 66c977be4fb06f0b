//! Remembers, across reboots, which kernels a reboot should bring.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use os_upgrade_systems::debian::kernel::{Awaited, Pending};
use os_upgrade_worker_sdk::{BootIdSource, HandlerResult};

use crate::system::before::replace;

/// The file with the kernels that the next reboot should bring.
#[derive(Debug)]
pub(super) struct AwaitedKernels {
    path: PathBuf,
    boot_id: BootIdSource,
    /// Announcements and handlers look at the same time.
    writing: Mutex<()>,
}

impl AwaitedKernels {
    pub(super) const fn new(path: PathBuf, boot_id: BootIdSource) -> Self {
        Self { path, boot_id, writing: Mutex::new(()) }
    }

    fn read(&self) -> io::Result<Awaited> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Awaited::default()),
            text => Ok(Awaited::parse(&text?)),
        }
    }

    /// The kernels that no reboot has failed to bring.
    pub(super) fn attainable<'a>(&self, pending: &'a [Pending]) -> HandlerResult<Vec<&'a Pending>> {
        let awaited = self.read().map_err(|error| self.failed("read", &error))?;
        Ok(awaited.attainable(pending, &self.boot_id.read()?.0).collect())
    }

    /// Awaits `pending`; `installed` are the installed kernels.
    pub(super) fn add(&self, pending: &[&Pending], installed: &[String]) -> HandlerResult {
        let boot = self.boot_id.read()?.0;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read().map_err(|error| self.failed("read", &error))?;
        let mut awaited = before.clone();
        awaited.add(pending.iter().map(|pending| pending.kernel.as_str()), &boot, installed);
        if awaited != before {
            replace(&self.path, awaited.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Awaits no kernel any more.
    pub(super) fn clear(&self) -> HandlerResult {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove", &error).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn failed(&self, what: &str, error: &io::Error) -> String {
        format!("cannot {what} {}: {error}", self.path.display())
    }
}
