//! Runs with worker processes: how they start, go and end, and which hosts take part.

mod cancel;
mod enrolment;
mod failures;
mod lost_updates;
mod replies;
mod trigger;
mod whole;
mod windows;
