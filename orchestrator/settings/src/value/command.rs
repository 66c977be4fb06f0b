//! Commands of the operator.

use super::read::{Shape, Value};

/// A program and its arguments, quoted as in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWords(Vec<String>);

impl CommandWords {
    /// The program, and then its arguments.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Value for CommandWords {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "a program and its arguments, quoted as in a shell".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("; a quote is not closed")?;
        match words.first() {
            Some(program) if !program.is_empty() && !text.contains('\0') => Ok(Self(words)),
            Some(_) | None => Err(String::new()),
        }
    }
}
