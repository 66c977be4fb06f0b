//! When the bus has lost something: what that is, backups, and going on from one, or from the store alone.
//!
//! - [`archive`]: the file of a backup, and what can be wrong with one;
//! - [`site`]: store, bus and lease of a site that nobody else uses meanwhile;
//! - [`collect`]: what stands in the streams, put into files;
//! - [`backup`]: the whole site at one position of its journal, while it runs;
//! - [`loss`]: what exactly the bus has lost, in words;
//! - [`plan`], [`restore`]: what a restoration would do, and doing it.

pub mod archive;
pub mod backup;
pub mod collect;
pub mod error;
pub mod loss;
pub mod plan;
pub mod restore;
pub mod site;

pub use self::error::RecoveryError;
