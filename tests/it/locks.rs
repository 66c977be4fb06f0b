//! Slots: FleetLock over HTTP, its clients, external lock servers, and the operators' commands.

mod cases;
mod client;
mod commands;
mod foreign_server;
mod races;
mod slots;
