//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A position in the file; lines and columns count from 1, columns in characters.
    File { line: usize, column: usize },
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line, column } => write!(f, "{line}:{column}"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The place of the bad value or key.
    pub origin: Origin,
    /// What is wrong, and what would be right; one line, without the place.
    pub message: String,
}

/// A configuration that cannot be used. Displayed as one line per problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file cannot be read as text.
    Unreadable {
        path: PathBuf,
        /// The reason, as the system reports it.
        detail: String,
    },
    /// The file or the environment is invalid.
    Invalid {
        /// The file; `None` if only the environment was read.
        path: Option<PathBuf>,
        /// All problems; those of the file come first, in its order.
        problems: Vec<Problem>,
    },
}

impl Error {
    pub(super) fn invalid(path: Option<&Path>, mut problems: Vec<Problem>) -> Self {
        for Problem { origin, message } in &mut problems {
            *message = one_line(message);
            if let Origin::Variable(name) = origin {
                *name = one_line(name);
            }
        }
        problems.sort();
        problems.dedup();
        Self::Invalid { path: path.map(Path::to_owned), problems }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, detail } => write!(f, "cannot read {}: {detail}", path.display()),
            Self::Invalid { path, problems } => {
                for (index, Problem { origin, message }) in problems.iter().enumerate() {
                    if index > 0 {
                        writeln!(f)?;
                    }
                    if let (Origin::File { .. }, Some(path)) = (origin, path) {
                        write!(f, "{}:", path.display())?;
                    }
                    write!(f, "{origin}: {message}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}

/// `text` with control characters escaped. Names of keys and variables may contain any: a line break would look like
/// another problem, and an escape sequence could change the terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// The one of `candidates` that is most similar to `text`, if any is similar.
pub(super) fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits_max = (text.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&text.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .filter(|&(edits, candidate)| edits <= edits_max && edits < candidate.chars().count())
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate)
}
