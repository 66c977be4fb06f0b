//! The Unix socket, on which programs of this machine call fleet's dialects without tokens: their user is the caller.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use os_upgrade_auth::{Caller, Rights, Role};
use os_upgrade_platform::local_socket::{self, LocalSocket, SocketError};
use os_upgrade_protocol::text::one_line;
use os_upgrade_settings::{self as settings, FleetSocketRole, Text};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

/// How many names of users are looked up at once: a directory server that does not answer must not take all threads.
static NAME_LOOKUPS: Semaphore = Semaphore::const_new(4);
/// How long a connection waits for the name of its user. Without it, the history has the user's id alone.
const NAME_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of a name is shown, in characters.
const NAME_CHARS_MAX: usize = 64;

/// A Unix socket that serves fleet's dialects.
#[derive(Debug)]
pub struct FleetSocket {
    socket: LocalSocket,
    role: Role,
}

impl FleetSocket {
    /// Listens on the socket of `settings`, if they have one.
    ///
    /// # Errors
    /// Its group is unknown, somebody listens already, or the file cannot be made.
    pub async fn from_settings(settings: &settings::Api) -> Result<Option<Self>, SocketError> {
        let Some(path) = &settings.fleet_socket else { return Ok(None) };
        let role = match settings.fleet_socket_role {
            FleetSocketRole::Viewer => Role::Viewer,
            FleetSocketRole::Admin => Role::Admin,
        };
        let group = settings.fleet_socket_group.as_ref().map(Text::as_str);
        Ok(Some(Self { socket: LocalSocket::bind(path, group).await?, role }))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.socket.path()
    }

    /// Waits for a connection.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, LocalUser)> {
        let (stream, id) = self.socket.accept().await?;
        Ok((stream, LocalUser { id, role: self.role }))
    }
}

/// A user of this machine who has connected to the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocalUser {
    id: u32,
    role: Role,
}

impl LocalUser {
    /// The caller of the user's requests, with the user's name if there is one.
    pub(super) async fn caller(self) -> Caller {
        let name = tokio::time::timeout(NAME_TIMEOUT, user_name(self.id)).await.ok().flatten();
        let actor = match name {
            Some(name) => format!("{self} ({})", one_line(&name, NAME_CHARS_MAX)),
            None => self.to_string(),
        };
        Caller { actor, rights: Rights::Role(self.role) }
    }
}

impl fmt::Display for LocalUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix:{}", self.id)
    }
}

async fn user_name(user: u32) -> Option<String> {
    let permit = NAME_LOOKUPS.acquire().await.ok()?;
    let found = tokio::task::spawn_blocking(move || {
        let name = local_socket::user_name(user);
        drop(permit);
        name
    });
    found.await.ok()?
}
