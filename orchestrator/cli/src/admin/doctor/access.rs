//! Checks of the files that control access: tokens, the API's certificate and key, clients' certificate authorities, the
//! key for the lock server, and the strongbox's key.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chrono::{DateTime, Utc};
use nix::unistd::geteuid;
use os_upgrade_auth::{self as auth, FileError, Tokens};
use os_upgrade_console::describe;
use os_upgrade_kernel::State;
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::time;
use os_upgrade_settings::{ApiOidc, ApiTls, Jwks, Settings};
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_tls::pem_file::{PemError, PemFile, not_after};
use os_upgrade_tls::server_files::{Tls, WARN_BEFORE};

use super::check::Check;

/// Checks them all. `state` is folded from the store; `None` if the store cannot be read.
pub(super) fn examine(settings: &Settings, state: Option<&State>, now: DateTime<Utc>) -> Vec<Check> {
    let mut checks: Vec<Check> = current_user(&settings.store.path).into_iter().collect();
    checks.extend(settings.api.tokens.as_deref().map(|path| token_file(path, now)));
    checks.extend(provider_keys(&settings.api_oidc));
    checks.extend(certificate(&settings.api_tls, now));
    checks.extend(settings.api_tls.key.as_deref().and_then(|path| private_key("certificate's key", path)));
    checks.extend(settings.api_tls.client_ca.as_deref().map(|path| client_authorities(path, now)));
    let lock_key = settings.fleet_lock.key.as_deref();
    checks.extend(lock_key.and_then(|path| private_key("key for the lock server", path)));
    checks.extend(strongbox(settings, state));
    checks
}

/// Warns when doctor runs as root and the service does not: root can read what the service cannot.
fn current_user(data: &Path) -> Option<Check> {
    let owner = fs::metadata(data).ok()?.uid();
    (geteuid().is_root() && owner != 0).then(|| {
        let found = format!("root, and the data directory belongs to user {owner}");
        Check::warning("running as", found, "run it as that user, who may not be able to read what root can")
    })
}

fn token_file(path: &Path, now: DateTime<Utc>) -> Check {
    const NAME: &str = "token file";
    // Root does not own the service's file, so the check of the owner is left out.
    let read = if geteuid().is_root() { auth::read(path) } else { auth::read_trusted(path) };
    match read {
        Ok(tokens) => check_tokens(&tokens, now),
        Err(missing @ FileError::Missing { .. }) => {
            Check::problem(NAME, missing.to_string(), "create one: until then no token is valid")
        }
        Err(error) => Check::problem(NAME, with_causes(&error), "correct the file, or [api] tokens"),
    }
}

fn check_tokens(tokens: &Tokens, now: DateTime<Utc>) -> Check {
    const NAME: &str = "token file";
    let count = |matches: &dyn Fn(DateTime<Utc>) -> bool| {
        tokens.iter().filter(|token| token.expires.is_some_and(matches)).count()
    };
    let expired = count(&|end| end <= now);
    let soon = count(&|end| end > now && end - now <= WARN_BEFORE);
    let found = format!(
        "tokens: {} valid, {expired} expired, {soon} expiring within {} days",
        tokens.len() - expired,
        WARN_BEFORE.num_days()
    );
    if tokens.len() == expired {
        Check::warning(NAME, found, "create one with `os-upgrade token create`: no token is valid")
    } else if soon > 0 {
        Check::warning(NAME, found, "create their successors with `os-upgrade token create`")
    } else {
        Check::ok(NAME, found)
    }
}

/// The file of the identity provider's keys, if they are in one.
fn provider_keys(settings: &ApiOidc) -> Option<Check> {
    const NAME: &str = "identity provider's keys";
    let Some(Jwks::File(path)) = &settings.jwks else { return None };
    Some(match auth::check_keys(path, plain_file::examiner()) {
        Ok(count) => Check::ok(NAME, format!("{} holds {count}", path.display())),
        Err(error) => Check::problem(NAME, with_causes(&error), "correct the file, or [api.oidc] jwks"),
    })
}

/// The certificate of the API, where it has one.
fn certificate(settings: &ApiTls, now: DateTime<Utc>) -> Option<Check> {
    const NAME: &str = "certificate";
    match Tls::from_settings(settings) {
        Ok(None) => None,
        Ok(Some(tls)) => Some(match tls.expiry_warning(now) {
            None => Check::ok(NAME, format!("valid until {}", time::format(tls.not_after()))),
            Some(warning) if tls.not_after() > now => Check::warning(NAME, warning, RENEW),
            Some(problem) => Check::problem(NAME, problem, RENEW),
        }),
        Err(error) => Some(Check::problem(
            NAME,
            with_causes(&error),
            "correct the file, or the setting of [api.tls] that names it",
        )),
    }
}

const RENEW: &str =
    "get a new one and put it and its key in their files: they are reloaded without a restart";

/// Whether others can read or write the key. Whether it fits is checked with the certificate.
fn private_key(name: &str, path: &Path) -> Option<Check> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    let shown = path.display();
    Some(if mode & 0o026 == 0 {
        Check::ok(name, format!("{shown} is private (mode {mode:03o})"))
    } else {
        let found = format!("{shown} can be read or written by others (mode {mode:03o})");
        let advice = "chmod it to 0600, or to 0640 with a group of the service alone; replace the key if others may have \
                      read it";
        Check::warning(name, found, advice)
    })
}

/// The certificate authorities that clients' certificates are verified against.
fn client_authorities(path: &Path, now: DateTime<Utc>) -> Check {
    const NAME: &str = "clients' authorities";
    const ADVICE: &str = "add its successor to the file: both are trusted until the old one expires";
    match earliest_expiry(path) {
        Err(error) => Check::problem(NAME, with_causes(&error), "correct the file, or [api.tls] client-ca"),
        Ok(end) => {
            let at = time::format(end);
            if end <= now {
                let found = format!("one expired at {at}: certificates that it has signed are refused");
                Check::warning(NAME, found, ADVICE)
            } else if end - now <= WARN_BEFORE {
                Check::warning(NAME, format!("one expires at {at}"), ADVICE)
            } else {
                Check::ok(NAME, format!("valid until {at}"))
            }
        }
    }
}

fn earliest_expiry(path: &Path) -> Result<DateTime<Utc>, PemError> {
    let file = PemFile::read_trusted("`client-ca` of [api.tls]", path, plain_file::examiner())?;
    let ends: Result<Vec<_>, _> = file.authorities()?.iter().map(not_after).collect();
    let ends = ends.map_err(|why| file.invalid(why))?;
    Ok(ends.into_iter().min().unwrap_or(DateTime::<Utc>::MAX_UTC))
}

/// The strongbox's key file, if one is configured.
fn strongbox(settings: &Settings, state: Option<&State>) -> Option<Check> {
    const NAME: &str = "strongbox's key";
    let path = settings.strongbox.key_file.as_ref()?;
    let sealed = |strongbox: Strongbox| state.and_then(|state| strongbox.sealed(&state.strongbox));
    Some(match Strongbox::from_settings(settings).map(sealed) {
        Ok(None) => Check::ok(NAME, format!("{} can be used", path.display())),
        Ok(Some(sealed)) => Check::problem(
            NAME,
            describe(&sealed).to_string(),
            "use the key that the secrets were sealed with",
        ),
        Err(error) => Check::problem(NAME, with_causes(&error), "correct the file, or [strongbox] key-file"),
    })
}

#[cfg(test)]
mod tests;
