//! Commands that ask an instance over its API.

pub(crate) mod cluster;
pub(crate) mod facts;
pub(crate) mod hosts;
pub(crate) mod strongbox;
