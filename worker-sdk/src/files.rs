//! Files of a host's configuration: puts them below configured roots, and removes them. A file that this worker has not
//! put there, or that somebody has changed since, is neither replaced nor removed.
//!
//! A change takes three steps, so that a worker that is killed at any moment knows its own files afterwards:
//!
//! 1. [`Plan::new`] examines all files and changes none;
//! 2. the caller saves [`Plan::owned`], durably;
//! 3. [`Plan::carry_out`] changes the files, and the caller saves what it returns.
//!
//! All new files are written under temporary names before the first is renamed: a full disk or a missing right changes
//! no file. Each file is replaced atomically, all of them together are not. Files that are no longer wanted are removed
//! last, so a directory cannot take the place of one in the same change. Missing directories below a root are created,
//! and stay when the files are removed. Of a replaced file, extended attributes, ACLs and other hard links stay behind.
//!
//! Between the last look at a file and its replacement somebody else's change of it is lost: Linux cannot replace a file
//! only if it is unchanged. Only one process may put files into a directory at a time.
//!
//! Users and groups are found as the C library finds them: musl, with which the static worker is linked, knows `/etc/passwd`,
//! `/etc/group` and nscd, and no other services.

mod directory;
mod error;
mod paths;
mod state_file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use nix::unistd::{Group, User, getegid, geteuid};
use os_upgrade_protocol::FileEntry;

use self::directory::{Access, Directory, Found, check_root, digest};
pub(crate) use self::error::FilesError;
pub(crate) use self::paths::Roots;
use self::paths::{Location, ancestors};
pub(crate) use self::state_file::{FilesOfName, FilesState, OwnedFile};

/// How many files one name may have: each may need an open directory.
const FILES_MAX: usize = 256;
/// The permission bits of a file for which none are given. It may hold secrets.
const MODE: u32 = 0o600;

/// What a change has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The files of this name from now on.
    pub(crate) owned: Vec<OwnedFile>,
    /// The files that this change put, replaced or removed, or whose mode or owner it corrected. Those that an earlier one
    /// changed before it failed or was killed are not among them.
    pub(crate) changed: Vec<PathBuf>,
}

/// A change of the files of one name, checked but not begun.
pub(crate) struct Plan<'a> {
    roots: &'a Roots,
    wanted: Vec<Wanted<'a>>,
    /// Files that are there no longer when the change is complete.
    unwanted: Vec<OwnedFile>,
}

/// A file that is to be there.
struct Wanted<'a> {
    location: Location<'a>,
    content: &'a [u8],
    digest: String,
    access: Access,
    /// What is there when the change begins.
    found: Option<Found>,
}

impl<'a> Plan<'a> {
    /// Checks that the files of a name can become `wanted`, each with its content.
    ///
    /// `before` is what was saved last for this name, by whichever version of its files, complete or not; `of_others` are
    /// the paths of all other names.
    ///
    /// # Errors
    /// A file cannot be put where it is wanted, or is not this worker's; a file of `before` that is no longer wanted has
    /// been changed.
    pub(crate) fn new(
        roots: &'a Roots,
        before: &[OwnedFile],
        of_others: &BTreeSet<String>,
        wanted: &[(&'a FileEntry, &'a [u8])],
    ) -> Result<Self, FilesError> {
        if wanted.len() > FILES_MAX {
            return Err(FilesError::TooMany { count: wanted.len(), max: FILES_MAX });
        }
        check_paths(roots, of_others, wanted)?;
        let mut known = BTreeMap::<&str, BTreeSet<&str>>::new();
        for file in before {
            known.entry(&file.path).or_default().extend(file.digests.iter().map(String::as_str));
        }
        let examine = |(entry, content): &(&'a FileEntry, &'a [u8])| {
            Wanted::examine(roots, known.get(entry.path.as_str()), entry, content)
        };
        let wanted: Vec<Wanted<'_>> = wanted.iter().map(examine).collect::<Result<_, _>>()?;
        for file in &wanted {
            known.remove(file.location.path);
        }
        let unwanted = known.into_iter().map(|(path, digests)| owned(path, digests));
        let unwanted: Vec<OwnedFile> = unwanted.collect();
        for file in &unwanted {
            find_unwanted(&roots.locate(&file.path)?, file)?;
        }
        Ok(Self { roots, wanted, unwanted })
    }

    /// What is to be saved before the change: it is true whatever part of it has been carried out. A file with exactly the
    /// wanted content that somebody else puts there after this was saved counts as this worker's: nobody can tell it from
    /// one of a change that was cut off, and nothing of theirs is lost.
    pub(crate) fn owned(&self) -> Vec<OwnedFile> {
        let wanted = self.wanted.iter().map(|file| owned(file.location.path, file.digests()));
        wanted.chain(self.unwanted.iter().cloned()).collect()
    }

    /// Carries out the change.
    ///
    /// # Errors
    /// A file cannot be changed, or somebody else has changed it since [`Self::new`]. What [`Self::owned`] said stays true,
    /// and a later change begins from there.
    pub(crate) fn carry_out(self) -> Result<Placed, FilesError> {
        // Held open until all is done, each once.
        let mut directories = BTreeMap::new();
        for Wanted { location, .. } in &self.wanted {
            if !directories.contains_key(location.directory()) {
                let directory = Directory::create(location)?;
                directory.sweep(location)?;
                directories.insert(location.directory(), directory);
            }
        }
        let mut staged = Vec::new();
        for file in self.wanted.iter().filter(|file| file.differs()) {
            let directory = &directories[file.location.directory()];
            staged.push((file, directory, directory.stage(file.location, file.content, &file.access)?));
        }
        let mut changed = Vec::new();
        for (file, directory, staged) in staged {
            let found = directory.look(&file.location)?;
            check_ours(file.location.path, found.as_ref(), &file.digests())?;
            staged.publish(found.is_some())?;
            directory.sync(&file.location)?;
            changed.push(PathBuf::from(file.location.path));
        }
        for file in &self.unwanted {
            let location = self.roots.locate(&file.path)?;
            let Some(directory) = Directory::find(&location)? else { continue };
            directory.sweep(&location)?;
            if find_in(&directory, &location, file)?.is_some() {
                directory.remove(&location)?;
                changed.push(PathBuf::from(&file.path));
            }
            // Also if it was gone: an earlier change may have been killed before it was durable.
            directory.sync(&location)?;
        }
        let owned =
            self.wanted.into_iter().map(|file| owned(file.location.path, [file.digest.as_str()])).collect();
        Ok(Placed { owned, changed })
    }
}

/// Removes the files of a name; those that are gone are fine.
///
/// # Errors
/// One has been changed by somebody else, and none is removed, or one cannot be removed. A later call goes on.
pub(crate) fn remove(roots: &Roots, owned: &[OwnedFile]) -> Result<(), FilesError> {
    Plan::new(roots, owned, &BTreeSet::new(), &[])?.carry_out().map(drop)
}

impl<'a> Wanted<'a> {
    /// `known` is what the file may contain if it is this worker's; absent if it is not.
    fn examine(
        roots: &'a Roots,
        known: Option<&BTreeSet<&str>>,
        entry: &'a FileEntry,
        content: &'a [u8],
    ) -> Result<Self, FilesError> {
        let location = roots.locate(&entry.path)?;
        let access = access(entry)?;
        let digest = digest(content);
        check_root(&location)?;
        let directory = Directory::find(&location)?;
        let found = directory.as_ref().map(|directory| directory.look(&location)).transpose()?.flatten();
        if let (Some(_), None) = (&found, known) {
            return Err(FilesError::Foreign { path: entry.path.clone() });
        }
        if let Some(known) = known {
            // Somebody who has changed our file to what is wanted now is in agreement, and nothing of theirs is lost.
            let ours: BTreeSet<&str> = known.iter().copied().chain([digest.as_str()]).collect();
            check_ours(&entry.path, found.as_ref(), &ours)?;
            // `owned` will no longer have what an earlier change that was killed left behind, so it must not come back.
            if let Some(directory) = directory.filter(|_| known.len() > 1 || found.is_none()) {
                directory.sync(&location)?;
            }
        }
        Ok(Self { location, content, digest, access, found })
    }

    /// What the file contains at any moment of the change.
    fn digests(&self) -> BTreeSet<&str> {
        let found = self.found.as_ref().and_then(|found| found.digest.as_deref());
        found.into_iter().chain([self.digest.as_str()]).collect()
    }

    /// Whether the file is not yet as it is wanted.
    fn differs(&self) -> bool {
        self.found
            .as_ref()
            .is_none_or(|found| found.digest.as_ref() != Some(&self.digest) || found.access != self.access)
    }
}

fn owned<'s>(path: &str, digests: impl IntoIterator<Item = &'s str>) -> OwnedFile {
    OwnedFile { path: path.to_owned(), digests: digests.into_iter().map(ToOwned::to_owned).collect() }
}

/// Checks that every path of `wanted` is below a root, is there once, belongs to nobody else, and is not in another.
fn check_paths(
    roots: &Roots,
    of_others: &BTreeSet<String>,
    wanted: &[(&FileEntry, &[u8])],
) -> Result<(), FilesError> {
    let mut paths = BTreeSet::new();
    for (FileEntry { path, .. }, _) in wanted {
        roots.locate(path)?;
        if of_others.contains(path) {
            return Err(FilesError::OfOther { path: path.clone() });
        }
        if !paths.insert(path.as_str()) {
            return Err(FilesError::Repeated { path: path.clone() });
        }
    }
    for path in &paths {
        if let Some(file) = ancestors(path).find(|ancestor| paths.contains(ancestor)) {
            return Err(FilesError::InFile { path: (*path).to_owned(), file: file.to_owned() });
        }
    }
    Ok(())
}

/// Checks that a file contains what this worker may have put there, or does not exist.
fn check_ours(path: &str, found: Option<&Found>, digests: &BTreeSet<&str>) -> Result<(), FilesError> {
    let is_ours = |found: &Found| found.digest.as_deref().is_some_and(|digest| digests.contains(digest));
    if found.is_none_or(is_ours) { Ok(()) } else { Err(FilesError::Changed { path: path.to_owned() }) }
}

/// Checks a file that is no longer wanted; `None` if it is gone.
fn find_unwanted(location: &Location<'_>, file: &OwnedFile) -> Result<Option<Found>, FilesError> {
    let directory = Directory::find(location)?;
    directory.map(|directory| find_in(&directory, location, file)).transpose().map(Option::flatten)
}

fn find_in(
    directory: &Directory,
    location: &Location<'_>,
    file: &OwnedFile,
) -> Result<Option<Found>, FilesError> {
    let found = directory.look(location)?;
    check_ours(location.path, found.as_ref(), &file.digests.iter().map(String::as_str).collect())?;
    Ok(found)
}

/// The mode and the owner that a file is to have.
fn access(entry: &FileEntry) -> Result<Access, FilesError> {
    let path = || entry.path.clone();
    let mode = entry.mode.unwrap_or(MODE);
    if mode > 0o777 {
        return Err(FilesError::Mode { path: path(), mode });
    }
    let failed = |errno: nix::Error| FilesError::Io {
        path: path(),
        action: "look up the owner of",
        source: errno.into(),
    };
    let uid = match &entry.user {
        None => geteuid(),
        Some(name) => {
            let user = User::from_name(name).map_err(failed)?;
            user.ok_or_else(|| FilesError::UnknownUser { path: path(), name: name.clone() })?.uid
        }
    };
    let gid = match &entry.group {
        None => getegid(),
        Some(name) => {
            let group = Group::from_name(name).map_err(failed)?;
            group.ok_or_else(|| FilesError::UnknownGroup { path: path(), name: name.clone() })?.gid
        }
    };
    Ok(Access { mode, uid: uid.as_raw(), gid: gid.as_raw() })
}
