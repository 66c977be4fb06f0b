//! Which of the two dialects a request is in.

/// A version of fleet's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// What the document describes: a unit is the text of its file, in base64.
    V1Alpha,
    /// What fleet 0.9 and later speak: a unit is a list of options.
    V1,
}

impl Version {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V1Alpha, Self::V1];

    /// All requests below this path are answered in this dialect.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::V1Alpha => "/v1-alpha",
            Self::V1 => "/fleet/v1",
        }
    }

    /// Its name in the discovery document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1Alpha => "v1-alpha",
            Self::V1 => "v1",
        }
    }

    /// The field of a request that has the contents of a unit.
    pub(crate) const fn contents_field(self) -> &'static str {
        match self {
            Self::V1Alpha => "fileContents field",
            Self::V1 => "options field",
        }
    }
}
