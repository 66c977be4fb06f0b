//! What every parser of bytes from outside must do with any bytes: never panic, keep to its bounds, take nothing that
//! its type does not allow, and read back what it prints.
//!
//! Each target is a function that panics when that is not so. `fuzz/` feeds them with what libFuzzer makes up; the test
//! of this crate with the corpora, so that what was found once is looked at by `make test` for ever.

mod bus;
mod files;
mod http;
mod journal;
mod sites;
mod text;
mod window;

pub use bus::{announcement, command, control, forward, hint, progress, reply, subject, versions};
pub use files::{settings, state_file, token_file};
pub use http::{claim, config, lock_answer, patch, query, trigger, yaml};
pub use journal::{followed, journal};
pub use sites::{site_answer, site_request};
pub use window::window;

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its corpus and of its program in `fuzz/`.
pub const TARGETS: [(&str, Target); 23] = [
    ("announcement", announcement),
    ("claim", claim),
    ("command", command),
    ("config", config),
    ("control", control),
    ("forward", forward),
    ("journal", journal),
    ("lock_answer", lock_answer),
    ("patch", patch),
    ("hint", hint),
    ("progress", progress),
    ("query", query),
    ("reply", reply),
    ("settings", settings),
    ("site_answer", site_answer),
    ("site_request", site_request),
    ("state_file", state_file),
    ("subject", subject),
    ("token_file", token_file),
    ("trigger", trigger),
    ("versions", versions),
    ("window", window),
    ("yaml", yaml),
];
