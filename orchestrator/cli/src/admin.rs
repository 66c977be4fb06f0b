//! Commands that need the machine itself: its files, its settings, its NATS.

pub(crate) mod doctor;
pub(crate) mod nats_config;
pub(crate) mod recovery;
pub(crate) mod token;
