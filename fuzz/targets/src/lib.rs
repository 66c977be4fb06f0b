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

/// The parts of `data` between `separator`s, `N` of them; what is not there is empty.
fn split<const N: usize>(data: &[u8], separator: u8) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |byte| *byte == separator);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Whether `data` is a JSON object in UTF-8: a list could be taken for one whose fields stand in order.
fn is_object(data: &[u8]) -> bool {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    str::from_utf8(data).is_ok_and(|text| text.trim_start().starts_with('{') && is_json(text))
}

/// Whether `text` is one line without control characters: it goes into logs and answers.
fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
