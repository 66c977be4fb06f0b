//! The command line, the documentation, the API's description and the benchmarks, as users see them.

mod api;
mod bench;
mod cli;
mod colours;
mod completion;
mod config;
mod dev;
mod docker_files;
mod examples;
mod exit_codes;
mod readme;
