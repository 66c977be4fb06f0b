//! What hosts are to have: the items that providers gave for them, and the manifest of each host that follows from that.
//!
//! Contents are nowhere here: an item is its id, and where it stands in the order. What is in the stream is derived from the state as
//! commands are: a host's manifest is an effect until the state knows that it is stored.

mod fact;
mod fold;
mod input;
mod manifest;
pub(crate) mod request;
mod rules;
mod state;
pub(crate) mod steps;
mod wait;
mod withheld;

pub use self::fact::DesiredFact;
pub use self::input::StoredItem;
pub(crate) use self::input::{item_revoked, item_stored, manifest_stored};
pub use self::manifest::ManifestOrder;
pub(crate) use self::manifest::due;
pub use self::request::{DesiredOperation, DesiredRefusal};
pub use self::rules::ItemState;
pub use self::state::{Desired, DesiredHost, DesiredItem, FailedProvider};
pub use self::wait::ConfigurationWait;
pub use self::withheld::{Resumption, Withholding};
