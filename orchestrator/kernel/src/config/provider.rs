//! Configuration providers: where configuration of hosts comes from.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use os_upgrade_calendar::{Duration, deserialize, from_objects_only};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{
    FILE_PATH_BYTES_MAX, HostUrlError, OWNER_BYTES_MAX, ProviderName, UrlTemplate, is_file_path, is_owner,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::left_out::is_default;
use crate::secrets::SecretName;

/// The most providers of a site.
pub const PROVIDERS_MAX: usize = 32;
/// The most hosts that a selector names.
const SELECTED_MAX: usize = 10_000;
/// The longest `ca`, in bytes.
const CA_BYTES_MAX: usize = 64 * 1024;
/// The shortest time between two polls of a host, in seconds.
const POLL_INTERVAL_MIN: u64 = 10;
/// The longest time that a request may take, in seconds.
const TIMEOUT_MAX: u64 = 300;
/// The most hosts about which a provider may be asked at once.
const IN_FLIGHT_MAX: u32 = 64;
/// The most hosts of which a provider may be told in one request.
const BATCH_SIZE_MAX: u32 = 100;

/// One entry of `config-providers`: a server that says what hosts are to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigProvider {
    /// Its name, which is also that of what it gives to hosts.
    pub name: ProviderName,
    pub kind: ProviderKind,
    /// Where the configuration of a host is; `{host}` stands for its name. Of kind `hooks` it is one URL for all hosts.
    pub url: UrlTemplate,
    /// The absolute path of the file that it becomes on the host; absent if it is for the worker's handler alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The permission bits of the file; the worker's choice if absent, as for `user` and `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FileMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Which hosts get it; absent if every host does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// The secret with which it is asked: a bearer token, or `user:password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretName>,
    /// The secret with the client certificate that is presented to it: the certificate, its chain and its private key, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<SecretName>,
    /// The certificate authorities to trust instead of the system's, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// The time between two polls of a host.
    #[serde(default = "default_poll_interval", skip_serializing_if = "is_default_poll_interval")]
    pub poll_interval: Duration,
    /// How long a request may take in total.
    #[serde(default = "default_timeout", skip_serializing_if = "is_default_timeout")]
    pub timeout: Duration,
    /// How many requests to it may be under way at once.
    #[serde(
        default = "default_in_flight",
        deserialize_with = "super::integer::number",
        skip_serializing_if = "is_default_in_flight"
    )]
    pub max_in_flight: u32,
    /// Whether a host is prepared only once it has what the provider says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// How long ago the provider may have said so for a host to be prepared.
    #[serde(default = "default_max_age", skip_serializing_if = "is_default_max_age")]
    pub max_age: Duration,
    /// What becomes of what a host has once the provider has nothing for it any more, or no longer selects it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_removal: OnRemoval,
    /// Of which events it is told; absent if of all. Only of kind `hooks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<BTreeSet<HookEvent>>,
    /// Of how many hosts it may be told in one request. Only of kind `hooks`.
    #[serde(
        default = "default_batch_size",
        deserialize_with = "super::integer::number",
        skip_serializing_if = "is_default_batch_size"
    )]
    pub batch_size: u32,
}

/// How a provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// One GET for each host.
    Http,
    /// It is told of events of hosts with POST, and may call back.
    Hooks,
}

/// What becomes of what a host has once its provider has nothing for it any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRemoval {
    /// The host keeps it.
    #[default]
    Keep,
    /// It is revoked.
    Remove,
}

impl<'de> Deserialize<'de> for OnRemoval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize::word(deserializer, &["keep", "remove"], [Self::Keep, Self::Remove])
    }
}

/// Which hosts a provider is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Selector {
    /// These hosts.
    pub names: BTreeSet<HostName>,
}

from_objects_only!(ConfigProvider, Selector);

/// Permission bits, 0 to 0777; in octal as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct FileMode(u16);

/// The text is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a mode is three or four octal digits without setuid, setgid and sticky, such as \"0640\"")]
pub struct FileModeError;

impl FileMode {
    /// The bits.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }
}

impl FromStr for FileMode {
    type Err = FileModeError;

    fn from_str(text: &str) -> Result<Self, FileModeError> {
        let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = is_octal.then(|| u16::from_str_radix(text, 8).ok()).flatten();
        bits.filter(|bits| *bits <= 0o777).map(Self).ok_or(FileModeError)
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl From<FileMode> for String {
    fn from(mode: FileMode) -> Self {
        mode.to_string()
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize::text(deserializer, "a string such as \"0640\"")
    }
}

/// Why a provider that parses is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    #[error("there are more than {PROVIDERS_MAX} providers")]
    TooMany,
    #[error("{0}: another provider has that name, too")]
    DuplicateName(ProviderName),
    #[error("{name}/path: {other} gives the same file to the same host; a path belongs to one provider")]
    SharedPath { name: ProviderName, other: ProviderName },
    #[error(
        "{0}/path: it must be absolute, without `.`, `..`, empty segments and control characters, and has at most {FILE_PATH_BYTES_MAX} bytes"
    )]
    Path(ProviderName),
    #[error("{name}/{key}: only files have one, so there must be a path")]
    NoPath { name: ProviderName, key: &'static str },
    #[error(
        "{name}/{key}: it must be a name of 1 to {OWNER_BYTES_MAX} bytes, without `:`, white space and control characters"
    )]
    Owner { name: ProviderName, key: &'static str },
    #[error("{0}/selector/names: name 1 to {SELECTED_MAX} hosts, or leave the selector out for all")]
    Selector(ProviderName),
    #[error("{name}/selector/names: {host}: {error}")]
    Host { name: ProviderName, host: HostName, error: HostUrlError },
    #[error(
        "{0}/client-certificate: it is presented over TLS only: give an https:// URL, or leave the certificate out"
    )]
    ClientCertificate(ProviderName),
    #[error("{0}/ca: it must be certificates in PEM, of at most {CA_BYTES_MAX} bytes in total")]
    Ca(ProviderName),
    #[error("{0}/poll-interval: must be at least {POLL_INTERVAL_MIN}s")]
    PollInterval(ProviderName),
    #[error("{0}/timeout: must be from 1s to {TIMEOUT_MAX}s")]
    Timeout(ProviderName),
    #[error("{0}/max-in-flight: must be from 1 to {IN_FLIGHT_MAX}")]
    InFlight(ProviderName),
    #[error("{0}/max-age: must be at least the poll interval, or no host is ever prepared for long")]
    MaxAge(ProviderName),
    #[error("{name}/{key}: only a provider of kind hooks has it")]
    NotHooks { name: ProviderName, key: &'static str },
    #[error("{0}/url: a provider of kind hooks has one URL for all hosts, without {{host}}")]
    HostInUrl(ProviderName),
    #[error("{0}/events: name at least one event, or leave it out for all")]
    Events(ProviderName),
    #[error("{0}/batch-size: must be from 1 to {BATCH_SIZE_MAX}")]
    BatchSize(ProviderName),
}

impl ConfigProvider {
    /// Whether it is about `host`.
    pub fn selects(&self, host: &HostName) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.names.contains(host))
    }

    /// Whether it is told of events, and may call back.
    pub fn is_hooks(&self) -> bool {
        match self.kind {
            ProviderKind::Hooks => true,
            ProviderKind::Http => false,
        }
    }

    /// Whether it is told of `event`.
    pub fn hears(&self, event: HookEvent) -> bool {
        self.is_hooks() && self.events.as_ref().is_none_or(|events| events.contains(&event))
    }

    /// Whether what was said to the question of the one counts for that of the other. About which hosts it is asked, how often, how many at
    /// once and at which events may differ, and whether hosts wait for it.
    pub fn is_same_question(&self, other: &Self) -> bool {
        let asked = |provider: &Self| Self {
            selector: None,
            poll_interval: other.poll_interval,
            max_in_flight: other.max_in_flight,
            required: other.required,
            max_age: other.max_age,
            events: None,
            batch_size: other.batch_size,
            ..provider.clone()
        };
        asked(self) == asked(other)
    }

    /// Whether both name the same file, with the same mode and owner.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        let file = |it: &Self| (it.path.clone(), it.mode, it.user.clone(), it.group.clone());
        file(self) == file(other)
    }

    /// Whether the secret `name` is needed to ask it.
    pub fn uses_secret(&self, name: &SecretName) -> bool {
        [&self.credentials, &self.client_certificate].into_iter().flatten().any(|used| used == name)
    }

    /// Whether some host may be selected by both.
    fn overlaps(&self, other: &Self) -> bool {
        match (&self.selector, &other.selector) {
            (Some(one), Some(other)) => !one.names.is_disjoint(&other.names),
            (None, Some(_) | None) | (Some(_), None) => true,
        }
    }

    fn validate(&self) -> Result<(), ProviderError> {
        let name = || self.name.clone();
        match &self.path {
            Some(path) if !is_file_path(path) => return Err(ProviderError::Path(name())),
            Some(_) => {}
            None => {
                let given = [
                    ("mode", self.mode.is_some()),
                    ("user", self.user.is_some()),
                    ("group", self.group.is_some()),
                ];
                if let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                    return Err(ProviderError::NoPath { name: name(), key });
                }
            }
        }
        for (key, owner) in [("user", &self.user), ("group", &self.group)] {
            if owner.as_ref().is_some_and(|owner| !is_owner(owner)) {
                return Err(ProviderError::Owner { name: name(), key });
            }
        }
        if let Some(Selector { names }) = &self.selector {
            if !(1..=SELECTED_MAX).contains(&names.len()) {
                return Err(ProviderError::Selector(name()));
            }
            for host in names {
                self.url.for_host(host).map_err(|error| ProviderError::Host {
                    name: name(),
                    host: host.clone(),
                    error,
                })?;
            }
        }
        if self.client_certificate.is_some() && self.url.example().scheme() != "https" {
            return Err(ProviderError::ClientCertificate(name()));
        }
        if self.ca.as_ref().is_some_and(|ca| !is_pem(ca)) {
            return Err(ProviderError::Ca(name()));
        }
        if self.poll_interval.as_secs() < POLL_INTERVAL_MIN {
            return Err(ProviderError::PollInterval(name()));
        }
        if !(1..=TIMEOUT_MAX).contains(&self.timeout.as_secs()) {
            return Err(ProviderError::Timeout(name()));
        }
        if !(1..=IN_FLIGHT_MAX).contains(&self.max_in_flight) {
            return Err(ProviderError::InFlight(name()));
        }
        if self.max_age.as_secs() < self.poll_interval.as_secs() {
            return Err(ProviderError::MaxAge(name()));
        }
        match self.kind {
            ProviderKind::Http => self.validate_http(),
            ProviderKind::Hooks => self.validate_hooks(),
        }
    }

    fn validate_http(&self) -> Result<(), ProviderError> {
        let given =
            [("events", self.events.is_some()), ("batch-size", self.batch_size != default_batch_size())];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(ProviderError::NotHooks { name: self.name.clone(), key }),
            None => Ok(()),
        }
    }

    fn validate_hooks(&self) -> Result<(), ProviderError> {
        let name = || self.name.clone();
        if self.url.as_str().contains("{host}") {
            return Err(ProviderError::HostInUrl(name()));
        }
        if self.events.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(ProviderError::Events(name()));
        }
        if !(1..=BATCH_SIZE_MAX).contains(&self.batch_size) {
            return Err(ProviderError::BatchSize(name()));
        }
        Ok(())
    }
}

/// Checks each provider, and all together.
pub(super) fn validate(providers: &[ConfigProvider]) -> Result<(), ProviderError> {
    if providers.len() > PROVIDERS_MAX {
        return Err(ProviderError::TooMany);
    }
    for (index, provider) in providers.iter().enumerate() {
        provider.validate()?;
        for earlier in &providers[..index] {
            if earlier.name == provider.name {
                return Err(ProviderError::DuplicateName(provider.name.clone()));
            }
            if provider.path.is_some() && earlier.path == provider.path && earlier.overlaps(provider) {
                let (name, other) = (provider.name.clone(), earlier.name.clone());
                return Err(ProviderError::SharedPath { name, other });
            }
        }
    }
    Ok(())
}

/// Whether `text` has certificates, as far as that can be told without decoding them.
fn is_pem(text: &str) -> bool {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let (begins, ends) = (text.matches(BEGIN).count(), text.matches(END).count());
    text.len() <= CA_BYTES_MAX && begins > 0 && begins == ends
}

const fn default_poll_interval() -> Duration {
    Duration::from_secs(60 * 60)
}

const fn default_timeout() -> Duration {
    Duration::from_secs(10)
}

const fn default_in_flight() -> u32 {
    4
}

const fn default_batch_size() -> u32 {
    1
}

const fn default_max_age() -> Duration {
    Duration::from_secs(24 * 60 * 60)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_default_poll_interval(interval: &Duration) -> bool {
    *interval == default_poll_interval()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_default_timeout(timeout: &Duration) -> bool {
    *timeout == default_timeout()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_default_in_flight(in_flight: &u32) -> bool {
    *in_flight == default_in_flight()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_default_batch_size(size: &u32) -> bool {
    *size == default_batch_size()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_default_max_age(age: &Duration) -> bool {
    *age == default_max_age()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Vec<ConfigProvider>, serde_json::Error> {
        serde_json::from_str(json)
    }

    const APP: &str = r#"{"name":"app","kind":"http","url":"https://files.example/{host}/app.conf","path":"/etc/app.conf"}"#;

    #[test]
    fn defaults_are_left_out() {
        let provider = &parse(&format!("[{APP}]")).unwrap()[0];
        assert_eq!(serde_json::to_string(provider).unwrap(), APP);
        assert_eq!((provider.poll_interval.as_secs(), provider.timeout.as_secs()), (3_600, 10));
        assert_eq!((provider.max_in_flight, provider.max_age.as_secs()), (4, 86_400));
        let all = concat!(
            r#"{"name":"app","kind":"http","url":"https://files.example/app.conf","path":"/etc/app.conf","mode":"0640","user":"root","#,
            r#""group":"app","selector":{"names":["h1","h2"]},"credentials":"files","client-certificate":"tls","ca":"PEM","#,
            r#""poll-interval":"10m","timeout":"5s","max-in-flight":8,"required":true,"max-age":"2h","on-removal":"remove"}"#
        );
        let provider = &parse(&format!("[{all}]")).unwrap()[0];
        assert_eq!(serde_json::to_string(provider).unwrap(), all);
        for (name, is_used) in [("files", true), ("tls", true), ("app", false)] {
            assert_eq!(provider.uses_secret(&SecretName::new(name).unwrap()), is_used, "{name}");
        }
        assert_eq!(provider.mode.map(FileMode::bits), Some(0o640));
        assert!(HookEvent::ALL.into_iter().all(|event| !provider.hears(event)));
        let all = concat!(
            r#"{"name":"app","kind":"hooks","url":"https://hooks.example/","#,
            r#""events":["ON_FLEET_JOIN","ON_DEVICE_POLL"],"batch-size":20}"#
        );
        let provider = &parse(&format!("[{all}]")).unwrap()[0];
        assert_eq!(serde_json::to_string(provider).unwrap(), all);
        let heard: Vec<_> = HookEvent::ALL.into_iter().filter(|event| provider.hears(*event)).collect();
        assert_eq!(heard, [HookEvent::FleetJoin, HookEvent::DevicePoll]);
        let provider = ConfigProvider { events: None, ..provider.clone() };
        assert!(HookEvent::ALL.into_iter().all(|event| provider.hears(event)));
    }

    #[test]
    fn questions_are_told_apart() {
        let provider = |more: &str| {
            let json = format!(r#"[{{"name":"app","kind":"hooks","url":"https://hooks.example/a"{more}}}]"#);
            parse(&json).unwrap().remove(0)
        };
        let plain = provider("");
        for (more, is_same) in [
            ("", true),
            (r#","selector":{"names":["h1"]}"#, true),
            (r#","poll-interval":"10m""#, true),
            (r#","max-in-flight":1"#, true),
            (r#","required":true"#, true),
            (r#","max-age":"2h""#, true),
            (r#","events":["ON_DEVICE_POLL"]"#, true),
            (r#","batch-size":2"#, true),
            (r#","path":"/etc/a""#, false),
            (r#","credentials":"files""#, false),
            (r#","timeout":"5s""#, false),
        ] {
            let other = provider(more);
            assert_eq!(
                (plain.is_same_question(&other), other.is_same_question(&plain)),
                (is_same, is_same),
                "{more}"
            );
        }
    }

    #[test]
    fn providers_are_validated() {
        let with = |more: &str| {
            format!(r#"{{"name":"app","kind":"http","url":"https://files.example/{{host}}"{more}}}"#)
        };
        let pem = r#","ca":"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n""#;
        for (more, error) in [
            ("", ""),
            (pem, ""),
            (r#","path":"/etc/a b""#, ""),
            (r#","client-certificate":"tls""#, ""),
            (r#","ca":"x""#, "app/ca: it must be certificates in PEM, of at most 65536 bytes in total"),
            (r#","mode":"0644""#, "app/mode: only files have one, so there must be a path"),
            (r#","user":"root""#, "app/user: only files have one"),
            (r#","path":"etc""#, "app/path: it must be absolute"),
            (r#","path":"/etc/../x""#, "app/path: it must be absolute"),
            (r#","path":"/etc/""#, "app/path: it must be absolute"),
            (r#","path":"/a","group":"a:b""#, "app/group: it must be a name"),
            (r#","selector":{"names":[]}"#, "app/selector/names: name 1 to 10000 hosts"),
            (r#","selector":{"names":[".."]}"#, "app/selector/names: ..: the name of the host"),
            (r#","poll-interval":"9s""#, "app/poll-interval: must be at least 10s"),
            (r#","timeout":"6m""#, "app/timeout: must be from 1s to 300s"),
            (r#","max-in-flight":0"#, "app/max-in-flight: must be from 1 to 64"),
            (r#","max-age":"30m""#, "app/max-age: must be at least the poll interval"),
            (r#","events":["ON_FLEET_JOIN"]"#, "app/events: only a provider of kind hooks has it"),
            (r#","events":[]"#, "app/events: only a provider of kind hooks has it"),
            (r#","batch-size":2"#, "app/batch-size: only a provider of kind hooks has it"),
        ] {
            let providers = parse(&format!("[{}]", with(more))).unwrap();
            let found = validate(&providers).err().map_or_else(String::new, |error| error.to_string());
            assert!(found.starts_with(error) && error.is_empty() == found.is_empty(), "{more}: {found}");
        }
        for (path, more, error) in [
            ("", "", ""),
            ("a?b=c", r#","path":"/etc/a","mode":"0640","batch-size":100"#, ""),
            ("", r#","events":["ON_FLEET_JOIN","ON_FLEET_JOIN"]"#, ""),
            ("{host}", "", "app/url: a provider of kind hooks has one URL for all hosts, without {host}"),
            ("", r#","events":[]"#, "app/events: name at least one event, or leave it out for all"),
            ("", r#","batch-size":0"#, "app/batch-size: must be from 1 to 100"),
            ("", r#","batch-size":101"#, "app/batch-size: must be from 1 to 100"),
            ("", r#","mode":"0644""#, "app/mode: only files have one, so there must be a path"),
        ] {
            let json =
                format!(r#"[{{"name":"app","kind":"hooks","url":"https://hooks.example/{path}"{more}}}]"#);
            let found =
                validate(&parse(&json).unwrap()).err().map_or_else(String::new, |error| error.to_string());
            assert!(found.starts_with(error) && error.is_empty() == found.is_empty(), "{json}: {found}");
        }
        let plain = r#"[{"name":"app","kind":"http","url":"http://127.0.0.1/","client-certificate":"tls"}]"#;
        let refused = ProviderError::ClientCertificate(ProviderName::new("app").unwrap());
        assert_eq!(validate(&parse(plain).unwrap()), Err(refused));
        for (json, message) in [
            (with(r#","mode":"4755""#), "a mode is three or four octal digits"),
            (with(r#","mode":420"#), r#"expected a string such as "0640""#),
            (with(r#","on-removal":"drop""#), "expected `keep` or `remove`"),
            (with(r#","paths":[]"#), "unknown field `paths`"),
            (r#"{"name":"a","kind":"ftp","url":"https://a/"}"#.to_owned(), "unknown variant `ftp`"),
            (
                r#"{"name":"a","kind":"hooks","url":"https://a/","events":["ON_CONFIG_UPDATE"]}"#.to_owned(),
                "unknown variant `ON_CONFIG_UPDATE`, expected one of `ON_ENROLLMENT_REQUEST`",
            ),
            (r#"{"name":"a b","kind":"http","url":"https://a/"}"#.to_owned(), "the name of a provider is"),
            (r#"{"name":"a","kind":"http","url":"http://a/"}"#.to_owned(), "use https://"),
        ] {
            let found = parse(&format!("[{json}]")).unwrap_err().to_string();
            assert!(found.contains(message), "{json}: {found}");
        }
    }

    #[test]
    fn paths_belong_to_one_provider() {
        let of = |name: &str, selector: &str| {
            format!(
                r#"{{"name":"{name}","kind":"http","url":"https://a/{{host}}","path":"/etc/a"{selector}}}"#
            )
        };
        let (h1, h2) = (r#","selector":{"names":["h1"]}"#, r#","selector":{"names":["h2"]}"#);
        let both = |one: &str, other: &str| {
            validate(&parse(&format!("[{},{}]", of("a", one), of("b", other))).unwrap())
        };
        assert_eq!(both(h1, h2), Ok(()));
        let (name, other) = (ProviderName::new("b").unwrap(), ProviderName::new("a").unwrap());
        let shared = Err(ProviderError::SharedPath { name: name.clone(), other });
        assert_eq!(both(h1, h1), shared);
        assert_eq!(both(h1, ""), shared);
        let twice = parse(&format!("[{},{}]", of("b", h1), of("b", h2))).unwrap();
        assert_eq!(validate(&twice), Err(ProviderError::DuplicateName(name)));
        let many =
            (0..=PROVIDERS_MAX).map(|number| of(&format!("p{number}"), h1)).collect::<Vec<_>>().join(",");
        assert_eq!(validate(&parse(&format!("[{many}]")).unwrap()), Err(ProviderError::TooMany));
    }
}
