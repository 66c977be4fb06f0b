//! Parsers for the output of operating systems' tools, and the decisions about an upgrade that follow from it.
//!
//! Pure: the input is the output of tools, the result is decisions and messages for operators. The program
//! `os-upgrade-worker` runs the tools and acts on the decisions.

pub mod debian;
pub mod image;
pub mod logind;
pub mod script;
pub mod systemd;
pub mod text;
