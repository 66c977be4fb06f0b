//! Certificates for lock servers, as options.

use std::path::PathBuf;

use clap::Args;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;

use crate::Failure;
use crate::rest::check_writers;

#[derive(Debug, Args)]
pub(super) struct Tls {
    /// A PEM file with certificate authorities to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// A PEM file with the certificate to present to a server that asks for one
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// A PEM file with the private key of that certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl Tls {
    /// The files to use for the server at `url`.
    ///
    /// # Errors
    /// Files are given, but `url` is not https.
    pub(super) fn files(self, url: &HttpUrl) -> Result<TlsFiles, Failure> {
        let Self { ca, cert, key } = self;
        for (option, file) in [("--ca", &ca), ("--cert", &cert), ("--key", &key)] {
            if file.is_some() && url.url().scheme() != "https" {
                return Err(Failure::Usage(format!("{option} needs a --url that begins with https://")));
            }
        }
        if let Some(path) = &ca {
            check_writers("file of --ca", path).map_err(|error| Failure::unusable(&error))?;
        }
        let roles = ["file of --ca", "file of --cert", "file of --key"];
        Ok(TlsFiles { ca, certificate: cert, key, roles, pipes: true })
    }
}
