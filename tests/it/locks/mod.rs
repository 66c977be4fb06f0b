//! Slots: FleetLock over HTTP, its clients, lock servers of others, and what operators do about slots.

mod cases;
mod client;
mod commands;
mod foreign_server;
mod races;
mod slots;
