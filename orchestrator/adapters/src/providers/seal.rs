//! Makes of what a provider gave an item that only its host can open.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use os_upgrade_platform::random::{self, RandomError};
use os_upgrade_protocol::limits::CONTENT_HEADER_BYTES_MAX;
use os_upgrade_protocol::{Content, FileEntry, HostKey, ItemId, ItemIdError};
use os_upgrade_provider_rules::ContentBytes;
use os_upgrade_sealing::{SealError, SealedFor};
use zeroize::{Zeroize as _, Zeroizing};

/// The bytes of an item's id, 128 bits: nobody guesses it, and no two are the same.
const ID_BYTES: usize = 16;

/// The file that a content becomes on its host, as the provider's configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTarget {
    /// Its absolute path.
    pub path: String,
    /// Its permission bits; the worker's choice if absent, as for the others.
    pub mode: Option<u32>,
    pub user: Option<String>,
    pub group: Option<String>,
}

/// A sealed item, to be stored under its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedItem {
    /// A random id, which says nothing of the content.
    pub id: ItemId,
    pub bytes: Vec<u8>,
}

/// Why a content cannot be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealItemError {
    #[error(transparent)]
    Key(#[from] SealError),
    #[error(transparent)]
    Random(#[from] RandomError),
    #[error(transparent)]
    Id(#[from] ItemIdError),
    #[error("paths, users and groups take more than {CONTENT_HEADER_BYTES_MAX} bytes")]
    HeaderTooLong,
}

impl FileTarget {
    /// The file with so many bytes.
    pub(super) fn entry(&self, bytes: usize) -> FileEntry {
        let Self { path, mode, user, group } = self.clone();
        FileEntry { path, mode, user, group, bytes }
    }
}

/// Seals `bytes` to `key`. They become `files`, one after the other; without any they are for the worker's handler alone.
///
/// # Errors
/// See [`SealItemError`].
pub fn seal(
    key: &HostKey,
    sealed_for: &SealedFor<'_>,
    files: &[FileEntry],
    bytes: &ContentBytes,
) -> Result<SealedItem, SealItemError> {
    let mut content = Content { files: files.to_vec(), bytes: bytes.as_slice().to_vec() };
    let opened = Zeroizing::new(content.to_bytes());
    content.bytes.zeroize();
    // Its line feed is not part of the header.
    if opened.len() - bytes.as_slice().len() > CONTENT_HEADER_BYTES_MAX + 1 {
        return Err(SealItemError::HeaderTooLong);
    }
    let mut id = [0; ID_BYTES];
    random::fill(&mut id)?;
    let id = ItemId::new(&BASE64_URL_SAFE_NO_PAD.encode(id))?;
    Ok(SealedItem { id, bytes: os_upgrade_sealing::seal(key, sealed_for, &opened)? })
}

impl From<SealItemError> for os_upgrade_provider_rules::Failure {
    fn from(_: SealItemError) -> Self {
        Self::NotSealed
    }
}
