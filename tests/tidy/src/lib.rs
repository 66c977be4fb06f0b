//! What the source of every crate here keeps to: tests that read it as text and as syntax, and run nothing of it.
#![cfg(test)]
#![expect(clippy::wildcard_enum_match_arm, reason = "the enums of syn may grow")]

mod circles;
mod diagram;
mod links;
mod modules;
mod workspace;
