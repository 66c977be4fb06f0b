//! TLS on the API's listener: the certificate to present and the authorities of client certificates, from files that are
//! reloaded when they change.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_platform::file_watch::{self, Version};
use os_upgrade_platform::plain_file;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::time;
use os_upgrade_settings::ApiTls;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::pem_file::{PemError, PemFile, not_after};

/// How long before it expires a certificate is warned about.
pub const WARN_BEFORE: TimeDelta = TimeDelta::days(14);
/// Time between two such warnings.
const WARN_EVERY: TimeDelta = TimeDelta::days(1);

/// The TLS configuration in use. Cheap to clone; clones share one state.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<Files>,
    current: Arc<ArcSwap<Loaded>>,
}

/// The configuration made from the files.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// When the certificate expires.
    not_after: DateTime<Utc>,
    /// The versions of the files just before they were read.
    versions: Versions,
}

/// The files that `[api.tls]` names.
#[derive(Debug)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

type Versions = [Option<Version>; 3];

impl Tls {
    /// The configuration that `settings` ask for; `None` without TLS.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn from_settings(settings: &ApiTls) -> Result<Option<Self>, PemError> {
        let ApiTls { cert: Some(cert), key: Some(key), client_ca } = settings.clone() else {
            return Ok(None);
        };
        let files = Files { cert, key, client_ca };
        let current = Arc::new(ArcSwap::from_pointee(files.load()?));
        Ok(Some(Self { files: Arc::new(files), current }))
    }

    /// When the certificate expires.
    pub fn not_after(&self) -> DateTime<Utc> {
        self.current.load().not_after
    }

    /// A warning if the certificate has expired or expires soon.
    pub fn expiry_warning(&self, now: DateTime<Utc>) -> Option<String> {
        let not_after = self.not_after();
        let at = time::format(not_after);
        if not_after <= now {
            Some(format!("the API's certificate has expired at {at}: clients refuse it"))
        } else if not_after - now <= WARN_BEFORE {
            Some(format!("the API's certificate expires at {at}"))
        } else {
            None
        }
    }

    /// An acceptor with the current configuration.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.load().config))
    }

    /// Reloads the files whenever they change, until `shutdown`. If they cannot be used, that is logged, and the previous
    /// configuration stays in use.
    pub async fn watch_files(self, shutdown: CancellationToken) {
        let mut follower = Follower::new(self);
        file_watch::watch("[api.tls]", file_watch::CHECK_EVERY, shutdown, move || follower.check(Utc::now()))
            .await;
    }
}

/// Watches the files. A change is loaded at the second check that finds it, so that a certificate and its key, written one
/// after the other, are not read in between.
struct Follower {
    tls: Tls,
    /// The versions at the last check.
    last: Versions,
    /// The versions that were last loaded, successfully or not.
    tried: Versions,
    warned_at: Option<DateTime<Utc>>,
}

impl Follower {
    fn new(tls: Tls) -> Self {
        let versions = tls.current.load().versions;
        Self { tls, last: versions, tried: versions, warned_at: None }
    }

    fn check(&mut self, now: DateTime<Utc>) {
        let versions = self.tls.files.versions();
        if versions != self.tried && versions == self.last {
            self.tried = versions;
            match self.tls.files.load().and_then(|loaded| self.tls.files.still_valid(loaded, now)) {
                Ok(loaded) => {
                    let not_after = time::format(loaded.not_after);
                    self.tls.current.store(Arc::new(loaded));
                    self.warned_at = None;
                    tracing::info!(%not_after, "the certificates of [api.tls] were reloaded");
                }
                Err(error) => {
                    let why = with_causes(&error);
                    tracing::error!("the changed files of [api.tls] cannot be used: {why}");
                }
            }
        }
        self.last = versions;
        if self.warned_at.is_none_or(|at| now - at >= WARN_EVERY)
            && let Some(warning) = self.tls.expiry_warning(now)
        {
            self.warned_at = Some(now);
            tracing::warn!("{warning}");
        }
    }
}

impl Files {
    fn versions(&self) -> Versions {
        [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()].map(|path| Version::at(path?))
    }

    fn load(&self) -> Result<Loaded, PemError> {
        let versions = self.versions();
        let cert = PemFile::read_plain("`cert` of [api.tls]", &self.cert)?;
        let key = PemFile::read_plain("`key` of [api.tls]", &self.key)?;
        let chain = cert.certificates()?;
        // Only the first certificate's end counts: an expired authority may follow it on purpose, for old clients, and
        // other clients ignore it.
        let first = chain.first().ok_or_else(|| cert.invalid("holds no certificate"))?;
        let not_after = not_after(first).map_err(|error| cert.invalid(error))?;
        let provider = Arc::new(ring::default_provider());
        let certified = CertifiedKey::from_der(chain, key.private_key()?, &provider);
        let certified = certified.map_err(|error| {
            key.invalid(format!("does not go with the certificate: {}", with_causes(&error)))
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| cert.invalid(format!("cannot be used: {}", with_causes(&error))))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let file = PemFile::read_trusted("`client-ca` of [api.tls]", path, Some(plain_file::user()))?;
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(file.authorities()?);
                // Operators with tokens have no certificate.
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build();
                let unfit =
                    |error| file.invalid(format!("holds no usable authority: {}", with_causes(&error)));
                builder.with_client_cert_verifier(verifier.map_err(unfit)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Loaded { config: Arc::new(config), not_after, versions })
    }

    /// Refuses an expired certificate: the one in use may still be valid, and is no worse.
    fn still_valid(&self, loaded: Loaded, now: DateTime<Utc>) -> Result<Loaded, PemError> {
        if loaded.not_after > now {
            return Ok(loaded);
        }
        let why = format!("has expired at {}", time::format(loaded.not_after));
        Err(PemError::Invalid { role: "`cert` of [api.tls]", path: self.cert.clone(), why })
    }
}

#[cfg(test)]
mod tests;
