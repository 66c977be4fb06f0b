//! Certificates for lock servers, as options.

use std::path::PathBuf;

use clap::Args;

use crate::fleetlock::client::tls::TlsFiles;

#[derive(Debug, Args)]
pub(super) struct Tls {
    /// Authorities to trust in place of the system's, PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The certificate to show to a server that asks for one, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl From<Tls> for TlsFiles {
    fn from(Tls { ca, cert, key }: Tls) -> Self {
        Self { ca, certificate: cert, key, roles: ["file of --ca", "file of --cert", "file of --key"] }
    }
}
