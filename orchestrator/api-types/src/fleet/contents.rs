//! The contents of a unit: the file itself, which v1-alpha writes in base64 of the standard alphabet with padding, or the options of v1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use os_upgrade_scheduler::{UnitFile, UnitFileError, UnitFileProblem, UnitOption};

/// Why contents are no unit file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    /// They are not base64.
    #[error("fileContents is not base64 with padding: {0}")]
    Base64(base64::DecodeError),
    /// They are not UTF-8.
    #[error("the decoded fileContents is not UTF-8: {0}")]
    Utf8(std::str::Utf8Error),
    /// They are no unit file.
    #[error("{0}")]
    File(UnitFileError),
}

impl ContentsError {
    /// Whether the file is larger than one may be.
    pub const fn is_too_large(&self) -> bool {
        matches!(self, Self::File(UnitFileError { problem: UnitFileProblem::TooLong, .. }))
    }
}

/// The text in base64.
pub fn encode(text: &str) -> String {
    STANDARD.encode(text)
}

/// The text that `base64` stands for. Line breaks count for nothing, as for fleet: `base64` of coreutils breaks its lines. Any other blank
/// is refused, and so are missing padding and the URL-safe alphabet.
///
/// # Errors
/// It is not base64, or not of UTF-8.
pub fn decode(base64: &str) -> Result<String, ContentsError> {
    let bytes = STANDARD.decode(base64.replace(['\r', '\n'], "")).map_err(ContentsError::Base64)?;
    String::from_utf8(bytes).map_err(|error| ContentsError::Utf8(error.utf8_error()))
}

/// The unit file that `base64` stands for.
///
/// # Errors
/// It is not base64 of UTF-8, or no unit file.
pub fn from_base64(base64: &str) -> Result<UnitFile, ContentsError> {
    UnitFile::parse(&decode(base64)?).map_err(ContentsError::File)
}

/// The unit file with these options.
///
/// # Errors
/// They are no unit file.
pub fn from_options(options: Vec<UnitOption>) -> Result<UnitFile, ContentsError> {
    UnitFile::from_options(options).map_err(ContentsError::File)
}

#[cfg(test)]
mod tests {
    use os_upgrade_scheduler::UNIT_BYTES_MAX;

    use super::*;

    #[test]
    fn contents_are_base64_of_text() {
        for (base64, text) in [("", ""), ("W1g=", "[X"), ("W1NlcnZpY2Vd\nDQo=\r\n", "[Service]\r\n")] {
            assert_eq!(decode(base64).unwrap(), text);
            assert_eq!(encode(text), base64.replace(['\r', '\n'], ""));
        }
        assert!(matches!(decode("w6Q+/w=="), Err(ContentsError::Utf8(_))));
        for base64 in
            ["W1g", "W1g= ", " W1g=", "W1 g=", "W1h=", "W1g==", "=", "w6Q-_w==", "%", "W1g=W1g=", "ä"]
        {
            assert!(matches!(decode(base64), Err(ContentsError::Base64(_))), "{base64:?}");
        }
    }

    #[test]
    fn units_have_64_kib_at_most() {
        let value = |bytes: usize| "x".repeat(bytes - "[Service]\nExecStart=\n".len());
        let option = |bytes: usize| UnitOption {
            section: "Service".to_owned(),
            name: "ExecStart".to_owned(),
            value: value(bytes),
        };
        let text = |bytes: usize| format!("[Service]\nExecStart={}\n", value(bytes));
        assert!(from_base64(&encode(&text(UNIT_BYTES_MAX))).is_ok());
        assert!(from_options(vec![option(UNIT_BYTES_MAX)]).is_ok());
        for bytes in [UNIT_BYTES_MAX + 1, 2 * UNIT_BYTES_MAX] {
            assert!(from_base64(&encode(&text(bytes))).unwrap_err().is_too_large(), "{bytes}");
            assert!(from_options(vec![option(bytes)]).unwrap_err().is_too_large(), "{bytes}");
        }
        assert!(!from_base64(&encode("x")).unwrap_err().is_too_large());
    }
}
