//! What people see: sentences for the kernel's types and for events, rows and lines of what the API answers, what goes on at a site and
//! needs a person, and commands to copy.
//!
//! The API, the command line and logs take their words from here, so that the kernel decides by types alone. A new reason is a line in
//! `reason.rs`.

mod clock;
pub mod commands;
mod config;
mod describe;
mod desired;
mod enrolment;
mod event;
mod fact;
mod history;
mod needs;
mod node;
mod owner;
mod pause;
mod placement;
pub mod progress;
mod reason;
mod reboot_queue;
mod request;
mod row;
pub mod rows;
mod run;
mod secrets;
mod slot;
mod start;
pub mod status;
mod tense;
mod unit;
mod why;
mod zone;

pub use describe::{Describe, Description, describe};
pub use desired::{OTHER_FILE, what_becomes, without_key};
pub use event::first_of;
pub use fact::{Importance, summary};
pub use needs::{Need, delivery_needs, needs, unit_needs};
pub use owner::purpose;
pub use placement::{no_machine, other_metadata};
pub use row::{Column, Detail, Kind, Row, or_dash};
pub use secrets::leader_message;
pub use start::sentence;
pub use unit::not_stopped;
pub use zone::{Zone, span};
