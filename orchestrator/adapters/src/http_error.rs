//! What a failed HTTP request says of the other side, whichever client sent it.

use std::error::Error;

/// The first error of this type among an error and its causes.
pub(crate) fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
}

/// Whether the answer was not HTTP, as opposed to missing or incomplete.
pub(crate) fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    find_cause::<hyper::Error>(error).is_some_and(hyper::Error::is_parse)
}
