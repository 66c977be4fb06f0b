//! Who may do what: tokens, certificates, identity providers, the rights of hosts on NATS, secrets.

mod nats_certificates;
mod nats_rights;
mod oidc;
mod slow_clients;
mod strongbox;
mod tls;
mod tokens;
