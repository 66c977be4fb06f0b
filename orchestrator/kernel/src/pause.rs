//! The pause of a site: until somebody resumes it, nothing further begins there, neither a run nor a host of one nor a reboot. What is
//! under way is finished. Clocks run on.

mod fact;
mod fold;
pub(crate) mod request;
mod state;
mod steps;

pub use self::fact::PauseFact;
pub use self::request::{PauseOperation, PauseRefusal};
pub use self::state::{Pause, PauseCause};
pub(crate) use self::steps::end;
