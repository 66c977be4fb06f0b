//! `os-upgrade` as a service: its start, its end, its units, and what `doctor` finds.

mod doctor;
mod service;
mod startup;
mod stop;
