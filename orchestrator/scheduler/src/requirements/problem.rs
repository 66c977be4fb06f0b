//! What is wrong with what a unit asks of its machine.

use crate::pattern::PatternError;
use crate::unit::{UnitName, UnitNameError};

/// The maximum number of values of an option of `[X-Fleet]`, over all its lines.
pub const VALUES_MAX: usize = 256;

/// Why no unit may have this section `[X-Fleet]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RequirementsError {
    /// The line, counted from 1; of two that contradict each other the later one.
    pub line: u32,
    /// What is wrong there.
    pub problem: RequirementsProblem,
}

/// What is wrong with an option of `[X-Fleet]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementsProblem {
    /// A word begins with a quotation mark and has no second one.
    #[error("a quotation mark is not closed")]
    Quote,
    /// An option has too many values.
    #[error("an option of [X-Fleet] has at most {VALUES_MAX} values")]
    TooMany,
    /// Not the whole identity of a machine. fleet's documents forbid the short form, its code takes it.
    #[error("MachineID is the whole id of a machine, which has 32 hexadecimal digits")]
    MachineId,
    /// Two identities, of which fleet takes the first.
    #[error("MachineID names more than one machine")]
    TwoMachineIds,
    /// An identity of a boot. fleet never places such a unit.
    #[error("X-ConditionMachineBootID matches no machine: use MachineID")]
    MachineBootId,
    /// `MachineOf` does not have the name of a unit.
    #[error("MachineOf names a unit: {0}")]
    Peer(UnitNameError),
    /// `MachineOf` has the name of the unit itself.
    #[error("MachineOf names the unit itself")]
    PeerItself,
    /// Not a pair. fleet would ignore it, and place the unit anywhere.
    #[error("MachineMetadata is key=value, and several such pairs on a line are each in quotation marks")]
    Metadata,
    /// `Conflicts` or `Replaces` does not have a pattern.
    #[error("Conflicts and Replaces are patterns of names: {0}")]
    Pattern(PatternError),
    /// Neither yes nor no.
    #[error("Global and Evacuate are yes or no")]
    Boolean,
    /// `Conflicts` has the name of the unit itself. A glob may match it.
    #[error("Conflicts names the unit itself")]
    ConflictsWithItself,
    /// `Replaces` has the name of the unit itself. A glob may match it.
    #[error("Replaces names the unit itself")]
    ReplacesItself,
    /// The unit is to be on the machine of `peer`, and not to be there.
    #[error("Conflicts matches {peer}, which MachineOf names")]
    PeerConflicts {
        /// The other unit.
        peer: UnitName,
    },
    /// The unit is to be on the machine of `peer`, which is to leave it.
    #[error("Replaces matches {peer}, which MachineOf names")]
    PeerReplaced {
        /// The other unit.
        peer: UnitName,
    },
    /// Both name the machine.
    #[error("MachineID excludes MachineOf")]
    MachineIdWithMachineOf,
    /// The machine might not take the unit.
    #[error("MachineID excludes Conflicts")]
    MachineIdWithConflicts,
    /// One machine, and all.
    #[error("MachineID excludes Global")]
    MachineIdWithGlobal,
    /// The machine might not take the unit.
    #[error("MachineID excludes Replaces")]
    MachineIdWithReplaces,
    /// One machine, and all.
    #[error("Global excludes MachineOf")]
    GlobalWithMachineOf,
    /// The other units could be nowhere.
    #[error("Global excludes Replaces")]
    GlobalWithReplaces,
    /// One gives way to units, the other makes them give way.
    #[error("Conflicts excludes Replaces")]
    ConflictsWithReplaces,
}
