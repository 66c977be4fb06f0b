//! TLS as the programs of a site speak it: PEM files read within bounds, what servers and clients make of them, and how
//! HTTP clients are built.

pub mod client_files;
pub mod http_client;
pub mod pem_file;
pub mod server_files;
