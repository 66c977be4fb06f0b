//! The Kubernetes API: what a drain relies on, measured at a real server, and that the server of the tests keeps to it.

mod adapter;
mod api;
mod client;
mod cluster;
mod drain;
mod eviction;
mod jobs;
mod lists;
mod manifests;
mod node_events;
mod nodes;
mod pods;
mod refusals;
mod rights;
mod server;
mod shared;
mod volumes;
mod watches;
mod writes;
