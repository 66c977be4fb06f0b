//! Restoration: continuing from data kept outside the bus after the bus has lost acknowledged data.

mod fact;
mod facts;
mod fold;
mod record;

pub use self::fact::RestorationFact;
pub use self::facts::{Restoration, restoration};
pub use self::record::{Outstanding, RestoreSource};
