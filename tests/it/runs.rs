//! Runs with worker processes: start, course and end, and which hosts take part.

mod api_requests;
mod cancel;
mod clocks;
mod configuration;
mod drain;
mod enrolment;
mod events;
mod failures;
mod hook_faults;
mod hooks;
mod lost_updates;
mod night;
mod output;
mod pause;
mod reboot_by_command;
mod reboot_queue;
mod replies;
mod trigger;
mod whole;
mod windows;
