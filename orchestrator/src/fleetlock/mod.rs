//! The FleetLock protocol over HTTP: the client, for `[fleet-lock] url`. The endpoints are the API's; who needs a slot when, and who gets one, is the kernel's to decide.

pub mod client;
