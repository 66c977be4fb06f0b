//! What a PUT of a unit asks for, and what follows from it. The checks have one order in both dialects: media type, body, name, contents,
//! then whether the unit exists, its contents, and its state. Those up to the contents need the request alone.

use os_upgrade_scheduler::{Requirements, UnitFile, UnitName, UnitState};

use crate::fleet::error::FleetError;
use crate::fleet::version::Version;
use crate::fleet::{contents, media_type, v1, v1_alpha};

/// A PUT that is well-formed.
#[derive(Debug, Clone)]
pub struct Put {
    version: Version,
    /// The unit.
    pub name: UnitName,
    /// The state that is wished; absent if nothing is said of it.
    pub desired: Option<UnitState>,
    /// The contents; absent if nothing is said of them.
    pub submitted: Option<Submitted>,
}

/// Contents of a unit that can be one.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The file.
    pub file: UnitFile,
    /// What it asks of machines.
    pub requirements: Requirements,
}

/// What a PUT changes.
#[derive(Debug, Clone)]
pub enum Change {
    /// There is a new unit.
    Create {
        /// Its contents.
        submitted: Submitted,
        /// Its state.
        desired: UnitState,
    },
    /// In v1: the unit has other contents from now on.
    Replace {
        /// Its contents.
        submitted: Submitted,
        /// Its state.
        desired: UnitState,
    },
    /// The unit has this wished state from now on, which may be the one that it has.
    SetState {
        /// Its state.
        desired: UnitState,
    },
}

impl Change {
    /// The state that is wished.
    pub const fn desired(&self) -> UnitState {
        match self {
            Self::Create { desired, .. } | Self::Replace { desired, .. } | Self::SetState { desired } => {
                *desired
            }
        }
    }

    /// The status of the answer, which has no body.
    pub const fn status(&self, version: Version) -> u16 {
        match (version, self) {
            (Version::V1, Self::Create { .. } | Self::Replace { .. }) => 201,
            (Version::V1, Self::SetState { .. })
            | (Version::V1Alpha, Self::Create { .. } | Self::Replace { .. } | Self::SetState { .. }) => 204,
        }
    }
}

impl Put {
    /// Reads a PUT of the unit `name`, as the decoded URL has it, with all values of `Content-Type`.
    ///
    /// # Errors
    /// The first check that fails: media type, body, name, contents.
    pub fn read<'a>(
        version: Version,
        name: &str,
        content_types: impl IntoIterator<Item = &'a [u8]>,
        body: &[u8],
    ) -> Result<Self, FleetError> {
        media_type::check(content_types)?;
        let (name, desired, file) = match version {
            Version::V1Alpha => {
                let unit = v1_alpha::PartialUnit::read(body)?;
                let name = UnitName::new(name)?;
                (name, unit.desired_state, unit.contents().map(contents::from_base64))
            }
            Version::V1 => {
                let unit = v1::PartialUnit::read(body)?;
                if let Some(stated) = unit.stated_name()
                    && stated != name
                {
                    return Err(FleetError::NamesDiffer { url: name.to_owned(), body: stated.to_owned() });
                }
                let name = UnitName::new(name)?;
                (name, unit.desired_state, unit.into_options().map(contents::from_options))
            }
        };
        let submitted = file.transpose()?.map(|file| Submitted::new(&name, file)).transpose()?;
        Ok(Self { version, name, desired, submitted })
    }

    /// What follows, given the file of the unit if it exists. A new unit, and one that is replaced, is inactive unless it is said.
    ///
    /// # Errors
    /// The first check that fails: existence, contents, state.
    pub fn decide(self, existing: Option<&UnitFile>) -> Result<Change, FleetError> {
        let Self { version, name, desired, submitted } = self;
        let when_new = desired.unwrap_or(UnitState::Inactive);
        let change = match (existing, submitted) {
            (None, None) => return Err(FleetError::NoContents(version)),
            (None, Some(submitted)) => Change::Create { submitted, desired: when_new },
            (Some(existing), Some(submitted)) if !is_same(version, &submitted.file, existing) => {
                match version {
                    Version::V1Alpha => return Err(FleetError::ContentsDiffer),
                    Version::V1 => Change::Replace { submitted, desired: when_new },
                }
            }
            (Some(_), _) => Change::SetState { desired: desired.ok_or(FleetError::NoDesiredState)? },
        };
        if name.is_template() && change.desired() != UnitState::Inactive {
            return Err(FleetError::TemplateActivated(name));
        }
        Ok(change)
    }
}

impl Submitted {
    /// The contents of the unit `name`.
    fn new(name: &UnitName, file: UnitFile) -> Result<Self, FleetError> {
        Ok(Self { requirements: Requirements::read(name, &file)?, file })
    }
}

/// Whether two files are the same unit: in v1-alpha by their text, in v1 by their options, which is all that its clients know.
fn is_same(version: Version, one: &UnitFile, other: &UnitFile) -> bool {
    match version {
        Version::V1Alpha => one == other,
        Version::V1 => one.options_hash() == other.options_hash(),
    }
}

#[cfg(test)]
mod tests;
