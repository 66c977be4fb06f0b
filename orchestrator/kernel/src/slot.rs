//! Slots: who may be at work. A host holds one on behalf of a run or of an entry of the reboot queue, from the embedded semaphores
//! or from a lock server.

mod admission;
mod client_id;
mod fact;
mod fold;
mod job;
pub(crate) mod lock_clients;
mod release;
pub(crate) mod request;
mod rules;
mod semaphore;
mod state;
mod steps;

pub(crate) use self::admission::admit;
pub use self::client_id::{CLIENT_ID_BYTES_MAX, ClientId, ClientIdError};
pub use self::fact::{LockFact, SlotFact};
pub use self::job::{LockOutcome, SlotJob, SlotOrder};
pub use self::lock_clients::LockOperation;
pub(crate) use self::release::release;
pub use self::request::{SlotOperation, SlotRefusal};
pub use self::semaphore::{
    Denied, DeniedKind, Full, Hold, Holder, HostDenied, NamedHolder, RECORD_INTERVAL, REMEMBERED, Semaphore,
    Semaphores, Uncounted, WAITERS_MAX, Waiter, Waiters,
};
pub use self::state::{LATE_REQUEST_MAX, ReleaseCause, Slot, SlotState};
pub(crate) use self::steps::{release_again, release_unsent};
