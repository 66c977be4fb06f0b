//! `os-upgrade token`: manages the API tokens in the token file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args, Subcommand};
use os_upgrade_auth::{
    self as auth, FileError, Proof, Rights, Role, Secret, SecretHash, Token, TokenName, Tokens,
};
use os_upgrade_console::{Column, Row};
use os_upgrade_protocol::{GroupName, time};
use os_upgrade_settings as settings;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::output::{Canvas, Output, View, errln};

/// The shortest lifetime of a token: less is a mistake.
const VALIDITY_MIN: Duration = Duration::from_secs(1);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a token and print its secret, which is not stored anywhere
    ///
    /// The token file is created if it does not exist. A running orchestrator accepts the token within two seconds.
    #[command(after_help = examples!["token create --name ci --role operator --expires 90d --file tokens.toml"])]
    Create(Create),
    /// List the tokens
    #[command(after_help = examples!["token list --file tokens.toml"])]
    List(List),
    /// Remove a token; requests with it are refused within two seconds
    #[command(after_help = examples!["token revoke ci --file tokens.toml"])]
    Revoke(Revoke),
}

/// The options that select the token file.
#[derive(Debug, Args)]
struct Place {
    /// The token file; by default `[api] tokens` of the configuration
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The configuration, a TOML file
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("for").required(true).args(["role", "group"]))]
pub(crate) struct Create {
    /// Its name, in the history and in `token list`; FleetLock clients send it as the user of HTTP Basic
    #[arg(long)]
    name: TokenName,
    /// viewer: read; operator: also start and cancel upgrades, approve, withdraw, remove and give up hosts, queue their
    /// reboots, uncordon their nodes, and hold, release and forget slots; admin: everything
    #[arg(long)]
    role: Option<Role>,
    /// For a FleetLock client, instead of a role: the group whose slots it may take
    #[arg(long)]
    group: Option<GroupName>,
    /// Instead of a secret, the client presents a certificate with this common name or DNS name
    #[arg(long, value_name = "NAME", requires = "group", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    certificate: Option<String>,
    /// How long it is valid, such as 90d; without it, it never expires
    #[arg(long, value_name = "TIME", value_parser = validity)]
    expires: Option<Duration>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The name of the token
    name: TokenName,
    #[command(flatten)]
    place: Place,
}

/// Parses the lifetime of a token.
fn validity(text: &str) -> Result<Duration, String> {
    let Ok(validity) = humantime::parse_duration(text) else {
        let wanted =
            "write how long it is valid, such as 90d or 12h; leave --expires out for one that never expires";
        return Err(wanted.to_owned());
    };
    if validity < VALIDITY_MIN {
        return Err("the token would expire at once; write how long it is valid, such as 90d".to_owned());
    }
    Ok(validity)
}

/// Carries the command out.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create(options),
        Command::List(options) => list(options),
        Command::Revoke(options) => revoke(options),
    }
}

impl Place {
    fn path(self) -> Result<PathBuf, Failure> {
        if let Some(file) = self.file {
            return Ok(file);
        }
        let settings = settings::load(self.config.as_deref(), std::env::vars_os())?;
        let missing = "which token file? Give --file, or a --config with [api] tokens";
        settings.api.tokens.ok_or_else(|| Failure::Usage(missing.to_owned()))
    }
}

fn create(options: Create) -> Result<(), Failure> {
    let Create { name, role, group, certificate, expires, place } = options;
    let path = place.path()?;
    let rights = match (role, group) {
        (Some(role), _) => Rights::Role(role),
        (None, Some(group)) => Rights::Group(group),
        (None, None) => return Err(Failure::Usage("give --role or --group".to_owned())),
    };
    let secret = Secret::random().map_err(anyhow::Error::from)?;
    let proof = match &certificate {
        Some(name) => Proof::Certificate(name.clone()),
        None => Proof::Secret(SecretHash::of(&secret).map_err(anyhow::Error::from)?),
    };
    let token = Token::new(name.clone(), rights, proof, Utc::now(), expires);
    edit(&path, |found| {
        let mut tokens = match found {
            Err(FileError::Missing { .. }) => Tokens::new(),
            found => found?,
        };
        if tokens.iter().any(|other| other.name == token.name) {
            bail!("there is a token {} already: revoke it first, or give another name", token.name);
        }
        tokens.push(token);
        Ok(tokens)
    })?;
    if certificate.is_none() {
        writeln!(io::stdout(), "{}", secret.reveal()).with_context(|| {
            format!("the secret of {name} could not be printed: revoke the token and create it again")
        })?;
    }
    Ok(())
}

fn revoke(options: Revoke) -> Result<(), Failure> {
    let Revoke { name, place } = options;
    let path = place.path()?;
    edit(&path, |found| {
        let mut tokens = found?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            return Err(anyhow!("there is no token {name} in {}", path.display()));
        }
        Ok(tokens)
    })?;
    errln!("revoked: {name}");
    Ok(())
}

fn list(options: List) -> Result<(), Failure> {
    let List { place, output } = options;
    let tokens = auth::read(&place.path()?).map_err(anyhow::Error::from)?;
    let rows: Vec<Listed> = tokens.iter().map(|token| Listed::of(token, Utc::now())).collect();
    output.show::<Listing>(&serde_json::json!({ "tokens": rows }))
}

/// Changes the tokens in the file at `path`.
fn edit(
    path: &Path,
    change: impl FnOnce(Result<Tokens, FileError>) -> anyhow::Result<Tokens>,
) -> Result<(), Failure> {
    auth::edit(path, change).map_err(|error| match error.downcast_ref() {
        Some(FileError::Unwritable { .. }) => Failure::Unknown(error),
        _ => Failure::Unchanged(error),
    })
}

/// A token as `token list` shows it.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    name: TokenName,
    #[serde(flatten)]
    rights: Rights,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    expired: bool,
}

impl Listed {
    fn of(token: &Token, now: DateTime<Utc>) -> Self {
        let certificate = match &token.proof {
            Proof::Certificate(name) => Some(name.clone()),
            Proof::Secret(_) => None,
        };
        Self {
            name: token.name.clone(),
            rights: token.rights.clone(),
            certificate,
            created: time::format(token.created),
            expires: token.expires.map(time::format),
            expired: token.has_expired(now),
        }
    }

    fn rights(&self) -> String {
        match &self.rights {
            Rights::Role(role) => role.to_string(),
            Rights::Group(group) => format!("slots of {group}"),
            // Tokens never have these.
            Rights::Groups(_) | Rights::Nothing => "nothing".to_owned(),
        }
    }
}

/// The tokens as `token list` shows them.
#[derive(Debug, Deserialize)]
struct Listing {
    tokens: Vec<Listed>,
}

impl View for Listing {
    fn text(&self, canvas: &Canvas) -> String {
        self.tokens.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.tokens.names()
    }

    fn none(&self) -> Option<String> {
        self.tokens.none()
    }
}

impl Row for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NAME", |token, _| token.name.to_string()),
        Column::new("RIGHTS", |token, _| token.rights()),
        Column::new("AUTH", |token, _| {
            let certificate = token.certificate.as_ref();
            certificate.map_or_else(|| "secret".to_owned(), |name| format!("certificate {name}"))
        }),
        Column::wide("CREATED", |token, zone| zone.time(&token.created)),
        Column::whole("EXPIRES", |token, zone| {
            token.expires.as_deref().map_or_else(|| "never".to_owned(), |expires| zone.time(expires))
        }),
        Column::new("", |token, _| if token.expired { "expired" } else { "" }.to_owned()),
    ];
    const NONE: &'static str = "there are no tokens";

    fn name(&self) -> Option<String> {
        Some(self.name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os_upgrade_console::Zone;

    #[test]
    fn lifetimes_are_parsed() {
        let hours = |hours| Ok(Duration::from_hours(hours));
        let refused = |message: &str| Err(message.to_owned());
        let at_once = "the token would expire at once; write how long it is valid, such as 90d";
        let wanted =
            "write how long it is valid, such as 90d or 12h; leave --expires out for one that never expires";
        for (text, expected) in [
            ("90d", hours(90 * 24)),
            ("12h", hours(12)),
            ("1s", Ok(Duration::from_secs(1))),
            ("0s", refused(at_once)),
            ("999ms", refused(at_once)),
            ("never", refused(wanted)),
            ("2027-01-31", refused(wanted)),
            ("", refused(wanted)),
        ] {
            assert_eq!(validity(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_in_a_table() {
        let now: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
        let token = |name: &str, rights, proof, expires| {
            Listed::of(&Token::new(name.parse().unwrap(), rights, proof, now, expires), now)
        };
        let secret = || Proof::Secret(SecretHash::of(&Secret::random().unwrap()).unwrap());
        let group = || Rights::Group(GroupName::new("workers").unwrap());
        let rows = [
            token("ci", Rights::Role(Role::Operator), secret(), Some(Duration::from_hours(24))),
            token("old", Rights::Role(Role::Admin), secret(), Some(Duration::ZERO)),
            token("n1", group(), Proof::Certificate("n1.example".to_owned()), None),
        ];
        let expected = "\
NAME  RIGHTS            AUTH                    CREATED               EXPIRES
ci    operator          secret                  2026-11-21T12:00:00Z  2026-11-22T12:00:00Z
old   admin             secret                  2026-11-21T12:00:00Z  2026-11-21T12:00:00Z  expired
n1    slots of workers  certificate n1.example  2026-11-21T12:00:00Z  never";
        let canvas = Canvas { is_wide: true, columns: None, zone: Zone::Utc };
        assert_eq!(Vec::from(rows).text(&canvas), expected);
        assert_eq!(Vec::<Listed>::new().text(&canvas), "there are no tokens");
        let json = serde_json::json!({
            "name": "n1", "group": "workers", "certificate": "n1.example", "created": "2026-11-21T12:00:00Z",
            "expired": false,
        });
        assert_eq!(
            serde_json::to_value(token("n1", group(), Proof::Certificate("n1.example".to_owned()), None))
                .unwrap(),
            json
        );
    }
}
