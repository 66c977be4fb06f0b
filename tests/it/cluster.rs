//! More than one orchestrator, nats-server or site.

mod failover;
mod leaders;
mod sites;
mod upgrade;
