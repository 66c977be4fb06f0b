//! `os-upgrade lock unlock`: a slot given back to any FleetLock server, as its holder does it.

use anyhow::{Context as _, bail};
use clap::Args;
use os_upgrade_adapters::fleetlock::{FleetLockClient, Timeouts};
use os_upgrade_kernel::{ClientId, LockOutcome};
use os_upgrade_protocol::GroupName;
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_tls::client_files::TlsFiles;

use super::credentials::{Credentials, Found, VARIABLE};
use super::tls::Tls;
use crate::Failure;
use crate::output::outln;
use crate::rest::{DEFAULT_URL, http_url};

#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// The lock server's base URL; user and password are better not in it, as everybody
    /// on the machine can read a command line
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL, value_parser = http_url)]
    url: HttpUrl,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    tls: Tls,
    /// The group whose slot is given back
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// Who holds it
    #[arg(long, value_parser = ClientId::new)]
    id: ClientId,
}

/// Asks once.
pub(super) async fn run(options: Unlock) -> Result<(), Failure> {
    let Unlock { url, credentials, tls, group, id } = options;
    let files = tls.files(&url)?;
    let (url, _) = credentials.in_url(&url)?;
    Ok(unlock(&url, &files, &group, &id).await?)
}

async fn unlock(url: &HttpUrl, files: &TlsFiles, group: &GroupName, id: &ClientId) -> anyhow::Result<()> {
    let client = FleetLockClient::new(url, Timeouts::default(), Some(files));
    let outcome = client.context("no slot can be given back")?.unlock(group, id).await;
    let not_given_back = || format!("not given back, as far as is known: {}", words(&outcome));
    match &outcome {
        LockOutcome::Granted => {
            outln!("given back: {id}, group {group}");
            Ok(())
        }
        LockOutcome::Denied { .. } => bail!("not given back: {}", words(&outcome)),
        LockOutcome::Unreachable { .. } | LockOutcome::Protocol { .. } => {
            Err(NotDone::unknown(not_given_back()).into())
        }
    }
}

/// The command that gives the slot back, for a shell. A password is not shown; it says then where it has to stand.
pub(super) fn by_hand(
    url: &HttpUrl,
    found: &Found,
    files: &TlsFiles,
    group: &GroupName,
    id: &ClientId,
) -> String {
    let TlsFiles { ca, certificate, key, roles: _, pipes: _ } = files;
    let (url, credentials, remark) = match found {
        Found::Url if url.has_credentials() => {
            (url.clone(), None, Some("(with user:password in place of ***)".to_owned()))
        }
        Found::Url => (url.clone(), None, None),
        Found::File(path) => (url.without_credentials(), Some(path), None),
        Found::Variable => (url.without_credentials(), None, Some(format!("(with {VARIABLE} as here)"))),
    };
    let mut words = vec![
        "os-upgrade lock unlock".to_owned(),
        format!("--url {}", quoted(&url.to_string())),
        format!("--group {group}"),
        // An id may begin with a dash.
        format!("--id={}", quoted(id.as_str())),
    ];
    let files = [
        ("--ca", ca.as_ref()),
        ("--cert", certificate.as_ref()),
        ("--key", key.as_ref()),
        ("--credentials-file", credentials),
    ];
    for (option, path) in files {
        words.extend(path.map(|path| format!("{option} {}", quoted(&path.to_string_lossy()))));
    }
    words.extend(remark);
    words.join(" ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(super) fn words(outcome: &LockOutcome) -> String {
    match outcome {
        LockOutcome::Granted => "granted".to_owned(),
        LockOutcome::Denied { lock_kind, value } => format!("{value} ({lock_kind})"),
        LockOutcome::Unreachable { why } => format!("the server cannot be reached: {why}"),
        LockOutcome::Protocol { detail } => format!("the server does not speak FleetLock: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_a_slot_back_by_hand() {
        let (group, id) = (GroupName::new("g").unwrap(), ClientId::new("-it's").unwrap());
        let mut files =
            TlsFiles { ca: None, certificate: None, key: None, roles: ["a", "b", "c"], pipes: true };
        assert_eq!(
            by_hand(&"http://h/base/".parse().unwrap(), &Found::Url, &files, &group, &id),
            r"os-upgrade lock unlock --url 'http://h/base/' --group g --id='-it'\''s'"
        );
        files.ca = Some("a b.pem".into());
        (files.certificate, files.key) = (Some("c".into()), Some("k".into()));
        let url: HttpUrl = "https://user:secret@h/".parse().unwrap();
        assert_eq!(
            by_hand(&url, &Found::Url, &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://***@h/' --group g --id='-it'\''s' --ca 'a b.pem' --cert 'c' --key 'k' (with user:password in place of ***)"
        );
        files = TlsFiles { ca: None, certificate: None, key: None, ..files };
        assert_eq!(
            by_hand(&url, &Found::File("my file".into()), &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://h/' --group g --id='-it'\''s' --credentials-file 'my file'"
        );
        assert_eq!(
            by_hand(&url, &Found::Variable, &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://h/' --group g --id='-it'\''s' (with OS_UPGRADE_LOCK_CREDENTIALS as here)"
        );
    }
}
