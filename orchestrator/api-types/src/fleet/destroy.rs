//! What a DELETE of a unit asks for, and what follows from it. A name that no unit can have is that of a unit that does not exist.

use os_upgrade_scheduler::{UnitFile, UnitName};

use crate::fleet::error::FleetError;
use crate::fleet::version::Version;
use crate::fleet::{contents, media_type, v1_alpha};

/// The status of the answer to a DELETE that destroys, which has no body.
pub const DESTROYED: u16 = 204;

/// A DELETE that is well-formed.
#[derive(Debug, Clone)]
pub struct Destroy {
    /// The contents that the unit must have; absent if any will do.
    pub expected: Option<UnitFile>,
}

impl Destroy {
    /// Reads a DELETE with all values of `Content-Type`. In v1-alpha a body may say which contents the unit has; in v1 a body is ignored.
    ///
    /// # Errors
    /// The first check that fails: media type, if there is a body, then body, contents.
    pub fn read<'a>(
        version: Version,
        content_types: impl IntoIterator<Item = &'a [u8]>,
        body: &[u8],
    ) -> Result<Self, FleetError> {
        let expected = match version {
            Version::V1Alpha if !body.is_empty() => {
                media_type::check(content_types)?;
                let unit = v1_alpha::PartialUnit::read(body)?;
                unit.contents().map(contents::from_base64).transpose()?
            }
            Version::V1Alpha | Version::V1 => None,
        };
        Ok(Self { expected })
    }

    /// Checks that the unit `name` may be destroyed, given the file of it if it exists, and returns its name.
    ///
    /// # Errors
    /// The first check that fails: existence, contents.
    pub fn decide<'a>(
        &self,
        name: &str,
        existing: impl FnOnce(&UnitName) -> Option<&'a UnitFile>,
    ) -> Result<UnitName, FleetError> {
        let name = UnitName::new(name).map_err(|_| FleetError::UnknownUnit)?;
        let existing = existing(&name).ok_or(FleetError::UnknownUnit)?;
        if self.expected.as_ref().is_some_and(|expected| expected != existing) {
            return Err(FleetError::ContentsDiffer);
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests;
