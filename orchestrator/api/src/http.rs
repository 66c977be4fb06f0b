//! The HTTP layer around the resources: connections, authentication, request and response bodies, errors.

pub(crate) mod authorization;
pub(crate) mod call_back_rate;
pub(crate) mod dialect;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod extract;
pub(crate) mod fields;
pub(crate) mod form;
pub(crate) mod listener;
pub(crate) mod lock_error;
pub(crate) mod prefer;
pub(crate) mod refusal;
pub(crate) mod reply;
pub(crate) mod shared_answer;
