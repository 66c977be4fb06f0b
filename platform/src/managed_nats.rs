//! A nats-server that this process runs as a child: configured, started, watched, stopped, restarted.
//!
//! It is for one machine: it listens on loopback, and clients need the password that is created at its first start. It
//! ends with this process, however that ends ([`crate::child`]). It is not restarted automatically: if it ends, the
//! caller decides what to do.
//!
//! Everything it needs is in one directory, which is locked while it runs: `nats-server.conf` (written at each start),
//! `jetstream/`, `port` (the last port, kept because workers use it), `url` (the URL for clients, with user and password),
//! `nats-server.log`, and `nats-server.err` (output before the log is open). Files with the password are readable only by
//! their owner.

mod access;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;

use access::Password;
pub use access::{connect, options};

use crate::child::{self, Child};
use crate::data_directory;
use crate::file_lock;
use crate::nats_server::{NatsServer, NotFound, configuration, log_file, port, quoted};
use crate::random::RandomError;

/// How long a server may take from its start to its first answer to a client.
pub const START_WAIT: Duration = Duration::from_secs(30);
/// How long a server may take to end after SIGTERM before it is killed.
pub const STOP_GRACE: Duration = Duration::from_secs(10);
/// Time between two checks whether the server is up.
const POLL: Duration = Duration::from_millis(10);

/// Why the managed nats-server is not running.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no usable binary.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// Its directory cannot be used.
    #[error("cannot use {} for the managed nats-server", path.display())]
    Directory {
        /// The file or directory that could not be created, written or read.
        path: PathBuf,
        source: io::Error,
    },
    /// No password can be created.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// Another process runs a server in the directory.
    #[error("{} is in use by another process", directory.display())]
    InUse {
        /// The server's directory.
        directory: PathBuf,
    },
    /// The process could not be started.
    #[error("cannot start {}", path.display())]
    Spawn {
        /// The binary.
        path: PathBuf,
        source: io::Error,
    },
    /// It ended before it accepted clients.
    #[error("the managed nats-server exited during startup ({status}): {detail} (log: {})", log.display())]
    Ended {
        /// The exit status.
        status: ExitStatus,
        /// The last line it logged.
        detail: String,
        /// The path of its log.
        log: PathBuf,
    },
    /// It did not accept clients in time, and was killed.
    #[error("the managed nats-server accepted no client within {} s: {detail} (log: {})", START_WAIT.as_secs(), log.display())]
    NotReady {
        /// The last line it logged.
        detail: String,
        /// The path of its log.
        log: PathBuf,
    },
}

/// The options of a managed nats-server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The server's directory, created if missing. Existing data in it is used.
    pub directory: PathBuf,
    /// The port on 127.0.0.1. If absent, the port it last had in this directory, or else a free one.
    pub port: Option<u16>,
}

/// A managed nats-server, running or stopped. Dropping it kills the server.
#[derive(Debug)]
pub struct ManagedNats {
    server: NatsServer,
    files: Files,
    password: Password,
    port: u16,
    child: Child,
    /// Holds the lock of the directory while it is open.
    _lock: fs::File,
}

impl ManagedNats {
    /// Starts `server` and waits until it accepts clients and JetStream answers, at most [`START_WAIT`].
    ///
    /// # Errors
    /// The directory cannot be used, or the server does not come up; the last line of its log is in the error.
    pub async fn start(server: NatsServer, options: &Options) -> Result<Self, Error> {
        let files = Files::new(&options.directory)?;
        let lock = files.lock()?;
        let password = Password::read(&files.url).map_err(unusable(&files.url))?;
        if password.is_none() && files.store.exists() {
            let url = files.url.display();
            tracing::info!(%url, "the managed nats-server has a new password: workers need the URL in this file");
        }
        let password = password.map_or_else(Password::random, Ok)?;
        let (child, port) = match (options.port, files.last_port()) {
            (None, Some(last)) => match launch(&server, &files, &password, Some(last)).await {
                Err(Error::Ended { detail, .. }) => {
                    tracing::warn!(
                        port = last,
                        detail,
                        "cannot start on the port used before, taking a free one"
                    );
                    launch(&server, &files, &password, None).await?
                }
                started => started?,
            },
            (port, _) => launch(&server, &files, &password, port).await?,
        };
        fs::write(&files.port, port.to_string()).map_err(unusable(&files.port))?;
        access::write(&files.url, &format!("{}\n", password.url(port))).map_err(unusable(&files.url))?;
        Ok(Self { server, files, password, port, child, _lock: lock })
    }

    /// Starts the server again after it has ended, on the same port and directory. Does nothing if it is running.
    ///
    /// # Errors
    /// As for [`ManagedNats::start`]; also if another process has taken the port meanwhile.
    pub async fn start_again(&mut self) -> Result<(), Error> {
        if self.child.status().is_some() {
            (self.child, _) = launch(&self.server, &self.files, &self.password, Some(self.port)).await?;
        }
        Ok(())
    }

    /// Stops the server gracefully (SIGTERM), and kills it after [`STOP_GRACE`].
    pub async fn stop(&self) -> ExitStatus {
        self.child.stop(STOP_GRACE).await
    }

    /// Stops the server gracefully (SIGTERM), and kills it after `grace`.
    pub async fn stop_within(&self, grace: Duration) -> ExitStatus {
        self.child.stop(grace).await
    }

    /// Ends the server at once (SIGKILL).
    pub async fn kill(&self) -> ExitStatus {
        self.child.kill().await
    }

    /// Sends the server a signal, such as SIGSTOP to test how clients cope.
    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Resolves when the server that runs now has ended, for whatever reason.
    pub fn exited(&self) -> impl Future<Output = ExitStatus> + Send + 'static {
        self.child.exited()
    }

    /// The URL for clients: `nats://USER:PASSWORD@127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.password.url(self.port)
    }

    /// The port on 127.0.0.1, the same after each start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server started last.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The path of the server's log.
    pub fn log(&self) -> &Path {
        &self.files.log
    }
}

/// The path of the file with the URL for clients of the server in `directory`, `nats://USER:PASSWORD@127.0.0.1:PORT`.
pub fn url_file(directory: &Path) -> PathBuf {
    directory.join("url")
}

/// The URL of the server that runs in `directory`, with user and password; `None` if none answers. Nothing is changed.
///
/// # Errors
/// The URL cannot be read: only the owner of the directory may read it.
pub async fn running(directory: &Path) -> Result<Option<String>, Error> {
    let path = url_file(directory);
    let url = match fs::read_to_string(&path) {
        Ok(url) => url.trim().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(&path)(error)),
    };
    // Another process may have the port by now: only a locked directory has a running server.
    if file_lock::holder(&directory.join("lock")).is_none() {
        return Ok(None);
    }
    Ok(access::answers(&url).await.then_some(url))
}

/// The files of a server, all in its directory.
#[derive(Debug)]
struct Files {
    directory: PathBuf,
    config: PathBuf,
    store: PathBuf,
    log: PathBuf,
    stderr: PathBuf,
    port: PathBuf,
    url: PathBuf,
}

impl Files {
    /// Creates the directory. Paths are absolute, so that they do not depend on the current directory.
    fn new(directory: &Path) -> Result<Self, Error> {
        let made = data_directory::create(directory).and_then(|()| directory.canonicalize());
        let directory = made.map_err(unusable(directory))?;
        Ok(Self {
            config: directory.join("nats-server.conf"),
            store: directory.join("jetstream"),
            log: log_file(&directory),
            stderr: directory.join("nats-server.err"),
            port: directory.join("port"),
            url: url_file(&directory),
            directory,
        })
    }

    /// Locks the directory: two servers in it would destroy the data.
    fn lock(&self) -> Result<fs::File, Error> {
        let path = self.directory.join("lock");
        let file = fs::File::create(&path).map_err(unusable(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse { directory: self.directory.clone() }),
            Err(fs::TryLockError::Error(source)) => Err(unusable(&path)(source)),
        }
    }

    fn last_port(&self) -> Option<u16> {
        fs::read_to_string(&self.port).ok()?.trim().parse().ok()
    }

    fn write_config(&self, password: &Password, port: Option<u16>) -> Result<(), Error> {
        let config = format!(
            "# Written by os-upgrade at each start of its managed nats-server.\n\
             {own}\
             {authorization}\n\
             logfile_size_limit: 16MB\n\
             logfile_max_num: 3\n\
             jetstream {{\n\
             \x20 store_dir: {store}\n\
             \x20 # Acknowledged messages are on disk.\n\
             \x20 sync_interval: always\n\
             }}\n",
            authorization = password.authorization(),
            own = configuration(&self.directory, port),
            store = quoted(&self.store),
        );
        access::write(&self.config, &config).map_err(unusable(&self.config))
    }

    /// Removes ports files of killed servers. They would never be removed otherwise, and a pid may be reused.
    fn remove_stale_ports(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.directory).map_err(unusable(&self.directory))?;
        for entry in entries.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "ports") {
                fs::remove_file(entry.path()).map_err(unusable(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// The last line of the server's standard error, or else of its log.
    fn last_words(&self) -> String {
        let last = |path: &Path| {
            let bytes = fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
            // Without process id and time: `[8668] 2026/11/21 03:22:12.829774 [FTL] ...`.
            Some(line.rsplit_once("[FTL] ").map_or(line, |(_, text)| text).trim().to_owned())
        };
        last(&self.stderr).or_else(|| last(&self.log)).unwrap_or_else(|| "it said nothing".to_owned())
    }
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Directory { path, source }
}

async fn launch(
    server: &NatsServer,
    files: &Files,
    password: &Password,
    port: Option<u16>,
) -> Result<(Child, u16), Error> {
    files.remove_stale_ports()?;
    files.write_config(password, port)?;
    let stderr = fs::File::create(&files.stderr).map_err(unusable(&files.stderr))?;
    let mut command = child::command(&server.path);
    command.arg("--config").arg(&files.config);
    command.current_dir(&files.directory).stderr(stderr);
    let child = Child::start(command).map_err(|source| Error::Spawn { path: server.path.clone(), source })?;
    let ready = tokio::time::timeout(START_WAIT, accepts_clients(files, password, child.pid()));
    tokio::select! {
        status = child.exited() => Err(Error::Ended {
            status,
            detail: files.last_words(),
            log: files.log.clone(),
        }),
        ready = ready => match ready {
            Ok(port) => Ok((child, port)),
            Err(_) => Err(Error::NotReady {
                detail: files.last_words(),
                log: files.log.clone(),
            }),
        },
    }
}

/// Resolves to the port once JetStream answers a client.
async fn accepts_clients(files: &Files, password: &Password, pid: u32) -> u16 {
    let port = loop {
        if let Some(port) = port(&files.directory, pid) {
            break port;
        }
        tokio::time::sleep(POLL).await;
    };
    while !access::answers(&password.url(port)).await {
        tokio::time::sleep(POLL).await;
    }
    port
}

#[cfg(test)]
mod tests;
