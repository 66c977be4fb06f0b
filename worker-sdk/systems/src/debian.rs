//! Debian: APT and dpkg. All output is in the locale C.

pub mod database;
pub mod decide;
pub mod failure;
pub mod kernel;
pub mod lock;
pub mod package;
pub mod plan;
pub mod progress;
pub mod release;
pub mod size;
pub mod source;
pub mod space;
pub mod version;
