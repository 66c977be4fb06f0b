//! The URL of a provider, with `{host}` in place of the host's name, and the origin to which its credentials may go.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use os_upgrade_protocol::HostName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// What stands for the host's name.
const HOST: &str = "{host}";
/// The longest template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 2048;
/// What is escaped of a host's name: all but the unreserved characters of RFC 3986, so that it never leaves its segment.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a text is not the URL of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlTemplateError {
    #[error("a URL has at most {TEMPLATE_BYTES_MAX} bytes")]
    TooLong,
    #[error("a URL has neither white space, control characters nor backslashes")]
    Character,
    #[error("it is no URL such as https://files.example/{{host}}/app.conf: {0}")]
    Parse(#[from] url::ParseError),
    #[error("its scheme must be https, or http to this machine")]
    Scheme,
    #[error("http:// is only for this machine (localhost, 127.0.0.0/8, [::1]): use https://")]
    NotLoopback,
    #[error("it must not have a user or password: name a secret in `credentials`")]
    UserInfo,
    #[error("it must not have a fragment (#)")]
    Fragment,
    #[error("{HOST} can only stand in the path")]
    NotInPath,
    #[error("{HOST} is the only placeholder: other braces are written %7B and %7D")]
    Placeholder,
    #[error("its path must not have a segment . or ..")]
    DotSegment,
}

/// The host's name would make a segment `.` or `..` of the path, which would name another resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of the host would be a segment . or .. of the URL's path")]
pub struct HostUrlError;

/// The URL of a provider, such as `https://files.example/{host}/app.conf`: `https`, or `http` to this machine. `{host}` stands in the path,
/// as a segment or within one; without it all hosts get the same. As text it is what was parsed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct UrlTemplate {
    text: String,
    /// The path with `{host}`.
    path: String,
    /// The URL with an example in place of `{host}`.
    example: Url,
}

impl UrlTemplate {
    /// Parses `text`.
    ///
    /// # Errors
    /// See [`UrlTemplateError`].
    pub fn new(text: &str) -> Result<Self, UrlTemplateError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(UrlTemplateError::TooLong);
        }
        // A parser of URLs drops some of these, and takes a backslash for a slash.
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(UrlTemplateError::Character);
        }
        if text.contains('#') {
            return Err(UrlTemplateError::Fragment);
        }
        let (before_query, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = before_query.split_once("://").ok_or(url::ParseError::RelativeUrlWithoutBase)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if [scheme, authority, query].iter().any(|part| part.contains(HOST)) {
            return Err(UrlTemplateError::NotInPath);
        }
        // A parser of URLs would take the first segment of the path for the host.
        if authority.is_empty() {
            return Err(url::ParseError::EmptyHost.into());
        }
        let fixed = path.replace(HOST, "h");
        if [scheme, authority, query, &fixed].iter().any(|part| part.contains(['{', '}'])) {
            return Err(UrlTemplateError::Placeholder);
        }
        // A parser of URLs resolves them.
        if has_dot_segment(&fixed) {
            return Err(UrlTemplateError::DotSegment);
        }
        let example = Url::parse(&text.replace(HOST, "h"))?;
        check_authority(&example)?;
        Ok(Self { text: text.to_owned(), path: path.to_owned(), example })
    }

    /// The template as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL for `host`, whose name is percent-encoded. It has the template's origin and as many path segments as the template.
    ///
    /// # Errors
    /// The name would make a segment `.` or `..`.
    pub fn for_host(&self, host: &HostName) -> Result<Url, HostUrlError> {
        let name = utf8_percent_encode(host.as_str(), ENCODED).to_string();
        let path = self.path.replace(HOST, &name);
        if has_dot_segment(&path) {
            return Err(HostUrlError);
        }
        let mut url = self.example.clone();
        url.set_path(&path);
        Ok(url)
    }

    /// A URL with the scheme and the origin of every host's.
    pub const fn example(&self) -> &Url {
        &self.example
    }

    /// The origin of every host's URL.
    pub fn origin(&self) -> Origin {
        Origin::from_url(&self.example)
    }

    /// Whether its path names a page of HTML.
    pub fn names_html(&self) -> bool {
        names_html(&self.path)
    }
}

/// Whether `path`, of a URL or a file, names a page of HTML.
pub fn names_html(path: &str) -> bool {
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, after)| after);
    extension.is_some_and(|it| ["html", "htm", "xhtml"].iter().any(|html| it.eq_ignore_ascii_case(html)))
}

/// Whether `path` has a segment `.` or `..`, escaped or not.
fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

/// Checks who is asked, and over what.
fn check_authority(url: &Url) -> Result<(), UrlTemplateError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlTemplateError::UserInfo);
    }
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        "http" => Err(UrlTemplateError::NotLoopback),
        _ => Err(UrlTemplateError::Scheme),
    }
}

impl fmt::Display for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlTemplate({})", self.text)
    }
}

impl FromStr for UrlTemplate {
    type Err = UrlTemplateError;

    fn from_str(text: &str) -> Result<Self, UrlTemplateError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for UrlTemplate {
    type Error = UrlTemplateError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, UrlTemplateError> {
        Self::new(&text)
    }
}

impl From<UrlTemplate> for String {
    fn from(template: UrlTemplate) -> Self {
        template.text
    }
}

/// Why a text is not an origin to which credentials may go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    #[error(transparent)]
    Url(#[from] UrlTemplateError),
    #[error(
        "an origin is a scheme, a host and perhaps a port, such as https://files.example:8443, without a path"
    )]
    Path,
}

/// Scheme, host and port (RFC 6454): `https://files.example`, with the port only if it is not the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub struct Origin(String);

impl Origin {
    /// Parses `text`, which may end in a slash.
    ///
    /// # Errors
    /// See [`OriginError`]; the rules for scheme, host and user are those of [`UrlTemplate`].
    pub fn new(text: &str) -> Result<Self, OriginError> {
        let template = UrlTemplate::new(text)?;
        if !["", "/"].contains(&template.path.as_str()) || template.example.query().is_some() {
            return Err(OriginError::Path);
        }
        Ok(template.origin())
    }

    fn from_url(url: &Url) -> Self {
        Self(url.origin().ascii_serialization())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        Self::new(text)
    }
}

impl TryFrom<Cow<'_, str>> for Origin {
    type Error = OriginError;

    fn try_from(text: Cow<'_, str>) -> Result<Self, OriginError> {
        Self::new(&text)
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.0
    }
}

#[cfg(test)]
mod tests;
