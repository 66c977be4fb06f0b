//! The token file: its format, who may have written it, and how it is written.
//!
//! TOML, an entry `[[token]]` each, so that an operator can read it and take one out. It holds no secret, but whoever
//! writes it is admin; so it is refused when others than its reader and root can.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Datelike as _, TimeDelta, Timelike as _, Utc};
use os_upgrade_platform::file_watch::Version;
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};

use super::{Caller, Rights, Role, SecretHash, TokenName};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Most entries: each bearer token is compared with all.
pub(super) const TOKENS_MAX: usize = 1_000;

/// What a new file may be: read and written by its owner.
const MODE: u32 = 0o600;

const HEAD: &str = "# Who may call the API of os-upgrade. Written by `os-upgrade token`; it is read again when it changes.\n";

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("there is no token file {}; `os-upgrade token create` makes one", path.display())]
    Missing {
        /// Its path.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read the token file {}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the token file {}", path.display())]
    Unwritable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Who is not trusted could have written it.
    #[error("the token file {} {why}", path.display())]
    Unsafe {
        /// Its path.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// It is not of the format.
    #[error("the token file {} is not valid: {why}", path.display())]
    Invalid {
        /// Its path.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
}

/// How the owner of an entry shows who he is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// By a secret.
    Secret(SecretHash),
    /// By a client certificate with this common name, or this name among its alternative ones.
    Certificate(String),
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name, the only one in the file.
    pub name: TokenName,
    /// What it lets do.
    pub rights: Rights,
    /// What is to be shown.
    pub proof: Proof,
    /// When it was made.
    pub created: DateTime<Utc>,
    /// From when on it is not valid any more, if ever.
    pub expires: Option<DateTime<Utc>>,
}

impl Token {
    /// A new one, made at `now` and valid for `lifetime`, if not for ever. Its times have whole seconds, as in the file.
    pub fn new(
        name: TokenName,
        rights: Rights,
        proof: Proof,
        now: DateTime<Utc>,
        lifetime: Option<Duration>,
    ) -> Self {
        let whole = |time: DateTime<Utc>| time.with_nanosecond(0).unwrap_or(time);
        // What ends after the last year that can be written never ends.
        let end =
            |lifetime| TimeDelta::from_std(lifetime).ok().and_then(|delta| now.checked_add_signed(delta));
        let expires = lifetime.and_then(end).filter(|end| end.year() <= 9_999).map(whole);
        Self { name, rights, proof, created: whole(now), expires }
    }

    /// Whether it is not valid any more.
    pub fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Who calls with it.
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
            // Of callers only.
            Rights::Groups(_) | Rights::Nothing => (None, None),
        };
        let (certificate, salt, sha256) = match &token.proof {
            Proof::Secret(salted) => {
                let [salt, hash] = salted.texts();
                (None, Some(salt), Some(hash))
            }
            Proof::Certificate(name) => (Some(name.clone()), None, None),
        };
        let Token { name, created, expires, .. } = token.clone();
        Self { name, role, group, certificate, salt, sha256, created, expires }
    }
}

/// Reads the file at `path`, to be shown or changed, whoever it belongs to.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn read(path: &Path) -> Result<Tokens, FileError> {
    read_owned(path, None).map(|(tokens, _)| tokens)
}

/// The same, as a server does: it must belong to this process's user or root.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn read_trusted(path: &Path) -> Result<Tokens, FileError> {
    read_version(path).map(|(tokens, _)| tokens)
}

/// Reads the file at `path`, which must belong to this process's user or root, with what to compare it with later.
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
    trusted(&metadata, reader).map_err(unsafe_because)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    let tokens = parse(&text).map_err(|why| FileError::Invalid { path: path.to_owned(), why })?;
    Ok((tokens, Version::of(&metadata)))
}

/// Whether only root and `reader`, if that matters, can have written it.
fn trusted(metadata: &fs::Metadata, reader: Option<u32>) -> Result<(), String> {
    if metadata.mode() & 0o022 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!(
            "can be written by others (mode {mode:03o}): chmod go-w it, and look at what it holds"
        ));
    }
    let owner = metadata.uid();
    if let Some(reader) = reader.filter(|reader| owner != 0 && owner != *reader) {
        return Err(format!("belongs to user {owner}: it must be root's, or of user {reader}, who reads it"));
    }
    Ok(())
}

/// Reads what a file holds.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<Tokens, String> {
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("more than {FILE_BYTES_MAX} bytes"));
    }
    let document: Document = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        format!("line {line}: {}", error.message())
    })?;
    if document.tokens.len() > TOKENS_MAX {
        return Err(format!("more than {TOKENS_MAX} entries"));
    }
    let mut tokens = Tokens::new();
    for entry in document.tokens {
        let name = entry.name.clone();
        let token = entry.into_token().map_err(|why| format!("token {name}: {why}"))?;
        if tokens.iter().any(|other| other.name == name) {
            return Err(format!("token {name}: there are two of this name"));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// What a file with these entries holds.
///
/// # Errors
/// They cannot be written down.
pub fn text(tokens: &[Token]) -> Result<String, toml::ser::Error> {
    let document = Document { tokens: tokens.iter().map(Entry::of).collect() };
    toml::to_string(&document).map(|body| format!("{HEAD}\n{body}"))
}

/// Puts what `change` makes of the file at `path` in its place. Others who do the same wait.
///
/// # Errors
/// It cannot be written, or `change` fails, which is given what the file holds, or why it cannot be read.
pub fn edit<E: From<FileError>>(
    path: &Path,
    change: impl FnOnce(Result<Tokens, FileError>) -> Result<Tokens, E>,
) -> Result<(), E> {
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    // The file itself is replaced, so a lock on it would be on the one before.
    let directory = File::open(directory_of(&behind(path))).map_err(unwritable)?;
    directory.lock().map_err(unwritable)?;
    let tokens = change(read(path))?;
    Ok(write(path, &tokens)?)
}

/// Where `path` leads through symbolic links.
fn behind(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Puts `tokens` in place of the file at `path`, at once and durably. A new file can be read by its owner only; one that
/// is there keeps its owner and who can read it.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, tokens: &[Token]) -> Result<(), FileError> {
    let unwritable = |source| FileError::Unwritable { path: path.to_owned(), source };
    let text = text(tokens).map_err(|error| unwritable(io::Error::other(error)))?;
    // What could not be read again must not be written.
    parse(&text).map_err(|why| FileError::Invalid { path: path.to_owned(), why })?;
    replace(&behind(path), &text).map_err(unwritable)
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let directory = directory_of(target);
    // Its mode is 0600 from the start.
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
