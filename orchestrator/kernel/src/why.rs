//! Why something is not progressing: the one shape for whatever is shown ([`Why`]), and what keeps hosts.

mod cause;
mod explain;
mod host;

pub use self::cause::{Cause, Why};
pub(crate) use self::explain::LastWaits;
pub use self::explain::{Explainer, Explanation};
pub use self::host::HostBlocker;
