//! Fuzz targets: whatever the input, a parser of untrusted bytes must not panic, must keep its limits, must accept only
//! what its type allows, and must read back what it writes.
//!
//! Each target is a function that panics when a parser fails that. The programs in `fuzz/` pass it inputs of libFuzzer;
//! the test of this crate passes it the corpora, so that `make test` covers every input that was ever found.

mod bus;
mod files;
mod fleet;
mod hooks;
mod http;
mod journal;
mod provider;
mod sites;
mod text;
mod unit_file;
mod window;
mod zone_file;

pub use bus::{
    announcement, applied, command, content, control, forward, hint, manifest, output, progress, reply,
    subject, unit_item, versions,
};
pub use files::{desired_state, settings, state_file, token_file};
pub use fleet::fleet;
pub use hooks::{hook_answer, hook_callback};
pub use http::{claim, config, lock_answer, patch, query, trigger, yaml};
pub use journal::{follow, journal};
pub use provider::{provider_answer, provider_url};
pub use sites::{site_answer, site_request};
pub use unit_file::unit_file;
pub use window::window;
pub use zone_file::zone_file;

/// A fuzz target; it panics on a fault.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the name of its corpus and of its program in `fuzz/`.
pub const TARGETS: [(&str, Target); 36] = [
    ("announcement", announcement),
    ("applied", applied),
    ("claim", claim),
    ("command", command),
    ("config", config),
    ("content", content),
    ("control", control),
    ("desired_state", desired_state),
    ("fleet", fleet),
    ("forward", forward),
    ("hook_answer", hook_answer),
    ("hook_callback", hook_callback),
    ("journal", journal),
    ("lock_answer", lock_answer),
    ("patch", patch),
    ("hint", hint),
    ("manifest", manifest),
    ("output", output),
    ("progress", progress),
    ("provider_answer", provider_answer),
    ("provider_url", provider_url),
    ("query", query),
    ("reply", reply),
    ("settings", settings),
    ("site_answer", site_answer),
    ("site_request", site_request),
    ("state_file", state_file),
    ("subject", subject),
    ("token_file", token_file),
    ("trigger", trigger),
    ("unit_file", unit_file),
    ("unit_item", unit_item),
    ("versions", versions),
    ("window", window),
    ("yaml", yaml),
    ("zone_file", zone_file),
];
