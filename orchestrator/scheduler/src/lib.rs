//! Units and machines, in the words of systemd and of CoreOS fleet. It has no clock, no randomness and no I/O.
//!
//! [`UnitFile`] reads and writes unit files, [`Requirements`] is what the section `[X-Fleet]` of one asks of its machine. [`Site`] says which
//! machine runs which unit, and [`judge`] what it means that agents are silent.

mod machine;
mod pattern;
mod requirements;
mod schedule;
mod silence;
mod unit;

pub use machine::{MachineId, MachineIdError};
pub use pattern::{PATTERN_BYTES_MAX, Pattern, PatternError};
pub use requirements::{
    Requirements, RequirementsError, RequirementsProblem, UnknownOption, VALUES_MAX, unknown_options,
};
pub use schedule::{Globals, Machine, MachineStatus, Misfit, Move, Place, Site, Taken, Unit};
pub use silence::{GRACE, Reach, Silence, judge};
pub use unit::{
    UNIT_BYTES_MAX, UnitFile, UnitFileError, UnitFileProblem, UnitHash, UnitHashError, UnitKind, UnitName,
    UnitNameError, UnitOption, UnitState, UnitStateError,
};
