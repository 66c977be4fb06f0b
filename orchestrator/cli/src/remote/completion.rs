//! What a shell offers for an argument: the names that the instance knows which the command would call.

use std::ffi::OsString;
use std::sync::mpsc;
use std::time::Duration;

use clap::{Args as _, Command, FromArgMatches as _};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::hosts::{self, Host};
use os_upgrade_api_types::routes::runs::{self, Run};
use os_upgrade_api_types::routes::units::{self, Units};
use os_upgrade_api_types::word::Word;
use os_upgrade_console::Zone;
use os_upgrade_console::rows::hosts::is_unannounced;
use os_upgrade_protocol::text::sanitized;

use crate::arguments::only_options_of;
use crate::rest::{Client, Server};

/// Nobody waits longer for a shell.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// So many of the newest runs are offered.
const RUNS_MAX: u32 = 50;

/// Offers the hosts.
pub(super) fn hosts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        offered(async |client| {
            let hosts: Vec<Host<'_>> = client.read(hosts::LIST.call()).await?;
            let known = hosts.iter().filter(|host| !is_unannounced(host)).map(|host| host.hostname.as_ref());
            Ok(known.filter(is_plain).map(CompletionCandidate::new).collect())
        })
    })
}

/// Offers the units.
pub(super) fn units() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        offered(async |client| {
            let known: Units<'_> = client.read(units::LIST.call()).await?;
            let names = known.units.iter().map(|unit| unit.name.as_ref());
            Ok(names.filter(is_plain).map(CompletionCandidate::new).collect())
        })
    })
}

/// Offers the newest runs, each with how it went.
pub(super) fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        offered(async |client| {
            let call = runs::LIST.call().with("limit", RUNS_MAX.to_string());
            let runs: Page<Run<'_>> = client.read(call).await?;
            let run = |run: &Run<'_>| {
                let result = run.result.as_ref().map_or("active", Word::as_str);
                let help = format!("{}, {}", Zone::Local.stamp(run.start_time), sanitized(result));
                CompletionCandidate::new(run.id.as_ref()).help(Some(help.into()))
            };
            let last =
                CompletionCandidate::new("last").help(Some("the active run, else the last one".into()));
            let plain = runs.items.iter().filter(|run| is_plain(&run.id.as_ref()));
            Ok(std::iter::once(last).chain(plain.map(run)).collect())
        })
    })
}

/// What `ask` finds. Nothing if it fails, as there is no place for an error in a line that is being typed, or takes too long: the process ends
/// then, whatever its thread waits for.
fn offered(
    ask: impl AsyncFnOnce(Client) -> anyhow::Result<Vec<CompletionCandidate>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (found, finds) = mpsc::channel();
    std::thread::spawn(move || {
        let words = std::env::args_os().skip_while(|word| word != "--").skip(2);
        let client = server(words).and_then(|server| Client::new(&server).ok());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let (Some(client), Ok(runtime)) = (client, runtime) {
            // Nobody may wait for it any more.
            let _ = found.send(runtime.block_on(ask(client)).unwrap_or_default());
        }
    });
    finds.recv_timeout(ANSWERED_WITHIN).unwrap_or_default()
}

/// The instance that a command of these `words` calls.
fn server(words: impl IntoIterator<Item = OsString>) -> Option<Server> {
    let command = Server::augment_args(Command::new("os-upgrade").no_binary_name(true));
    let matches = command.clone().try_get_matches_from(only_options_of(&command, words)).ok()?;
    Server::from_arg_matches(&matches).ok()
}

/// Whether shells take `name` for a plain word. Strangers choose the names of hosts, and what is completed is part of a command.
fn is_plain(name: &&str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
    !name.starts_with('-') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_offered() {
        for (name, expected) in [
            ("web-01.example", true),
            ("019aa3f0-0001-7000", true),
            ("$(reboot)", false),
            ("a b", false),
            ("a;b", false),
            ("web*", false),
            ("a:b", false),
            ("-o", false),
            ("h\u{e9}", false),
        ] {
            assert_eq!(is_plain(&name), expected, "{name}");
        }
    }

    #[test]
    fn the_instance_is_that_of_the_command() {
        let server = |line: &str| server(line.split_whitespace().map(OsString::from));
        let named = |line| server(line).map(|server| format!("{server:?}"));
        assert_eq!(named("hosts show h --url http://h:1"), named("--url=http://h:1"));
        assert_eq!(named("run start -o json --context prod --wat"), named("--context prod"));
        assert_ne!(named("--context prod"), named(""));
        assert!(server("run show --context").is_none());
    }
}
