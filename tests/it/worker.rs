//! The worker program, the library, and the check of any worker.

mod check;
mod commands;
mod configuration;
mod faults;
mod handlers;
mod image;
mod library;
mod output;
mod python;
mod reboots;
mod scripts;
mod supervised;
