//! URLs, which may contain passwords and are never displayed with them.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;

use super::read::{Shape, Value};
use crate::raw::redacted;

macro_rules! redacted_display {
    ($type:ty, $text:ident) => {
        impl fmt::Display for $type {
            /// Without user and password.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&redacted(&self.$text()))
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Addresses of NATS servers, at least one, `nats://` or `tls://`. Displayed without passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsUrls(Vec<String>);

redacted_display!(NatsUrls, joined);

impl NatsUrls {
    /// The addresses, with user and password if they have any.
    pub fn servers(&self) -> &[String] {
        &self.0
    }

    fn joined(&self) -> String {
        self.0.join(",")
    }
}

impl FromStr for NatsUrls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl Value for NatsUrls {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "nats:// or tls:// addresses such as \"nats://127.0.0.1:4222\", separated by commas".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let address = |url: &str| url_of(url.trim(), &["nats", "tls"]).map(|_| url.trim().to_owned());
        text.split(',').map(address).collect::<Option<Vec<_>>>().map(Self).ok_or_else(String::new)
    }
}

/// An `http://` or `https://` URL. Displayed without password.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl(Url);

redacted_display!(HttpUrl, text);

impl HttpUrl {
    /// The URL, with user and password if it has any.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Whether it has a user or a password.
    pub fn has_credentials(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }

    /// The same URL with this user and password, escaped as needed.
    #[must_use]
    pub fn with_credentials(&self, user: &str, password: &str) -> Self {
        self.with_userinfo(user, Some(password))
    }

    /// The same URL without user and password.
    #[must_use]
    pub fn without_credentials(&self) -> Self {
        self.with_userinfo("", None)
    }

    fn with_userinfo(&self, user: &str, password: Option<&str>) -> Self {
        let mut url = self.0.clone();
        // This only fails for URLs without a host.
        let set = url.set_username(user).and_then(|()| url.set_password(password));
        debug_assert!(set.is_ok(), "an http:// URL has a host");
        Self(url)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl Value for HttpUrl {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "an http:// or https:// URL".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        url_of(text, &["http", "https"]).map(Self).ok_or_else(String::new)
    }
}

fn url_of(text: &str, schemes: &[&str]) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str().is_some_and(|host| !host.is_empty());
    (host && schemes.contains(&url.scheme())).then_some(url)
}
