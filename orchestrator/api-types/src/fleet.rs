//! The two dialects in which units are managed: `/v1-alpha/`, as fleet's document has it, and `/fleet/v1/`, which fleet's later clients
//! speak. Pure: what a request asks for, which answer it gets, and the bodies of both. What a unit means, and where it runs, is in
//! `os-upgrade-scheduler`; the handlers are in `os-upgrade-api`.
//!
//! `docs/fleet-api.md` goes through the document line by line.

pub mod contents;
pub mod destroy;
pub mod discovery;
pub mod error;
pub mod list;
pub mod machine;
pub mod media_type;
pub mod page_token;
pub mod put;
pub mod request_body;
pub mod routes;
pub mod shown;
pub mod v1;
pub mod v1_alpha;
pub mod version;
