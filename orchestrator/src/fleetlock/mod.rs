//! The FleetLock protocol over HTTP. Here is the client, for `[fleet-lock] url`; who needs a slot when is the
//! kernel's to decide.

pub mod client;
