//! `os-upgrade lock unlock`: gives a slot back to any FleetLock server, as its holder does.

use anyhow::anyhow;
use clap::Args;
use os_upgrade_adapters::fleet_lock_client::{FleetLockClient, Timeouts};
use os_upgrade_kernel::{ClientId, LockOutcome};
use os_upgrade_protocol::GroupName;
use os_upgrade_settings::HttpUrl;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_tls::client_files::TlsFiles;
use os_upgrade_tls::http_client::BuildError;

use super::credentials::{Source, VARIABLE};
use super::server::Server;
use crate::Failure;
use crate::output::outln;

#[derive(Debug, Args)]
pub(crate) struct Unlock {
    #[command(flatten)]
    server: Server,
    /// The group whose slot is given back
    #[arg(long, default_value = "default")]
    group: GroupName,
    /// The id that holds it
    #[arg(long, value_parser = ClientId::new)]
    id: ClientId,
}

/// Sends one request.
pub(super) async fn run(options: Unlock) -> Result<(), Failure> {
    let Unlock { server, group, id } = options;
    let (url, _, files) = server.resolve()?;
    unlock(&url, &files, &group, &id).await
}

async fn unlock(url: &HttpUrl, files: &TlsFiles, group: &GroupName, id: &ClientId) -> Result<(), Failure> {
    let client = FleetLockClient::new(url, Timeouts::default(), Some(files)).map_err(not_set_up)?;
    let outcome = client.unlock(group, id).await;
    let unconfirmed = || format!("the slot may still be held: {}", describe(&outcome));
    match &outcome {
        LockOutcome::Granted => {
            outln!("given back: {id}, group {group}");
            Ok(())
        }
        LockOutcome::Denied { .. } => {
            Err(Failure::unchanged(anyhow!("not given back: {}", describe(&outcome))))
        }
        LockOutcome::Unreachable { .. } | LockOutcome::Protocol { .. } => {
            Err(NotDone::unknown(unconfirmed()).into())
        }
    }
}

/// The failure of a client that cannot be set up, because of a file.
pub(super) fn not_set_up(error: BuildError) -> Failure {
    Failure::unusable(&anyhow::Error::from(error).context("cannot set up the client"))
}

/// The command that gives the slot back, quoted for a shell. A password is not shown; a remark says where it goes.
pub(super) fn command_line(
    url: &HttpUrl,
    source: &Source,
    files: &TlsFiles,
    group: &GroupName,
    id: &ClientId,
) -> String {
    let TlsFiles { ca, certificate, key, roles: _, pipes: _ } = files;
    let (url, credentials, remark) = match source {
        Source::Url if url.has_credentials() => {
            (url.clone(), None, Some("(with user:password in place of ***)".to_owned()))
        }
        Source::Url => (url.clone(), None, None),
        Source::File(path) => (url.without_credentials(), Some(path), None),
        Source::Variable => (url.without_credentials(), None, Some(format!("(with {VARIABLE} as here)"))),
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

/// The outcome in words.
pub(super) fn describe(outcome: &LockOutcome) -> String {
    match outcome {
        LockOutcome::Granted => "granted".to_owned(),
        LockOutcome::Denied { lock_kind, value } => format!("{value} ({lock_kind})"),
        LockOutcome::Unreachable { why } => {
            format!("the server cannot be reached: {}", os_upgrade_console::describe(why))
        }
        LockOutcome::Protocol { detail } => format!("the server does not speak FleetLock: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlock_command_is_complete_and_quoted() {
        let (group, id) = (GroupName::new("g").unwrap(), ClientId::new("-it's").unwrap());
        let mut files =
            TlsFiles { ca: None, certificate: None, key: None, roles: ["a", "b", "c"], pipes: true };
        assert_eq!(
            command_line(&"http://h/base/".parse().unwrap(), &Source::Url, &files, &group, &id),
            r"os-upgrade lock unlock --url 'http://h/base/' --group g --id='-it'\''s'"
        );
        files.ca = Some("a b.pem".into());
        (files.certificate, files.key) = (Some("c".into()), Some("k".into()));
        let url: HttpUrl = "https://user:secret@h/".parse().unwrap();
        assert_eq!(
            command_line(&url, &Source::Url, &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://***@h/' --group g --id='-it'\''s' --ca 'a b.pem' --cert 'c' --key 'k' (with user:password in place of ***)"
        );
        files = TlsFiles { ca: None, certificate: None, key: None, ..files };
        assert_eq!(
            command_line(&url, &Source::File("my file".into()), &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://h/' --group g --id='-it'\''s' --credentials-file 'my file'"
        );
        assert_eq!(
            command_line(&url, &Source::Variable, &files, &group, &id),
            r"os-upgrade lock unlock --url 'https://h/' --group g --id='-it'\''s' (with OS_UPGRADE_LOCK_CREDENTIALS as here)"
        );
    }
}
