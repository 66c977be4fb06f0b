//! What an instance shows of its site, and how changes are requested: the interface between the driver, which owns the
//! instance's logic, and everything that reads from it or sends it requests.

pub mod call;
pub mod drain_previews;
pub mod handle;
pub mod host_reports;
pub mod instances;
pub mod provider_tests;
pub mod published_state;
pub mod strongbox;
