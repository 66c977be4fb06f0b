//! What every request passes before it reaches a resource, and how it is answered: connections, who calls, bodies in and
//! out, errors.

pub(crate) mod authority;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod extract;
pub(crate) mod fields;
pub(crate) mod form;
pub(crate) mod listener;
pub(crate) mod lock_error;
pub(crate) mod reply;
