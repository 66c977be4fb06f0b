//! The peers of the bus.

use std::fmt;

/// An instance of the orchestrator, or a host, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Instance(usize),
    Host(usize),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance(instance) => write!(f, "i{instance}"),
            Self::Host(host) => write!(f, "h{host}"),
        }
    }
}
