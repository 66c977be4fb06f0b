//! `os-upgrade lock unlock`: a slot given back to any FleetLock server, as its holder does it.

use anyhow::{Context as _, bail};
use clap::Args;
use os_upgrade_kernel::{ClientId, LockOutcome};
use os_upgrade_protocol::GroupName;

use super::super::Failure;
use super::super::output::outln;
use super::super::rest::{DEFAULT_URL, http_url};
use super::client_id;
use super::slot::words;
use super::tls::Tls;
use crate::config::HttpUrl;
use crate::fleetlock::client::tls::TlsFiles;
use crate::fleetlock::client::{FleetLockClient, Timeouts};

#[derive(Debug, Args)]
pub(in crate::cli) struct Unlock {
    /// The lock server's base URL; a user and password in it are sent as HTTP Basic authentication
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    tls: Tls,
    /// The group whose slot is given back
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// Who holds it
    #[arg(long, value_parser = client_id)]
    id: ClientId,
}

/// Asks once.
pub(super) async fn run(options: Unlock) -> Result<(), Failure> {
    let Unlock { url, tls, group, id } = options;
    let files = tls.files(&url)?;
    Ok(unlock(&url, &files, &group, &id).await?)
}

async fn unlock(url: &HttpUrl, files: &TlsFiles, group: &GroupName, id: &ClientId) -> anyhow::Result<()> {
    let client = FleetLockClient::new(url, Timeouts::default(), Some(files));
    let outcome = client.context("no slot can be given back")?.unlock(group, id).await;
    if outcome != LockOutcome::Granted {
        bail!("not given back: {}", words(&outcome));
    }
    outln!("given back: {id}, group {group}");
    Ok(())
}

/// The command that gives the slot back, for a shell. A password is not shown; it says then that it has to be filled in.
pub(super) fn by_hand(url: &HttpUrl, files: &TlsFiles, group: &GroupName, id: &ClientId) -> String {
    let TlsFiles { ca, certificate, key, roles: _ } = files;
    let mut words = vec![
        "os-upgrade lock unlock".to_owned(),
        format!("--url {}", quoted(&url.to_string())),
        format!("--group {group}"),
        // An id may begin with a dash.
        format!("--id={}", quoted(id.as_str())),
    ];
    for (option, path) in [("--ca", ca), ("--cert", certificate), ("--key", key)] {
        words.extend(path.as_ref().map(|path| format!("{option} {}", quoted(&path.to_string_lossy()))));
    }
    if !url.url().username().is_empty() || url.url().password().is_some() {
        words.push("(with user:password in place of ***)".to_owned());
    }
    words.join(" ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_a_slot_back_by_hand() {
        let (group, id) = (GroupName::new("g").unwrap(), ClientId::new("-it's").unwrap());
        let mut files = TlsFiles { ca: None, certificate: None, key: None, roles: ["a", "b", "c"] };
        assert_eq!(
            by_hand(&"http://h/base/".parse().unwrap(), &files, &group, &id),
            r"os-upgrade lock unlock --url 'http://h/base/' --group g --id='-it'\''s'"
        );
        files.ca = Some("a b.pem".into());
        (files.certificate, files.key) = (Some("c".into()), Some("k".into()));
        assert_eq!(
            by_hand(&"https://user:secret@h/".parse().unwrap(), &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://***@h/' --group g --id='-it'\''s' --ca 'a b.pem' --cert 'c' --key 'k' (with user:password in place of ***)"
        );
    }
}
