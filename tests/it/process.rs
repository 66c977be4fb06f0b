//! `os-upgrade` as a service: start, stop, systemd units, and `doctor`.

mod doctor;
mod service;
mod startup;
mod stop;
mod zone_data;
