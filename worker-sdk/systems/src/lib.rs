//! What the tools of operating systems say, and what follows from it for an upgrade.
//!
//! Pure: texts that tools have written come in, decisions and messages for operators come out. Which commands are run,
//! and what is done then, is the program `os-upgrade-worker`'s.

pub mod debian;
pub mod image;
pub mod systemd;
pub mod text;
