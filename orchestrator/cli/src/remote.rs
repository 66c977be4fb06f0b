//! Commands that call an instance's API.

pub(crate) mod cluster;
pub(crate) mod facts;
pub(crate) mod hosts;
pub(crate) mod strongbox;
