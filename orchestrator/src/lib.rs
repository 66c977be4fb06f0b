//! The orchestrator: the shell around the kernel, its adapters, API and command line.

pub mod site;
