//! The progress of a run: on a terminal a line per host that changes in place, else a line per change.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use os_upgrade_api_types::routes::runs::HostOfRunInFull;
use os_upgrade_cli::output::outln;

const TICK: Duration = Duration::from_millis(100);

/// The hosts of a run, and what was shown last.
pub(super) struct Progress {
    /// By host; `None` without a terminal.
    bars: Option<BTreeMap<String, ProgressBar>>,
    shown: BTreeMap<String, String>,
}

impl Progress {
    /// Shows `hosts` without a status.
    pub(super) fn new<'a>(hosts: impl Iterator<Item = &'a str>) -> Self {
        let bars = io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            hosts.map(|host| (host.to_owned(), all.add(bar(host)))).collect()
        });
        Self { bars, shown: BTreeMap::new() }
    }

    /// Shows what has changed.
    pub(super) fn show(&mut self, hosts: &[HostOfRunInFull<'_>]) {
        for host in hosts {
            let words = describe(host);
            if self.shown.get(&*host.hostname) == Some(&words) {
                continue;
            }
            if let Some(bar) = self.bars.as_ref().and_then(|bars| bars.get(&*host.hostname)) {
                bar.set_message(words.clone());
            } else {
                outln!("{}: {words}", host.hostname);
            }
            self.shown.insert(host.hostname.to_string(), words);
        }
    }

    /// Ends the animation; the last lines stay visible.
    pub(super) fn finish(&self) {
        for bar in self.bars.iter().flat_map(BTreeMap::values) {
            bar.abandon();
        }
    }
}

/// Status and reason of a host in words.
pub(super) fn describe(host: &HostOfRunInFull<'_>) -> String {
    let reason = host.why.as_ref().map(|why| format!(" ({})", why.text));
    format!("{}{}", host.status, reason.unwrap_or_default())
}

fn bar(host: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}");
    let bar = ProgressBar::new_spinner().with_prefix(host.to_owned());
    bar.enable_steady_tick(TICK);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
