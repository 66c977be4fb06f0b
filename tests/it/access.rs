//! Authentication and authorization: tokens, certificates, identity providers, the NATS permissions of hosts, secrets.

mod desired;
mod fleet_socket;
mod floods;
mod nats_acks;
mod nats_certificates;
mod nats_rights;
mod oidc;
mod slow_clients;
mod strongbox;
mod tls;
mod tokens;
