//! Why a host is not progressing.

mod blocker;
mod explain;

pub use self::blocker::{Blocker, Cause, HostBlocker};
pub(crate) use self::explain::LastWaits;
pub use self::explain::{Explanation, explain, reason_in_run};
