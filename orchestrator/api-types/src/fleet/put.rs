//! What a PUT of a unit asks for. The checks have one order in both dialects: media type, body, name, contents; then, in the kernel, whether
//! the unit exists, its contents, and its state. Those here need the request alone.

use os_upgrade_scheduler::{Requirements, UnitFile, UnitName, UnitState};

use crate::fleet::error::FleetError;
use crate::fleet::version::Version;
use crate::fleet::{contents, media_type, v1, v1_alpha};

/// How many characters of a name that a client has sent are sent back.
const ECHOED_CHARS_MAX: usize = 64;

/// A PUT that is well-formed.
#[derive(Debug, Clone)]
pub struct Put {
    /// The unit.
    pub name: UnitName,
    /// The state that is wished; absent if nothing is said of it.
    pub desired: Option<UnitState>,
    /// The contents, which can be those of the unit; absent if nothing is said of them.
    pub contents: Option<UnitFile>,
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
                    return Err(FleetError::NamesDiffer { url: shortened(name), body: shortened(stated) });
                }
                let name = UnitName::new(name)?;
                (name, unit.desired_state, unit.into_options().map(contents::from_options))
            }
        };
        let contents = file.transpose()?;
        if let Some(file) = &contents {
            Requirements::read(&name, file)?;
        }
        Ok(Self { name, desired, contents })
    }
}

/// The beginning of a name: that in a body may have as many bytes as the body.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(ECHOED_CHARS_MAX).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

/// The status of the answer to a PUT that is granted, which has no body. `is_new` says whether the unit is new, or has new contents.
pub const fn status(version: Version, is_new: bool) -> u16 {
    match (version, is_new) {
        (Version::V1, true) => 201,
        (Version::V1, false) | (Version::V1Alpha, true | false) => 204,
    }
}
