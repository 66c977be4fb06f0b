//! What the REST API says: every route, and the bodies that routes take and answer.
//!
//! A route is declared once, in the file of its resource, as a [`route::Route`]: its method and path, who may ask for
//! it, the words of `/openapi.json` about it, and its bodies with their examples. The server registers a handler with
//! the declaration and takes from it who may call; the description is made from the declarations (`openapi`), and
//! clients ask by them. Nothing is decided here, and nothing is known of the state that answers are made of.

#![allow(
    missing_docs,
    reason = "what is said of a field of a body is said to clients too, in the description"
)]
#![allow(unused_qualifications, reason = "what utoipa writes for parameters")]

pub mod body;
pub mod cluster;
pub mod config;
pub mod documentation;
pub mod fleet_lock;
pub mod health;
pub mod hosts;
mod lists;
pub mod openapi;
pub mod query;
pub mod role;
pub mod route;
pub mod runs;
pub mod sites;
pub mod slots;
pub mod state;
pub mod strongbox;
pub mod text;
pub mod windows;

pub use role::Role;
