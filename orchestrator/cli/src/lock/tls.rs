//! Certificates for lock servers, as options.

use std::path::PathBuf;

use clap::Args;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::client_files::TlsFiles;

use crate::Failure;
use crate::rest::{Authorities, CaOrigin, check_writers};

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
    pub(super) fn files(mut self, url: &HttpUrl) -> Result<TlsFiles, Failure> {
        let ca = self.ca.take().map(|file| Authorities { file, origin: CaOrigin::Option });
        self.files_with(ca, url)
    }

    /// The same, with the authorities `ca` instead of those of the option. Those of a variable or a context are for every command:
    /// they are ignored if `url` is not https.
    ///
    /// # Errors
    /// Options give files, but `url` is not https; or others can write the file of the authorities.
    pub(super) fn files_with(self, ca: Option<Authorities>, url: &HttpUrl) -> Result<TlsFiles, Failure> {
        let Self { ca: _, cert, key } = self;
        let is_https = url.url().scheme() == "https";
        let ca = ca.filter(|ca| is_https || ca.origin == CaOrigin::Option);
        for (option, is_given) in
            [("--ca", ca.is_some()), ("--cert", cert.is_some()), ("--key", key.is_some())]
        {
            if is_given && !is_https {
                return Err(Failure::Usage(format!("{option} needs a --url that begins with https://")));
            }
        }
        let role = ca.as_ref().map_or(CaOrigin::Option, |ca| ca.origin).role();
        if let Some(ca) = &ca {
            check_writers(role, &ca.file).map_err(|error| Failure::unusable(&error))?;
        }
        let roles = [role, "file of --cert", "file of --key"];
        Ok(TlsFiles { ca: ca.map(|ca| ca.file), certificate: cert, key, roles, pipes: true })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn files(origin: CaOrigin, file: &Path, url: &str) -> Result<TlsFiles, String> {
        let none = Tls { ca: None, cert: None, key: None };
        let ca = Authorities { file: file.to_owned(), origin };
        none.files_with(Some(ca), &url.parse().unwrap()).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn authorities_that_no_option_names_are_for_https_only() {
        let ca = Path::new("/nowhere/ca.pem");
        for origin in [CaOrigin::Variable, CaOrigin::Context] {
            assert_eq!(files(origin, ca, "http://h/").unwrap().ca, None);
            assert_eq!(files(origin, ca, "https://h/").unwrap().ca.as_deref(), Some(ca));
        }
        let refused = files(CaOrigin::Option, ca, "http://h/").unwrap_err();
        assert!(refused.contains("--ca needs a --url that begins with https://"), "{refused}");
    }

    #[test]
    fn refused_authorities_name_their_origin() {
        let directory = tempfile::tempdir().unwrap();
        let ca = directory.path().join("ca.pem");
        fs::write(&ca, "").unwrap();
        fs::set_permissions(&ca, Permissions::from_mode(0o666)).unwrap();
        for (origin, role) in [
            (CaOrigin::Option, "the file of --ca "),
            (CaOrigin::Variable, "the file of OS_UPGRADE_CA "),
            (CaOrigin::Context, "the context's file of authorities "),
        ] {
            let refused = files(origin, &ca, "https://h/").unwrap_err();
            assert!(refused.contains(&format!("{role}{} can be written", ca.display())), "{refused}");
            assert_eq!(files(origin, Path::new("/nowhere"), "https://h/").unwrap().roles[0], origin.role());
        }
    }
}
