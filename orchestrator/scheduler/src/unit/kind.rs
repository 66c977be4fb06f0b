//! Kinds of units.

use std::fmt;

use strum::{EnumString, IntoStaticStr};

/// The kind of a unit, which is the suffix of its name. The list is fleet's, with kinds that systemd no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum UnitKind {
    /// A process that systemd supervises.
    Service,
    /// A socket that starts its service.
    Socket,
    /// A timer that starts its service.
    Timer,
    /// A group of units.
    Target,
    /// A path that is watched, and starts its service.
    Path,
    /// A mounted file system.
    Mount,
    /// A mount on first use.
    Automount,
    /// A device.
    Device,
    /// Processes that something else than systemd started.
    Scope,
    /// A node of the tree of resource limits.
    Slice,
    /// Swap space.
    Swap,
    /// An endpoint of kdbus.
    Busname,
    /// A set of units that can be started again.
    Snapshot,
}

impl UnitKind {
    /// The suffix of a name, without its dot.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether units of this kind can be templates, and instances of these.
    pub const fn can_be_template(self) -> bool {
        match self {
            Self::Service | Self::Socket | Self::Timer | Self::Target | Self::Path => true,
            Self::Mount
            | Self::Automount
            | Self::Device
            | Self::Scope
            | Self::Slice
            | Self::Swap
            | Self::Busname
            | Self::Snapshot => false,
        }
    }
}

impl fmt::Display for UnitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
