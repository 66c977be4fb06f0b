//! Files that other programs or people may have written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use os_upgrade_auth::{self as auth, Proof, Rights};
use os_upgrade_protocol::HostName;
use os_upgrade_settings::{Error, NatsMode, parse};
use os_upgrade_worker_rules::{DesiredState, StateFile};

use crate::text::{is_object, is_one_line};

/// A worker's state file.
pub fn state_file(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let Ok(file) = StateFile::parse(data, &host) else { return };
    assert!(is_object(data));
    assert_eq!(file.host, host);
    assert_eq!(StateFile::parse(&file.to_bytes(), &host).expect("a written value is read back"), file);
}

/// A worker's state of configurations.
pub fn desired_state(data: &[u8]) {
    let host = HostName::new("h1").expect("a name");
    let Ok(state) = DesiredState::parse(data, &host) else { return };
    assert!(is_object(data));
    assert_eq!(state.host, host);
    assert_eq!(DesiredState::parse(&state.to_bytes(), &host).expect("a written value is read back"), state);
}

/// The file with the tokens of API callers.
pub fn token_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let tokens = match auth::parse_tokens(text) {
        Ok(tokens) => tokens,
        Err(why) => return assert!(!why.is_empty() && is_one_line(&why), "{why:?}"),
    };
    let names: BTreeSet<_> = tokens.iter().map(|token| token.name.to_string()).collect();
    assert_eq!(names.len(), tokens.len(), "names are unique");
    for token in &tokens {
        match (&token.rights, &token.proof) {
            (Rights::Role(_) | Rights::Group(_), Proof::Secret(_)) => {}
            (Rights::Group(_), Proof::Certificate(name)) => assert!(!name.is_empty()),
            (rights, proof) => panic!("{rights:?} by {proof:?}"),
        }
    }
    let written = auth::tokens_text(&tokens).expect("parsed tokens can be written");
    assert_eq!(auth::parse_tokens(&written).expect("written tokens are read back"), tokens);
}

/// The settings: a TOML file, then a line `--- environment`, then one environment variable per line.
pub fn settings(data: &[u8]) {
    const SEPARATOR: &str = "--- environment\n";
    let Ok(text) = str::from_utf8(data) else { return };
    let (file, environment) = text.split_once(SEPARATOR).unwrap_or((text, ""));
    let variables = || {
        let pairs = environment.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (OsString::from(name), OsString::from(value)))
    };
    match parse(Some(Path::new("os-upgrade.toml")), file, variables()) {
        Ok(settings) => {
            assert_eq!(
                parse(None, file, variables()).as_ref(),
                Ok(&settings),
                "the file's name has no influence"
            );
            let locks = &settings.fleet_lock;
            assert!(locks.url.is_some() || locks.groups.slots(&locks.default_group).is_some());
            assert!(locks.groups.iter().all(|(_, slots)| slots <= 10_000));
            assert!((1..=5).contains(&settings.nats.replicas.get()));
            match settings.nats.mode() {
                NatsMode::Managed => assert_eq!(settings.nats.replicas.get(), 1),
                NatsMode::External { urls, .. } => assert!(!urls.servers().is_empty()),
            }
        }
        Err(error @ Error::Invalid { .. }) => {
            let text = error.to_string();
            assert!(
                !text.is_empty() && text.lines().all(|line| !line.is_empty() && is_one_line(line)),
                "{text:?}"
            );
        }
        Err(Error::Unreadable { .. }) => unreachable!("no file is read"),
    }
}
