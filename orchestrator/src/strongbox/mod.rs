//! The strongbox as this instance has it: the key, in memory only, and what it opens.
//!
//! The secrets themselves are sealed in the committed state ([`os_upgrade_kernel::strongbox`]), so every instance of a
//! site has them, and each needs the key once after its start.

pub mod key;
pub mod key_file;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use os_upgrade_kernel::strongbox::Strongbox as Kept;
use os_upgrade_kernel::{Request, SecretName};
use zeroize::Zeroizing;

use self::key::{Key, RandomError};
use self::key_file::KeyFileError;
use crate::config::Settings;
use crate::site::Present;

/// Most bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 8 * 1024;

/// What needs the key cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Sealed {
    /// There is no key here.
    #[error(
        "the strongbox is sealed: POST its key to /v1/state/strongbox/unseal, or give [strongbox] key-file"
    )]
    NoKey,
    /// The key that was given at the start is not the one of the secrets.
    #[error(
        "the strongbox is sealed: the secrets were sealed with another key than that of [strongbox] key-file"
    )]
    OtherKey,
    /// There is no such secret.
    #[error("the strongbox has no secret {0}: PUT it to /v1/config/strongbox/secrets/{0}")]
    NoSecret(SecretName),
    /// It was changed since it was sealed.
    #[error("the secret {0} cannot be opened: PUT it again")]
    Damaged(SecretName),
}

/// The strongbox of a running instance. Cheap to clone; clones are one.
#[derive(Debug, Clone, Default)]
pub struct Strongbox {
    key: Arc<ArcSwapOption<Key>>,
    /// The secret without which slots cannot be asked for.
    needed: Option<SecretName>,
}

/// A secret to be opened when it is used, as it then is.
#[derive(Debug, Clone)]
pub struct Secret {
    strongbox: Strongbox,
    present: Arc<ArcSwap<Present>>,
    name: SecretName,
}

impl Secret {
    /// What it is.
    ///
    /// # Errors
    /// There is none of its name, or no key to it.
    pub fn open(&self) -> Result<Zeroizing<String>, Sealed> {
        self.strongbox.open(&self.present.load().state.strongbox, &self.name)
    }
}

impl Strongbox {
    /// The strongbox that `settings` ask for, with the key that they name.
    ///
    /// # Errors
    /// The key's file cannot be used.
    pub fn of_settings(settings: &Settings) -> Result<Self, KeyFileError> {
        let needed = settings.fleet_lock.credentials_secret.clone();
        let strongbox = Self { key: Arc::default(), needed };
        if let Some(path) = &settings.strongbox.key_file {
            strongbox.key.store(Some(Arc::new(key_file::read(path)?)));
        }
        Ok(strongbox)
    }

    /// What the lock server's client needs, of the secrets in `present`.
    pub fn credentials(&self, present: &Arc<ArcSwap<Present>>) -> Option<Secret> {
        let name = self.needed.clone()?;
        Some(Secret { strongbox: self.clone(), present: Arc::clone(present), name })
    }

    /// Takes `key` from now on; false if `kept` was sealed with another.
    pub fn unseal(&self, kept: &Kept, key: Key) -> bool {
        let is_theirs = fits(&key, kept);
        if is_theirs {
            self.key.store(Some(Arc::new(key)));
        }
        is_theirs
    }

    /// Why secrets cannot be used though there are some, or one is needed; otherwise nothing is sealed.
    pub fn sealed(&self, kept: &Kept) -> Option<Sealed> {
        let wanted = self.needed.is_some() || !kept.secrets.is_empty();
        wanted.then(|| self.key(kept).err()).flatten()
    }

    /// Why slots cannot be asked for, if that is because of a secret.
    pub fn withholds_slots(&self, kept: &Kept) -> Option<Sealed> {
        self.needed.as_ref().and_then(|name| self.open(kept, name).err())
    }

    /// What has the core keep `value` under `name`.
    ///
    /// # Errors
    /// There is no key. Within: there is no randomness.
    pub fn keep(
        &self,
        kept: &Kept,
        name: SecretName,
        value: &str,
        actor: String,
    ) -> Result<Result<Request, RandomError>, Sealed> {
        let key = self.key(kept)?;
        let check = match &kept.check {
            Some(check) if key.is_of(check) => Ok(check.clone()),
            Some(_) | None => key.check(),
        };
        let sealed = check.and_then(|check| Ok((check, key.seal(&name, value)?)));
        Ok(sealed.map(|(check, sealed)| Request::KeepSecret { name, sealed, check, actor }))
    }

    fn open(&self, kept: &Kept, name: &SecretName) -> Result<Zeroizing<String>, Sealed> {
        let key = self.key(kept)?;
        let secret = kept.secrets.get(name).ok_or_else(|| Sealed::NoSecret(name.clone()))?;
        key.open(name, &secret.sealed).map_err(|_| Sealed::Damaged(name.clone()))
    }

    fn key(&self, kept: &Kept) -> Result<Arc<Key>, Sealed> {
        let key = self.key.load_full().ok_or(Sealed::NoKey)?;
        if fits(&key, kept) { Ok(key) } else { Err(Sealed::OtherKey) }
    }
}

/// Without secrets any key does.
fn fits(key: &Key, kept: &Kept) -> bool {
    kept.secrets.is_empty() || kept.check.as_deref().is_some_and(|check| key.is_of(check))
}
