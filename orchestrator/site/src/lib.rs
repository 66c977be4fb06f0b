//! What an instance shows of its site, and the way to ask it for changes: what stands between the driver, which has the
//! node, and everything that reads from it or asks it.

pub mod call;
pub mod handle;
pub mod instances;
pub mod snapshot;
pub mod strongbox;
