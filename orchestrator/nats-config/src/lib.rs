//! Configures NATS for a site so that no host can speak for another: keys, accounts, credentials, certificates and
//! configurations of nats-server, in one directory that stays with the site's operators. Only [`push`] talks to servers.
//!
//! [`rights`] defines what a worker may do, and explains why each host has its own account. Secrets are created once and
//! never overwritten; what is derived from them (JWTs, configurations) is written from scratch each time.

mod authority;
mod claims;
mod files;
mod push;
mod rights;
mod servers;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use nkeys::{KeyPair, KeyPairType};
use os_upgrade_credentials::{CredentialsFile, ORCHESTRATOR, SYSTEM};
use os_upgrade_protocol::{HostName, LongToken};

use authority::Pair;
pub use files::FileError;
use files::{secret_key, write_new_secret, write_public};
pub use push::PushError;
pub use rights::{RIGHTS_SUBJECT, compare_rights, rights_mark};
use servers::Common;
pub use servers::Server;

/// Something could not be created or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key cannot sign.
    #[error("a key cannot sign: {0}")]
    Sign(nkeys::error::Error),
    /// A certificate cannot be created.
    #[error("cannot create a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The directory has no keys yet.
    #[error("there are no keys in {}: run `os-upgrade nats-config init` first", directory.display())]
    NotInitialized { directory: PathBuf },
    /// The host's name cannot be used.
    #[error("the name of {host} cannot be used: {why}")]
    Name {
        host: HostName,
        /// What is wrong with it.
        why: LongToken,
    },
    /// The host already has credentials.
    #[error("there are credentials of {host} in {}: revoke them first if it needs new ones", path.display())]
    Exists {
        host: HostName,
        /// Its credentials.
        path: PathBuf,
    },
    /// The host has no account.
    #[error(
        "there is no account of {host} in {}: check the name and --dir; `os-upgrade nats-config host {host}` creates one",
        directory.display()
    )]
    UnknownHost { host: HostName, directory: PathBuf },
}

impl From<nkeys::error::Error> for Error {
    fn from(error: nkeys::error::Error) -> Self {
        Self::Sign(error)
    }
}

/// The servers, and the directories of their files.
#[derive(Debug, Clone)]
pub struct Layout {
    /// One server, or those of a cluster.
    pub servers: Vec<Server>,
    /// The address that each server listens on.
    pub listen: IpAddr,
    /// The directory of a server's configuration and certificate on its machine.
    pub etc: PathBuf,
    /// The directory of a server's streams and accounts on its machine.
    pub data: PathBuf,
}

/// The directory with everything of a site's NATS.
#[derive(Debug, Clone)]
pub struct NatsConfig {
    directory: PathBuf,
}

/// The keys from which everything else is derived.
struct Keys {
    operator: KeyPair,
    system: KeyPair,
    site: KeyPair,
}

impl NatsConfig {
    /// The configuration in `directory`, which need not exist yet.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The path of the certificate authorities of the servers.
    pub fn ca(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// The path of the orchestrators' credentials.
    pub fn orchestrator_credentials(&self) -> PathBuf {
        self.directory.join("orchestrator.creds")
    }

    /// The path of the system account's credentials, with which accounts are pushed to servers.
    pub fn system_credentials(&self) -> PathBuf {
        self.directory.join("system.creds")
    }

    /// The directory with the files of `server`.
    pub fn server(&self, server: &Server) -> PathBuf {
        // Servers that share a machine have different ports.
        self.directory.join("servers").join(format!("{}-{}", server.host, server.client_port))
    }

    /// The path of the credentials of `host`.
    pub fn host_credentials(&self, host: &HostName) -> PathBuf {
        self.directory.join("hosts").join(format!("{}.creds", host.token()))
    }

    fn host_account(&self, host: &HostName) -> PathBuf {
        self.directory.join("hosts").join(format!("{}.jwt", host.token()))
    }

    fn host_key(&self, host: &HostName) -> PathBuf {
        self.key(&format!("host-{}.nk", host.token()))
    }

    fn key(&self, name: &str) -> PathBuf {
        self.directory.join("keys").join(name)
    }

    /// Creates missing keys, credentials and certificates, and writes everything else from scratch, the accounts of hosts
    /// too. It can be run again; what has changed of accounts must then be pushed to the servers.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn init(&self, layout: &Layout, now: DateTime<Utc>) -> Result<(), Error> {
        files::directories(&self.directory, &["keys", "hosts", "servers"])?;
        let keys = Keys {
            operator: secret_key(&self.key("operator.nk"), KeyPairType::Operator)?,
            system: secret_key(&self.key("system.nk"), KeyPairType::Account)?,
            site: secret_key(&self.key("site.nk"), KeyPairType::Account)?,
        };
        credentials(&self.orchestrator_credentials(), ORCHESTRATOR, &keys.site, now)?;
        credentials(&self.system_credentials(), SYSTEM, &keys.system, now)?;
        let authority = self.authority()?;

        let [system, site] = [&keys.system, &keys.site].map(KeyPair::public_key);
        let operator_jwt = claims::operator(&keys.operator, &system, now)?;
        let system_jwt = claims::system_account(&keys.system, &keys.operator, now)?;
        let site_jwt = claims::site_account(&keys.site, &keys.operator, now)?;
        write_public(&self.directory.join("site.jwt"), &site_jwt)?;
        // Rights may have been added since their accounts were made.
        for account in files::read_all(&self.directory.join("hosts"), "jwt")? {
            if let Some(host) = claims::account_name(&account).and_then(|name| HostName::new(&name).ok()) {
                self.write_account(&host, &keys.site, &keys.operator, claims::revoked(&account), now)?;
            }
        }
        let common = Common {
            servers: &layout.servers,
            listen: layout.listen,
            etc: &layout.etc,
            data: &layout.data,
            operator_jwt: &operator_jwt,
            system: (&system, &system_jwt),
            site: (&site, &site_jwt),
        };
        for server in &layout.servers {
            let directory = self.server(server);
            files::directories(&directory, &[])?;
            write_public(&directory.join("nats-server.conf"), &common.configuration(server))?;
            write_public(&directory.join("ca.pem"), &authority.certificate)?;
            let key = directory.join("server.key");
            if !files::exists(&key)? {
                let pair = authority::server(&server.host, &authority)?;
                write_public(&directory.join("server.pem"), &pair.certificate)?;
                write_new_secret(&key, &pair.key)?;
            }
        }
        Ok(())
    }

    /// Creates an account and credentials for `host`, and returns the path of the credentials. The account must then be
    /// pushed to the servers.
    ///
    /// # Errors
    /// Its name is too long, it already has credentials, or a file cannot be read or written.
    pub fn add_host(&self, host: &HostName, now: DateTime<Utc>) -> Result<PathBuf, Error> {
        host.check_length().map_err(|why| Error::Name { host: host.clone(), why })?;
        let operator = self.existing("operator.nk")?;
        let site = self.existing("site.nk")?;
        let path = self.host_credentials(host);
        if files::exists(&path)? {
            return Err(Error::Exists { host: host.clone(), path });
        }
        let revoked = self.revoked(host)?;
        let account = self.write_account(host, &site, &operator, revoked, now)?;
        // A revocation in this very second would cover the new credentials too.
        let issued = revoked.and_then(|revoked| DateTime::from_timestamp(revoked + 1, 0));
        credentials(&path, host.as_str(), &account, issued.map_or(now, |issued| issued.max(now)))?;
        Ok(path)
    }

    /// Revokes all credentials of `host` issued so far. The account must then be pushed to the servers.
    ///
    /// # Errors
    /// It has no account, or a file cannot be read or written.
    pub fn revoke_host(&self, host: &HostName, now: DateTime<Utc>) -> Result<(), Error> {
        let operator = self.existing("operator.nk")?;
        let site = self.existing("site.nk")?;
        if !files::exists(&self.host_key(host))? {
            return Err(Error::UnknownHost { host: host.clone(), directory: self.directory.clone() });
        }
        let revoked = self.revoked(host)?.map_or(now.timestamp(), |before| before.max(now.timestamp()));
        self.write_account(host, &site, &operator, Some(revoked), now)?;
        files::remove(&self.host_credentials(host))?;
        Ok(())
    }

    /// The JWTs of all accounts that servers must know: the orchestrators', and those of all hosts.
    ///
    /// # Errors
    /// Files cannot be read.
    pub fn accounts(&self) -> Result<Vec<String>, Error> {
        let site = self.directory.join("site.jwt");
        if !files::exists(&site)? {
            return Err(Error::NotInitialized { directory: self.directory.clone() });
        }
        let mut accounts = vec![files::read(&site)?];
        accounts.extend(files::read_all(&self.directory.join("hosts"), "jwt")?);
        Ok(accounts)
    }

    /// The JWT of the account of `host`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn account_of(&self, host: &HostName) -> Result<String, Error> {
        Ok(files::read(&self.host_account(host))?)
    }

    /// Sends `accounts` (JWTs) to the servers at `url`; any server of a cluster will do.
    ///
    /// # Errors
    /// They do not answer, or refuse an account.
    pub async fn push(&self, url: &str, accounts: &[String]) -> Result<(), PushError> {
        push::push(url, &self.system_credentials(), &self.ca(), accounts).await
    }

    /// Writes the account of `host`, and returns its key. It is made if it does not exist.
    fn write_account(
        &self,
        host: &HostName,
        site: &KeyPair,
        operator: &KeyPair,
        revoked: Option<i64>,
        now: DateTime<Utc>,
    ) -> Result<KeyPair, Error> {
        let account = secret_key(&self.host_key(host), KeyPairType::Account)?;
        let jwt = claims::host_account(&account, host, &site.public_key(), revoked, operator, now)?;
        write_public(&self.host_account(host), &jwt)?;
        Ok(account)
    }

    fn existing(&self, name: &str) -> Result<KeyPair, Error> {
        let path = self.key(name);
        if !files::exists(&path)? {
            return Err(Error::NotInitialized { directory: self.directory.clone() });
        }
        Ok(files::read_key(&path)?)
    }

    fn revoked(&self, host: &HostName) -> Result<Option<i64>, Error> {
        let path = self.host_account(host);
        Ok(if files::exists(&path)? { claims::revoked(&files::read(&path)?) } else { None })
    }

    fn authority(&self) -> Result<Pair, Error> {
        let (certificate, key) = (self.ca(), self.key("ca.key"));
        if !files::exists(&key)? {
            let pair = authority::authority()?;
            write_public(&certificate, &pair.certificate)?;
            write_new_secret(&key, &pair.key)?;
        }
        Ok(Pair { certificate: files::read(&certificate)?, key: files::read(&key)? })
    }
}

/// Creates credentials of a new user of the account with the key `issuer`, unless the file exists.
fn credentials(path: &Path, name: &str, issuer: &KeyPair, now: DateTime<Utc>) -> Result<(), Error> {
    if files::exists(path)? {
        return Ok(());
    }
    let user = KeyPair::new_user();
    let jwt = claims::user(&user, name, issuer, now)?;
    Ok(write_new_secret(path, &CredentialsFile::text(&jwt, &user.seed()?))?)
}

#[cfg(test)]
mod tests;
