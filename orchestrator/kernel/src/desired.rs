//! What hosts are to have: the items that providers gave for them, and the manifest of each host that follows from that.
//!
//! Providers of kind `hooks` are told of events of hosts; what is still to be told is here as well.
//!
//! Contents of configurations are nowhere here: an item is its id, and where it stands in the order. Those of units are in `unit/`. What is
//! in the stream is derived from the state as commands are: a host's manifest is an effect until the state knows that it is stored.

mod fact;
mod fold;
mod hook_fold;
mod hook_rules;
mod hooks;
mod input;
mod manifest;
pub(crate) mod request;
mod rules;
mod state;
pub(crate) mod steps;
mod wait;
mod withheld;

pub use self::fact::DesiredFact;
pub use self::hooks::{CALLBACK_TOKENS_MAX, HookDevice, HookProvider, ToldMetadata};
pub use self::input::StoredItem;
pub(crate) use self::input::{
    AnsweredEvent, hook_answered, hook_token_drawn, item_revoked, item_stored, manifest_stored,
};
pub use self::manifest::ManifestOrder;
pub(crate) use self::manifest::due;
pub use self::request::{DesiredOperation, DesiredRefusal};
pub use self::rules::{FailedItem, ItemState, LeftOver};
pub use self::state::{Desired, DesiredHost, DesiredItem, DesiredUnit, FailedProvider};
pub use self::wait::ConfigurationWait;
pub use self::withheld::{Resumption, Withholding};
