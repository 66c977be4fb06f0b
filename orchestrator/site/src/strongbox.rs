//! The strongbox of this instance: the key, which is only in memory, and opening secrets with it.
//!
//! The sealed secrets are in the committed state ([`os_upgrade_kernel::Strongbox`]), so every instance of a site has
//! them. Each instance needs the key once after its start.

pub mod key;
pub mod key_file;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use os_upgrade_kernel::secrets::Strongbox as KernelStrongbox;
use os_upgrade_kernel::{Sealed, SecretName, SecretOperation};
use os_upgrade_platform::random::RandomError;
use os_upgrade_provider_rules::Origin;
use os_upgrade_settings::Settings;
use zeroize::Zeroizing;

use self::key::Key;
use self::key_file::KeyFileError;
use crate::published_state::PublishedState;

/// The largest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 8 * 1024;

/// The strongbox of a running instance. Clones are cheap and share one key.
#[derive(Debug, Clone, Default)]
pub struct Strongbox {
    key: Arc<ArcSwapOption<Key>>,
    /// The secret that slot requests need, if any.
    needed: Option<SecretName>,
}

/// A reference to a secret, which is opened on each use.
#[derive(Debug, Clone)]
pub struct Secret {
    strongbox: Strongbox,
    published: Arc<ArcSwap<PublishedState>>,
    name: SecretName,
}

impl Secret {
    /// The secret's present value.
    ///
    /// # Errors
    /// There is no secret of this name, or no key that opens it.
    pub fn open(&self) -> Result<Zeroizing<String>, Sealed> {
        self.strongbox.open(&self.published.load().state.strongbox, &self.name)
    }
}

impl Strongbox {
    /// The strongbox of `settings`, with the key from their key file, if they name one.
    ///
    /// # Errors
    /// The key's file cannot be used.
    pub fn from_settings(settings: &Settings) -> Result<Self, KeyFileError> {
        let needed = settings.fleet_lock.credentials_secret.clone();
        let strongbox = Self { key: Arc::default(), needed };
        if let Some(path) = &settings.strongbox.key_file {
            strongbox.key.store(Some(Arc::new(key_file::read(path)?)));
        }
        Ok(strongbox)
    }

    /// The lock server's credentials among the secrets in `published`; `None` if the settings name none.
    pub fn credentials(&self, published: &Arc<ArcSwap<PublishedState>>) -> Option<Secret> {
        let name = self.needed.clone()?;
        Some(Secret { strongbox: self.clone(), published: Arc::clone(published), name })
    }

    /// Uses `key` from now on. Returns `false`, and ignores it, if `kept` was sealed with another key.
    pub fn unseal(&self, kept: &KernelStrongbox, key: Key) -> bool {
        let fits = key_fits(&key, kept);
        if fits {
            self.key.store(Some(Arc::new(key)));
        }
        fits
    }

    /// Why secrets cannot be used; `None` if they can, or if there are none and none is needed.
    pub fn sealed(&self, kept: &KernelStrongbox) -> Option<Sealed> {
        let wanted = self.needed.is_some() || !kept.secrets.is_empty();
        wanted.then(|| self.key(kept).err()).flatten()
    }

    /// Why the secret for slot requests cannot be used; `None` if it can, or if none is needed.
    pub fn blocks_slots(&self, kept: &KernelStrongbox) -> Option<Sealed> {
        self.needed.as_ref().and_then(|name| self.open(kept, name).err())
    }

    /// The operation by which the kernel keeps `value` under `name`.
    ///
    /// # Errors
    /// There is no key. The inner error: there is no randomness.
    pub fn keep(
        &self,
        kept: &KernelStrongbox,
        name: SecretName,
        origin: Option<Origin>,
        value: &str,
    ) -> Result<Result<SecretOperation, RandomError>, Sealed> {
        let key = self.key(kept)?;
        let check = match &kept.check {
            Some(check) if key.matches(check) => check.clone(),
            Some(_) | None => key.check(),
        };
        let sealed = key.seal(&name, origin.as_ref(), value);
        Ok(sealed.map(|sealed| SecretOperation::Keep { name, sealed, origin, check }))
    }

    /// A value that is the same for the same `parts`, and tells nothing of them; `None` without a key.
    pub fn fingerprint(&self, kept: &KernelStrongbox, parts: &[&[u8]]) -> Option<String> {
        self.key(kept).ok().map(|key| key.fingerprint(parts))
    }

    /// `value`, sealed under `parts`; `None` without a key.
    pub fn seal_text(&self, kept: &KernelStrongbox, parts: &[&str], value: &str) -> Option<String> {
        self.key(kept).ok()?.seal_text(parts, value).ok()
    }

    /// What was sealed under `parts`; `None` without the key that opens it.
    pub fn open_text(
        &self,
        kept: &KernelStrongbox,
        parts: &[&str],
        sealed: &str,
    ) -> Option<Zeroizing<String>> {
        self.key(kept).ok()?.open_text(parts, sealed).ok()
    }

    /// The secret `name` and the only origin to which providers of configuration may send it; absent if to none.
    ///
    /// # Errors
    /// There is no secret of this name, or no key that opens it.
    pub fn open_with_origin(
        &self,
        kept: &KernelStrongbox,
        name: &SecretName,
    ) -> Result<(Zeroizing<String>, Option<Origin>), Sealed> {
        let secret = self.open(kept, name)?;
        Ok((secret, kept.secrets.get(name).and_then(|secret| secret.origin.clone())))
    }

    fn open(&self, kept: &KernelStrongbox, name: &SecretName) -> Result<Zeroizing<String>, Sealed> {
        let key = self.key(kept)?;
        let secret = kept.secrets.get(name).ok_or_else(|| Sealed::NoSecret { name: name.clone() })?;
        key.open(name, secret.origin.as_ref(), &secret.sealed)
            .map_err(|_| Sealed::Damaged { name: name.clone() })
    }

    fn key(&self, kept: &KernelStrongbox) -> Result<Arc<Key>, Sealed> {
        let no_key = if kept.secrets.is_empty() { Sealed::NoKeyYet } else { Sealed::NoKey };
        let key = self.key.load_full().ok_or(no_key)?;
        if key_fits(&key, kept) { Ok(key) } else { Err(Sealed::OtherKey) }
    }
}

/// Whether `key` is the one of the kept secrets. Without secrets, any key fits.
fn key_fits(key: &Key, kept: &KernelStrongbox) -> bool {
    kept.secrets.is_empty() || kept.check.as_deref().is_some_and(|check| key.matches(check))
}

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::{Accepted, Input, Request};
    use os_upgrade_test_site::TestSite;

    use super::*;

    fn strongbox(key: &Key) -> Strongbox {
        let strongbox = Strongbox::default();
        assert!(strongbox.unseal(&KernelStrongbox::default(), Key::parse(&key.reveal()).unwrap()));
        strongbox
    }

    fn name(text: &str) -> SecretName {
        SecretName::new(text).unwrap()
    }

    /// Neither instance knows of the other's secret when it seals its own.
    #[test]
    fn instances_may_keep_first_secrets_concurrently() {
        let key = Key::random().unwrap();
        let mut site = TestSite::new([]);
        let requests = ["a", "b"].map(|text| {
            let kept = strongbox(&key).keep(&KernelStrongbox::default(), name(text), None, text);
            Input::Request(Request::new("eve", kept.unwrap().unwrap()).into())
        });
        let (_, answers) = site.decide(&requests);
        assert_eq!(answers, [Ok(Accepted::Created), Ok(Accepted::Created)]);
        for text in ["a", "b"] {
            let opened = strongbox(&key).open(&site.state.strongbox, &name(text)).unwrap();
            assert_eq!(*opened, text);
        }
    }

    #[test]
    fn texts_are_sealed_while_there_is_a_key() {
        let (kept, key) = (KernelStrongbox::default(), Key::random().unwrap());
        let sealed = strongbox(&key).seal_text(&kept, &["h1"], "2ab9").unwrap();
        let opened = strongbox(&key).open_text(&kept, &["h1"], &sealed);
        assert_eq!(opened.as_deref().map(String::as_str), Some("2ab9"));
        let (none, other) = (Strongbox::default(), strongbox(&Key::random().unwrap()));
        assert_eq!(none.seal_text(&kept, &["h1"], "2ab9"), None);
        for strongbox in [none, other] {
            assert_eq!(strongbox.open_text(&kept, &["h1"], &sealed), None);
        }
    }

    #[test]
    fn missing_or_wrong_keys_are_reported() {
        let mut site = TestSite::new([]);
        let keep = |strongbox: &Strongbox, kept: &KernelStrongbox| strongbox.keep(kept, name("a"), None, "a");
        let (none, empty) = (Strongbox::default(), KernelStrongbox::default());
        assert_eq!(keep(&none, &empty).unwrap_err(), Sealed::NoKeyYet);
        assert_eq!(none.sealed(&empty), None, "there is nothing to be opened");
        let operation = keep(&strongbox(&Key::random().unwrap()), &empty).unwrap().unwrap();
        site.decide(&[Input::Request(Request::new("eve", operation).into())]);
        let kept = &site.state.strongbox;
        assert_eq!(keep(&none, kept).unwrap_err(), Sealed::NoKey);
        assert_eq!(none.sealed(kept), Some(Sealed::NoKey));
        let other = strongbox(&Key::random().unwrap());
        assert_eq!(keep(&other, kept).unwrap_err(), Sealed::OtherKey);
    }
}
