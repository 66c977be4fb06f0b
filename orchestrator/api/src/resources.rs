//! The handlers, one file for each resource. Nothing is decided here: a change goes to the instance and is answered once
//! it is durable.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod drains;
pub(crate) mod enrolment;
pub(crate) mod events;
pub(crate) mod fleet_lock;
pub(crate) mod health;
pub(crate) mod hooks;
pub(crate) mod hosts;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod outputs;
pub(crate) mod page;
pub(crate) mod pause;
pub(crate) mod providers;
pub(crate) mod reboot_queue;
pub(crate) mod run;
pub(crate) mod run_hosts;
pub(crate) mod runs;
pub(crate) mod slots;
pub(crate) mod state;
pub(crate) mod strongbox;
pub(crate) mod units;
pub(crate) mod windows;

use os_upgrade_api_types::route::Declaration;

use crate::routes::Routes;

/// Every route of the specification with its handler.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .merge(config::routes())
        .merge(state::routes())
        .merge(windows::routes())
        .merge(hosts::routes())
        .merge(drains::routes())
        .merge(enrolment::routes())
        .merge(pause::routes())
        .merge(run::routes())
        .merge(runs::routes())
        .merge(run_hosts::routes())
        .merge(outputs::routes())
        .merge(events::routes())
        .merge(cluster::routes())
        .merge(health::routes())
        .merge(reboot_queue::routes())
        .merge(providers::routes())
        .merge(slots::routes())
        .merge(strongbox::routes())
        .merge(units::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
        .merge(page::routes())
}

/// The declarations of all routes, those of FleetLock and of call-backs included.
pub(crate) fn declarations() -> Vec<Declaration> {
    routes().declarations().chain(hooks::DECLARATIONS).chain(fleet_lock::DECLARATIONS).copied().collect()
}
