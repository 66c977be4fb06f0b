//! Contexts: named instances in the user's configuration directory, with what their API needs.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use os_upgrade_platform::plain_file;
use os_upgrade_settings::HttpUrl;
use serde::{Deserialize, Serialize};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The most URLs of a context.
pub(crate) const URLS_MAX: usize = 16;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Why contexts cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextError {
    /// Neither variable names a directory.
    #[error("there is no configuration directory: neither XDG_CONFIG_HOME nor HOME is set")]
    NoDirectory,
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file can be read, but must not be used.
    #[error("{}: {why}", path.display())]
    Invalid {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    /// No context has this name.
    #[error("there is no context {0}: `os-upgrade context list` shows those there are")]
    Unknown(ContextName),
}

/// The name of a context: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, the first one a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ContextName(String);

impl ContextName {
    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContextName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if starts_well && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_legal) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a name has 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', and begins with a letter or digit"
        ))
    }
}

impl TryFrom<String> for ContextName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ContextName> for String {
    fn from(name: ContextName) -> Self {
        name.0
    }
}

impl std::fmt::Display for ContextName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An instance, and what its API needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Context {
    /// The API of each instance that may be called, in the order in which they are tried: one at least. In the file a single one is a
    /// text, and several are a list.
    #[serde(rename = "url", serialize_with = "url_texts", deserialize_with = "urls")]
    pub(crate) urls: Vec<HttpUrl>,
    /// A PEM file with certificate authorities to trust instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    /// A file with the token to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
}

fn url_texts<S: serde::Serializer>(urls: &[HttpUrl], serializer: S) -> Result<S::Ok, S::Error> {
    match urls {
        [url] => serializer.collect_str(url),
        urls => serializer.collect_seq(urls.iter().map(ToString::to_string)),
    }
}

fn urls<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<HttpUrl>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    let texts = match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    };
    if texts.is_empty() || texts.len() > URLS_MAX {
        return Err(serde::de::Error::custom(format!("a context has 1 to {URLS_MAX} URLs")));
    }
    texts.iter().map(|text| context_url(text).map_err(serde::de::Error::custom)).collect()
}

/// Parses the URL of a context.
///
/// # Errors
/// It is not an HTTP URL, or has a password, which belongs into a file of its own.
pub(crate) fn context_url(text: &str) -> Result<HttpUrl, String> {
    let url = crate::address::http_url(text)?;
    if url.has_credentials() {
        return Err("a context has no user and password in its URL".to_owned());
    }
    Ok(url)
}

/// Every context of a user, and which of them is used unless another is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<ContextName>,
    /// By name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<ContextName, Context>,
}

impl Contexts {
    /// The context of this name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(&self, name: &ContextName) -> Result<&Context, ContextError> {
        self.contexts.get(name).ok_or_else(|| ContextError::Unknown(name.clone()))
    }

    /// The context that is used unless another is named.
    ///
    /// # Errors
    /// The file names one that does not exist.
    pub(crate) fn current(&self) -> Result<Option<(&ContextName, &Context)>, ContextError> {
        self.current.as_ref().map(|name| Ok((name, self.named(name)?))).transpose()
    }
}

/// The file with the contexts of the user whose environment has these variables.
///
/// # Errors
/// No variable says where it is.
pub(crate) fn path(variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, ContextError> {
    // The XDG specification has relative paths ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let directory = absolute("XDG_CONFIG_HOME").or_else(home).ok_or(ContextError::NoDirectory)?;
    Ok(directory.join("os-upgrade/contexts.toml"))
}

/// Reads the contexts; there are none without a file.
///
/// # Errors
/// The file cannot be read or understood, or others can write it: it decides where a token is sent.
pub(crate) fn read(path: &Path) -> Result<Contexts, ContextError> {
    let unreadable = |source| ContextError::Unreadable { path: path.to_owned(), source };
    let invalid = |why| ContextError::Invalid { path: path.to_owned(), why };
    let (file, metadata) = match plain_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
        opened => opened.map_err(unreadable)?,
    };
    plain_file::check_writers(&metadata, plain_file::examiner()).map_err(invalid)?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(invalid(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    toml::from_str(&text).map_err(|error| invalid(error.message().to_owned()))
}

/// Writes the contexts atomically, readable by the user only.
///
/// # Errors
/// They cannot be written.
pub(crate) fn write(path: &Path, contexts: &Contexts) -> Result<(), ContextError> {
    let text = toml::to_string(contexts).map_err(io::Error::other);
    let written = text.and_then(|text| replace(path, &text));
    written.map_err(|source| ContextError::Unwritable { path: path.to_owned(), source })
}

/// Replaces a file atomically, readable by the user only; its directory is created if missing.
///
/// # Errors
/// It cannot be written.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("it has no directory"))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(Permissions::from_mode(0o600)).tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Contexts {
        let context = |urls: &[&str], token: Option<&str>| Context {
            urls: urls.iter().map(|url| url.parse().unwrap()).collect(),
            ca: token.map(|_| "/etc/ca.pem".into()),
            token_file: token.map(PathBuf::from),
        };
        let name = |text: &str| text.parse::<ContextName>().unwrap();
        let contexts = [
            (name("home"), context(&["http://127.0.0.1:8646/"], None)),
            (
                name("prod-1"),
                context(&["https://a.example/", "https://b.example/"], Some("/home/anna/token")),
            ),
        ];
        Contexts { current: Some(name("prod-1")), contexts: contexts.into() }
    }

    #[test]
    fn contexts_are_kept_for_their_user_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/os-upgrade/contexts.toml");
        assert_eq!(read(&path).unwrap(), Contexts::default());
        write(&path, &sample()).unwrap();
        assert_eq!(read(&path).unwrap(), sample());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let refused = read(&path).unwrap_err().to_string();
        assert!(refused.contains("can be written by others"), "{refused}");
    }

    #[test]
    fn mistakes_in_the_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("contexts.toml");
        for (text, expected) in [
            ("colour = 'red'", "unknown field `colour`"),
            ("[contexts.a]\nurl = 'http://h'\ntoken = 'x'", "unknown field `token`"),
            ("[contexts.a]\nurl = 'ftp://h'", "an http:// or https:// URL is expected"),
            ("[contexts.a]\nurl = 'http://me:secret@h'", "no user and password"),
            ("[contexts.a]\nurl = []", "a context has 1 to 16 URLs"),
            ("[contexts.a]\nurl = ['http://h', 'ftp://h']", "an http:// or https:// URL is expected"),
            ("[contexts.'a b']\nurl = 'http://h'", "a name has 1 to 64 letters"),
        ] {
            fs::write(&path, text).unwrap();
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        fs::write(&path, "current = 'b'").unwrap();
        let missing = read(&path).unwrap().current().unwrap_err().to_string();
        assert!(missing.starts_with("there is no context b"), "{missing}");
    }

    #[test]
    fn the_file_is_in_the_configuration_directory() {
        let path = |set: &[(&str, &str)]| {
            let value =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            path(value).ok().map(|path| path.display().to_string())
        };
        let (home, xdg) = (("HOME", "/home/anna"), ("XDG_CONFIG_HOME", "/etc/anna"));
        assert_eq!(path(&[home, xdg]).as_deref(), Some("/etc/anna/os-upgrade/contexts.toml"));
        let by_home = Some("/home/anna/.config/os-upgrade/contexts.toml");
        assert_eq!(path(&[home]).as_deref(), by_home);
        assert_eq!(path(&[home, ("XDG_CONFIG_HOME", "relative")]).as_deref(), by_home);
        assert_eq!(path(&[("HOME", "")]), None);
    }
}
