//! The options of `[X-Fleet]`.

/// An option that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The only machine.
    MachineId,
    /// The only machine by the identity of its boot, which fleet has given up.
    MachineBootId,
    /// The machine of another unit.
    MachineOf,
    /// Metadata of the machine.
    MachineMetadata,
    /// Units that are never on the same machine.
    Conflicts,
    /// Units that leave the machine.
    Replaces,
    /// Whether it is on all machines.
    Global,
    /// Whether it moves away before an upgrade. Fleet has no such option.
    Evacuate,
}

impl Key {
    /// The option with this name, or with this older one.
    pub(super) fn new(name: &str) -> Option<Self> {
        Some(match name {
            "MachineID" | "X-ConditionMachineID" => Self::MachineId,
            "X-ConditionMachineBootID" => Self::MachineBootId,
            "MachineOf" | "X-ConditionMachineOf" => Self::MachineOf,
            "MachineMetadata" | "X-ConditionMachineMetadata" => Self::MachineMetadata,
            "Conflicts" | "X-Conflicts" => Self::Conflicts,
            "Replaces" => Self::Replaces,
            "Global" => Self::Global,
            "Evacuate" => Self::Evacuate,
            _ => return None,
        })
    }
}
