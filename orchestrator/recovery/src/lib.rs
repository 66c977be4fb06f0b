//! Backups, what the bus has lost, and restorations from a backup or from the store alone.
//!
//! - [`archive`]: the file of a backup;
//! - [`site`]: settings, bus and lease of a site on which no orchestrator runs;
//! - [`collect`]: reading the streams, into files or a state;
//! - [`backup`]: a backup of the whole site at one position of its journal, while it runs;
//! - [`loss`]: a description of what the bus has lost;
//! - [`plan`], [`restore`]: planning a restoration, and carrying it out.

pub mod archive;
pub mod backup;
pub mod collect;
pub mod error;
pub mod loss;
pub mod plan;
pub mod restore;
pub mod site;

pub use self::error::RecoveryError;
