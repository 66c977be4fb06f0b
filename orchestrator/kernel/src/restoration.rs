//! Restoration: continuing from data kept outside the bus after the bus has lost acknowledged data.

mod decide;
mod fact;
mod fold;
mod record;

pub use self::decide::{Restoration, restoration};
pub use self::fact::RestorationFact;
pub use self::record::{Outstanding, RestoreSource};
