//! Rules for the source of all crates, checked by tests that parse it and run none of it.
#![cfg(test)]
#![expect(clippy::wildcard_enum_match_arm, reason = "the enums of syn may grow")]

mod circles;
mod diagram;
mod docs;
mod graph;
mod layers;
mod links;
mod modules;
mod purity;
mod style;
mod workspace;
