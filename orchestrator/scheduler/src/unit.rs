//! Units: their names, states and files. What a file asks of machines is in `requirements`.

mod file;
mod hash;
mod kind;
mod name;
mod option;
mod parse;
mod problem;
mod state;
mod value;

pub use file::UnitFile;
pub use hash::{UnitHash, UnitHashError};
pub use kind::UnitKind;
pub use name::{UnitName, UnitNameError};
pub use option::UnitOption;
pub use problem::{UNIT_BYTES_MAX, UnitFileError, UnitFileProblem};
pub use state::{UnitState, UnitStateError};
