//! The strongbox as this instance has it: the key, in memory only, and what it opens.
//!
//! The secrets themselves are sealed in the committed state ([`os_upgrade_kernel::strongbox`]), so every instance of a
//! site has them, and each needs the key once after its start.

pub mod key;
pub mod key_file;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use os_upgrade_kernel::strongbox::Strongbox as Kept;
use os_upgrade_kernel::{Sealed, SecretName, SecretOperation};
use os_upgrade_platform::random::RandomError;
use os_upgrade_settings::Settings;
use zeroize::Zeroizing;

use self::key::Key;
use self::key_file::KeyFileError;
use crate::snapshot::SiteSnapshot;

/// Most bytes of a secret.
pub const SECRET_BYTES_MAX: usize = 8 * 1024;

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
    present: Arc<ArcSwap<SiteSnapshot>>,
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
    pub fn credentials(&self, present: &Arc<ArcSwap<SiteSnapshot>>) -> Option<Secret> {
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
    ) -> Result<Result<SecretOperation, RandomError>, Sealed> {
        let key = self.key(kept)?;
        let check = match &kept.check {
            Some(check) if key.is_of(check) => check.clone(),
            Some(_) | None => key.check(),
        };
        let sealed = key.seal(&name, value);
        Ok(sealed.map(|sealed| SecretOperation::Keep { name, sealed, check }))
    }

    fn open(&self, kept: &Kept, name: &SecretName) -> Result<Zeroizing<String>, Sealed> {
        let key = self.key(kept)?;
        let secret = kept.secrets.get(name).ok_or_else(|| Sealed::NoSecret { name: name.clone() })?;
        key.open(name, &secret.sealed).map_err(|_| Sealed::Damaged { name: name.clone() })
    }

    fn key(&self, kept: &Kept) -> Result<Arc<Key>, Sealed> {
        let no_key = if kept.secrets.is_empty() { Sealed::NoKeyYet } else { Sealed::NoKey };
        let key = self.key.load_full().ok_or(no_key)?;
        if fits(&key, kept) { Ok(key) } else { Err(Sealed::OtherKey) }
    }
}

/// Without secrets any key does.
fn fits(key: &Key, kept: &Kept) -> bool {
    kept.secrets.is_empty() || kept.check.as_deref().is_some_and(|check| key.is_of(check))
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{Accepted, Input, Request};
    use os_upgrade_test_site::TestSite;

    use super::*;

    fn strongbox(key: &Key) -> Strongbox {
        let strongbox = Strongbox::default();
        assert!(strongbox.unseal(&Kept::default(), Key::parse(&key.reveal()).unwrap()));
        strongbox
    }

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    /// Neither knows of the other's when it seals its own.
    #[test]
    fn two_instances_keep_a_first_secret_at_the_same_time() {
        let key = Key::random().unwrap();
        let mut site = TestSite::new([]);
        let requests = ["a", "b"].map(|name_of_it| {
            let kept = strongbox(&key).keep(&Kept::default(), name(name_of_it), name_of_it);
            Input::Request(Request::new("eve", kept.unwrap().unwrap()).into())
        });
        let (_, answers) = site.ask(&requests);
        assert_eq!(answers, [Ok(Accepted::Created), Ok(Accepted::Created)]);
        for name_of_it in ["a", "b"] {
            let opened = strongbox(&key).open(&site.state.strongbox, &name(name_of_it)).unwrap();
            assert_eq!(*opened, name_of_it);
        }
    }

    #[test]
    fn who_has_no_key_is_told_what_to_do() {
        let mut site = TestSite::new([]);
        let keep = |strongbox: &Strongbox, kept: &Kept| strongbox.keep(kept, name("a"), "a");
        let (none, empty) = (Strongbox::default(), Kept::default());
        assert_eq!(keep(&none, &empty).unwrap_err(), Sealed::NoKeyYet);
        assert_eq!(none.sealed(&empty), None, "there is nothing to be opened");
        let operation = keep(&strongbox(&Key::random().unwrap()), &empty).unwrap().unwrap();
        site.ask(&[Input::Request(Request::new("eve", operation).into())]);
        let kept = &site.state.strongbox;
        assert_eq!(keep(&none, kept).unwrap_err(), Sealed::NoKey);
        assert_eq!(none.sealed(kept), Some(Sealed::NoKey));
        let other = strongbox(&Key::random().unwrap());
        assert_eq!(keep(&other, kept).unwrap_err(), Sealed::OtherKey);
    }
}
