//! TLS for the programs of a site: PEM files, the TLS configuration of servers and clients, and HTTP clients.

pub mod client_files;
pub mod http_client;
pub mod pem_file;
pub mod server_files;
