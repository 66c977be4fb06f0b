//! Certificates for lock servers, as options.

use std::path::PathBuf;

use clap::Args;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;

use crate::Failure;

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

impl Tls {
    /// The files with which the server at `url` is asked.
    ///
    /// # Errors
    /// It is not asked over TLS, and there are some.
    pub(super) fn files(self, url: &HttpUrl) -> Result<TlsFiles, Failure> {
        let Self { ca, cert, key } = self;
        for (option, file) in [("--ca", &ca), ("--cert", &cert), ("--key", &key)] {
            if file.is_some() && url.url().scheme() != "https" {
                return Err(Failure::Usage(format!("{option} needs a --url that begins with https://")));
            }
        }
        let roles = ["file of --ca", "file of --cert", "file of --key"];
        Ok(TlsFiles { ca, certificate: cert, key, roles, pipes: true })
    }
}
