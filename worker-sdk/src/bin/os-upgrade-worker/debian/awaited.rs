//! Remembers, across reboots, which kernels a reboot should bring.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use os_upgrade_systems::debian::kernel::{Awaited, Pending};
use os_upgrade_worker_sdk::{BootIdSource, HandlerResult};

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

    /// The first of the kernels that no reboot has failed to bring.
    pub(super) fn first_attainable<'a>(&self, pending: &'a [Pending]) -> HandlerResult<Option<&'a Pending>> {
        let awaited = self.read().map_err(|error| self.failed("read", &error))?;
        Ok(awaited.first_attainable(pending, &self.boot_id.read()?.0))
    }

    /// Awaits `kernel`; `installed` are the installed kernels.
    pub(super) fn add(&self, kernel: &str, installed: &[String]) -> HandlerResult {
        let boot = self.boot_id.read()?.0;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read().map_err(|error| self.failed("read", &error))?;
        let mut awaited = before.clone();
        awaited.add(kernel, &boot, installed);
        if awaited != before {
            self.replace(&awaited.to_string()).map_err(|error| self.failed("write", &error))?;
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

    /// Replaces the file, so that it survives a power cut during the reboot.
    fn replace(&self, text: &str) -> io::Result<()> {
        let new = self.path.with_extension("kernels.new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }

    fn failed(&self, what: &str, error: &io::Error) -> String {
        format!("cannot {what} {}: {error}", self.path.display())
    }
}
