//! Enrolment: which hosts take part in runs, by approval.

mod fact;
mod fold;
pub(crate) mod request;
mod state;
mod steps;

pub use self::fact::EnrolmentFact;
pub(crate) use self::request::purged;
pub use self::request::{EnrolmentOperation, EnrolmentRefusal};
pub use self::state::{
    APPROVED_AT_ONCE_MAX, Approval, Deferral, ENROLLED_MAX, Enrolled, Enrolment, KeyState, PENDING_NAMED_MAX,
    PinnedKey, Removal, Withdrawal,
};
pub(crate) use self::steps::{end_deferrals, pin_first};
