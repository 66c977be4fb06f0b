//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A place in the file; both count from 1, columns in characters.
    File {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// What is wrong, and what would be right; one line, without the place.
    pub message: String,
}

/// A configuration that cannot be used. Displayed, it is one line for each problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file cannot be read as text.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// The file or the environment has problems.
    Invalid {
        /// The file, if there is one.
        path: Option<PathBuf>,
        /// All of them, those of the file first and in its order.
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

/// `text` with control characters escaped: names of keys and variables may hold any, and a line break among them would
/// look like another problem, an escape sequence like anything.
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

/// Of `candidates`, the one that `text` most likely stands for, if any is near.
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
