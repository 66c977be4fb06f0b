//! The token file: its format, the check of its permissions, and how it is replaced.
//!
//! The file is TOML with an entry `[[token]]` for each token, so that an operator can read it and remove entries. It
//! contains no secrets, but write access to it means admin rights, so it is refused if users other than its reader and
//! root can write it.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Datelike as _, TimeDelta, Timelike as _, Utc};
use os_upgrade_platform::file_watch::Version;
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::GroupName;
use os_upgrade_protocol::text::one_line;
use serde::{Deserialize, Serialize};

use super::{Caller, Rights, Role, SecretHash, TokenName};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Most entries in a file: each bearer token is compared with all of them.
pub(super) const TOKENS_MAX: usize = 1_000;

/// The most of a mistake that is shown, in characters: it may contain a key of the file.
const MISTAKE_CHARS_MAX: usize = 200;

/// The mode of a new file: its owner can read and write it.
const MODE: u32 = 0o600;

const HEAD: &str = "# Who may call the API of os-upgrade. Written by `os-upgrade token`; it is read again when it changes.\n";

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("there is no token file {}; `os-upgrade token create` makes one", path.display())]
    Missing { path: PathBuf },
    /// The file cannot be read.
    #[error("cannot read the token file {}", path.display())]
    Unreadable {
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the token file {}", path.display())]
    Unwritable {
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// An untrusted user could have written the file.
    #[error("the token file {} {why}", path.display())]
    Unsafe {
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The file is malformed.
    #[error("the token file {} is not valid: {why}", path.display())]
    Invalid {
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
}

/// How the owner of a token authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// With a secret, of which the file has the hash.
    Secret(SecretHash),
    /// With a client certificate that has this common name or alternative name.
    Certificate(String),
}

/// A token: one entry of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The name, unique in the file.
    pub name: TokenName,
    /// What the token permits.
    pub rights: Rights,
    /// How the owner authenticates.
    pub proof: Proof,
    /// When the token was created.
    pub created: DateTime<Utc>,
    /// When the token expires; `None` means never.
    pub expires: Option<DateTime<Utc>>,
}

impl Token {
    /// A new token, created at `now` and valid for `lifetime`, or permanently. Times are cut to whole seconds, as in
    /// the file.
    pub fn new(
        name: TokenName,
        rights: Rights,
        proof: Proof,
        now: DateTime<Utc>,
        lifetime: Option<Duration>,
    ) -> Self {
        let whole = |time: DateTime<Utc>| time.with_nanosecond(0).unwrap_or(time);
        // A lifetime beyond the year 9999 cannot be written, and is permanent.
        let end =
            |lifetime| TimeDelta::from_std(lifetime).ok().and_then(|delta| now.checked_add_signed(delta));
        let expires = lifetime.and_then(end).filter(|end| end.year() <= 9_999).map(whole);
        Self { name, rights, proof, created: whole(now), expires }
    }

    /// Whether the token has expired at `now`.
    pub fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// The caller with this token.
    pub(super) fn caller(&self) -> Caller {
        Caller { actor: format!("token {}", self.name), rights: self.rights.clone() }
    }
}

/// The entries of a file.
pub type Tokens = Vec<Token>;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default, rename = "token")]
    tokens: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: TokenName,
    role: Option<Role>,
    group: Option<GroupName>,
    certificate: Option<String>,
    salt: Option<String>,
    sha256: Option<String>,
    created: DateTime<Utc>,
    expires: Option<DateTime<Utc>>,
}

impl Entry {
    fn into_token(self) -> Result<Token, &'static str> {
        let rights = match (self.role, self.group) {
            (Some(role), None) => Rights::Role(role),
            (None, Some(group)) => Rights::Group(group),
            (Some(_), Some(_)) | (None, None) => return Err("give either role or group"),
        };
        let proof = match (self.certificate, self.salt, self.sha256) {
            (None, Some(salt), Some(hash)) => {
                Proof::Secret(SecretHash::parse(&salt, &hash).ok_or("salt or sha256 is damaged")?)
            }
            (Some(_), None, None) if matches!(rights, Rights::Role(_)) => {
                return Err("a certificate is for a group, not for a role");
            }
            (Some(certificate), None, None) if !certificate.is_empty() => Proof::Certificate(certificate),
            _ => return Err("give either salt and sha256 or certificate"),
        };
        Ok(Token { name: self.name, rights, proof, created: self.created, expires: self.expires })
    }

    fn of(token: &Token) -> Self {
        let (role, group) = match &token.rights {
            Rights::Role(role) => (Some(*role), None),
            Rights::Group(group) => (None, Some(group.clone())),
            // Rights of callers, never of tokens.
            Rights::Groups(_) | Rights::Nothing => (None, None),
        };
        let (certificate, salt, sha256) = match &token.proof {
            Proof::Secret(hashed) => {
                let [salt, hash] = hashed.texts();
                (None, Some(salt), Some(hash))
            }
            Proof::Certificate(name) => (Some(name.clone()), None, None),
        };
        let Token { name, created, expires, .. } = token.clone();
        Self { name, role, group, certificate, salt, sha256, created, expires }
    }
}

/// Reads the file at `path`, to show or change it. It may belong to any user.
///
/// # Errors
/// The file is missing or unusable.
pub fn read(path: &Path) -> Result<Tokens, FileError> {
    read_owned(path, None).map(|(tokens, _)| tokens)
}

/// As [`read`], for a server: the file must belong to this process's user or root.
///
/// # Errors
/// The file is missing or unusable.
pub fn read_trusted(path: &Path) -> Result<Tokens, FileError> {
    read_version(path).map(|(tokens, _)| tokens)
}

/// As [`read_trusted`], with the version of the file, to detect changes.
pub(super) fn read_version(path: &Path) -> Result<(Tokens, Version), FileError> {
    read_owned(path, Some(nix::unistd::geteuid().as_raw()))
}

fn read_owned(path: &Path, reader: Option<u32>) -> Result<(Tokens, Version), FileError> {
    let unreadable = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound {
            return FileError::Missing { path: path.to_owned() };
        }
        FileError::Unreadable { path: path.to_owned(), source }
    };
    let (file, metadata) = plain_file::open(path).map_err(unreadable)?;
    let unsafe_because = |why: String| FileError::Unsafe { path: path.to_owned(), why };
    plain_file::check_writers(&metadata, reader).map_err(unsafe_because)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    let tokens = parse(&text).map_err(|why| FileError::Invalid { path: path.to_owned(), why })?;
    Ok((tokens, Version::of(&metadata)))
}

/// Parses the text of a token file.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<Tokens, String> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("more than {FILE_BYTES_MAX} bytes"));
    }
    let document: Document = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        format!("line {line}: {}", one_line(error.message(), MISTAKE_CHARS_MAX))
    })?;
    if document.tokens.len() > TOKENS_MAX {
        return Err(format!("more than {TOKENS_MAX} entries"));
    }
    let mut tokens = Tokens::new();
    for entry in document.tokens {
        let name = entry.name.clone();
        let token = entry.into_token().map_err(|why| format!("token {name}: {why}"))?;
        if tokens.iter().any(|other| other.name == name) {
            return Err(format!("token {name}: the name is used twice"));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// The text of a file with these tokens.
///
/// # Errors
/// They cannot be serialized.
pub fn text(tokens: &[Token]) -> Result<String, toml::ser::Error> {
    let document = Document { tokens: tokens.iter().map(Entry::of).collect() };
    toml::to_string(&document).map(|body| format!("{HEAD}\n{body}"))
}

/// Replaces the file at `path` by the result of `change`. Concurrent edits wait for each other.
///
/// # Errors
/// The file cannot be written, or `change` fails. `change` gets the tokens, or why they cannot be read.
pub fn edit<E: From<FileError>>(
    path: &Path,
    change: impl FnOnce(Result<Tokens, FileError>) -> Result<Tokens, E>,
) -> Result<(), E> {
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    // Lock the directory: the file itself is replaced, so a lock on it would be on the old one.
    let directory = File::open(directory_of(&resolve_links(path))).map_err(unwritable)?;
    directory.lock().map_err(unwritable)?;
    let tokens = change(read(path))?;
    Ok(write(path, &tokens)?)
}

/// The target of `path`, through symbolic links.
fn resolve_links(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces the file at `path` by one with `tokens`, atomically and durably. A new file is readable by its owner only;
/// an existing one keeps its owner and read permissions.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, tokens: &[Token]) -> Result<(), FileError> {
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    let text = text(tokens).map_err(|error| unwritable(io::Error::other(error)))?;
    // Never write a file that could not be read again.
    parse(&text).map_err(|why| FileError::Invalid { path: path.to_owned(), why })?;
    replace(&resolve_links(path), &text).map_err(unwritable)
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let directory = directory_of(target);
    // `tempfile` creates it with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    if let Ok(before) = fs::metadata(target) {
        fchown(file.as_file(), Some(before.uid()), Some(before.gid()))?;
        let mode = before.mode() & 0o644 | MODE;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}
