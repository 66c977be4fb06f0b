//! Access to a managed nats-server: one user, whose password only the owner of the server's directory can read.
//! Orchestrators and workers of that owner can connect, and others to whom the password is given.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use async_nats::{ConnectOptions, ServerAddr};

use crate::random::{self, RandomError};

/// The user with which orchestrators and workers connect.
const USER: &str = "os-upgrade";
/// The random bytes of a password, which has twice as many hexadecimal digits.
const BYTES: usize = 32;

/// A password, which is never displayed.
pub(super) struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    /// A new password.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn random() -> Result<Self, RandomError> {
        let mut bytes = [0; BYTES];
        random::fill(&mut bytes)?;
        let mut digits = String::with_capacity(2 * BYTES);
        for byte in bytes {
            let _ = write!(digits, "{byte:02x}");
        }
        Ok(Self(digits))
    }

    /// The password of the URL in the file `path`; `None` if the file is missing or has no complete password.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let url = match fs::read_to_string(path) {
            Ok(url) => url,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let password =
            url.trim().parse::<ServerAddr>().ok().and_then(|url| url.password().map(str::to_owned));
        let whole = |password: &String| {
            password.len() == 2 * BYTES && password.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        Ok(password.filter(whole).map(Self))
    }

    /// The URL for clients of the server on this port of loopback, with user and password.
    pub(super) fn url(&self, port: u16) -> String {
        format!("nats://{USER}:{}@127.0.0.1:{port}", self.0)
    }

    /// The line of the server's configuration with user and password.
    pub(super) fn authorization(&self) -> String {
        format!("authorization {{ user: {USER:?}, password: {:?} }}", self.0)
    }
}

/// Writes a file that only its owner may read, atomically.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    // A new temporary file has mode 0600 from the start.
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Whether the server at `url` accepts the user and password in it, and JetStream answers.
pub(super) async fn answers(url: &str) -> bool {
    let Ok(client) = connect(url).await else {
        return false;
    };
    async_nats::jetstream::new(client).query_account().await.is_ok()
}

/// A client of the server at `url`, with the user and password in it.
///
/// # Errors
/// It is not a URL, or the server does not answer, or it rejects user and password.
pub async fn connect(url: &str) -> Result<async_nats::Client, async_nats::ConnectError> {
    let (options, address) = options(url)?;
    options.connect(address).await
}

/// The options and the address with which [`connect`] connects.
///
/// # Errors
/// It is not a URL.
pub fn options(url: &str) -> io::Result<(ConnectOptions, ServerAddr)> {
    let address: ServerAddr = url.parse()?;
    let options = match (address.username(), address.password()) {
        (Some(user), Some(password)) => {
            ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned())
        }
        (Some(_) | None, _) => ConnectOptions::new(),
    };
    // The client library logs addresses, so the password must not be in them.
    let mut bare = address.into_inner();
    let removed = bare.set_username("").and_then(|()| bare.set_password(None));
    removed.map_err(|()| io::Error::other("a server's address has a host"))?;
    Ok((options, ServerAddr::from_url(bare)?))
}
