//! The values that describe an identity provider.

use std::net::IpAddr;
use std::path::PathBuf;

use reqwest::Url;

use super::read::{Shape, Value};

/// A string of 1 to 1024 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Text {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a string of 1 to 1024 bytes without control characters".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let is_good = (1..=1024).contains(&text.len()) && !text.chars().any(char::is_control);
        is_good.then(|| Self(text.to_owned())).ok_or_else(String::new)
    }
}

/// Strings, separated by commas; none of them empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringList(Vec<String>);

impl StringList {
    /// Whether `word` is one of them.
    pub fn contains(&self, word: &str) -> bool {
        self.0.iter().any(|known| known == word)
    }
}

impl Value for StringList {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "strings separated by commas, none of them empty".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let words = text.split(',').map(|word| Text::parse(word.trim()).map(|Text(word)| word));
        words.collect::<Result<_, _>>().map(Self)
    }
}

/// Where a JSON Web Key Set is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Jwks {
    File(PathBuf),
    /// At a URL: `https`, or `http` on loopback.
    Url(Url),
}

impl Value for Jwks {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "an https:// URL or a path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return PathBuf::parse(text).map(Self::File);
        }
        let url = Url::parse(text).map_err(|_| String::new())?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let on_loopback =
            host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if !url.username().is_empty() || url.password().is_some() {
            return Err("; a password in the URL would appear in logs".to_owned());
        }
        match url.scheme() {
            "https" if url.has_host() => Ok(Self::Url(url)),
            "http" if on_loopback => Ok(Self::Url(url)),
            "http" => Err("; keys fetched over plain HTTP could be forged".to_owned()),
            _ => Err(String::new()),
        }
    }
}
