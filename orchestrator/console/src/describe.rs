//! Descriptions for people: a sentence, or a clause of one.

use std::fmt::{self, Display, Formatter};

/// What people are told in words. The kernel has types instead of words.
pub trait Describe {
    /// Writes the words.
    ///
    /// # Errors
    /// Those of `f`.
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

/// A value in words.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a, T: ?Sized>(&'a T);

/// `value` in words.
pub const fn describe<T: Describe + ?Sized>(value: &T) -> Description<'_, T> {
    Description(value)
}

impl<T: Describe + ?Sized> Display for Description<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.describe(f)
    }
}

impl<T: Describe + ?Sized> Describe for Box<T> {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).describe(f)
    }
}
