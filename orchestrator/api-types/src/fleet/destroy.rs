//! What a DELETE of a unit asks for. A name that no unit can have is that of a unit that does not exist.

use os_upgrade_scheduler::{UnitFile, UnitName};

use crate::fleet::error::FleetError;
use crate::fleet::version::Version;
use crate::fleet::{contents, media_type, v1_alpha};

/// The status of the answer to a DELETE that destroys, which has no body.
pub const DESTROYED: u16 = 204;

/// A DELETE that is well-formed.
#[derive(Debug, Clone)]
pub struct Destroy {
    /// The unit.
    pub name: UnitName,
    /// The contents that the unit must have; absent if any will do.
    pub expected: Option<UnitFile>,
}

impl Destroy {
    /// Reads a DELETE of the unit `name`, as the decoded URL has it, with all values of `Content-Type`. In v1-alpha a body may say which
    /// contents the unit has; in v1 a body is ignored.
    ///
    /// # Errors
    /// The first check that fails: media type, if there is a body, then body, name, contents.
    pub fn read<'a>(
        version: Version,
        name: &str,
        content_types: impl IntoIterator<Item = &'a [u8]>,
        body: &[u8],
    ) -> Result<Self, FleetError> {
        let unit = match version {
            Version::V1Alpha if !body.is_empty() => {
                media_type::check(content_types)?;
                Some(v1_alpha::PartialUnit::read(body)?)
            }
            Version::V1Alpha | Version::V1 => None,
        };
        let name = UnitName::new(name).map_err(|_| FleetError::UnknownUnit)?;
        let expected = unit.as_ref().and_then(v1_alpha::PartialUnit::contents);
        let expected = expected.map(contents::from_base64).transpose()?;
        Ok(Self { name, expected })
    }
}
