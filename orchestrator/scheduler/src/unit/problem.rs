//! What is wrong with a unit file.

/// The longest unit file, in bytes.
pub const UNIT_BYTES_MAX: usize = 64 * 1024;
/// The longest name of a section or an option, in bytes. Each option repeats both.
pub(super) const WORD_BYTES_MAX: usize = 256;

/// Why a text is no unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct UnitFileError {
    /// The line, counted from 1. For options it is that of the file that would be written from them.
    pub line: u32,
    /// What is wrong there.
    pub problem: UnitFileProblem,
}

/// What is wrong with a line of a unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitFileProblem {
    /// The file is too long; the line is the first that does not fit.
    #[error("a unit file has at most {UNIT_BYTES_MAX} bytes")]
    TooLong,
    /// systemd would end the line there, other readers would not.
    #[error("it has a NUL or a carriage return within the line")]
    Control,
    /// The line begins with `[` and is no header.
    #[error(
        "the name of a section is 1 to {WORD_BYTES_MAX} bytes between [ and ], without brackets or control characters"
    )]
    Section,
    /// An option before the first section.
    #[error("an option stands in a section, such as [Service]")]
    NoSection,
    /// Neither a header nor an option nor a comment.
    #[error("an option is a name, = and a value")]
    NoEquals,
    /// The name before `=` is missing or too long.
    #[error("the name of an option has 1 to {WORD_BYTES_MAX} bytes")]
    Name,
    /// Written into a file, an option would be read as something else, such as two options.
    #[error("the section, name and value of an option must be one option when they are written to a file")]
    NotOneOption,
}
