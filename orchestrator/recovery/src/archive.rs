//! The file of a backup: a gzipped tar of a manifest and the files it names, each with its length and SHA-256.
//!
//! Any tar can list and unpack it. The whole archive is read before anything is written, so a damaged one does no harm.
//! Gzip's own checksum covers the manifest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The format that this version writes, and the only one it reads.
pub const FORMAT: u32 = 2;
/// The manifest's name; it is the first entry.
const MANIFEST: &str = "manifest.json";
/// The largest manifest, in bytes.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024;
/// The store, an SQLite file.
pub const STORE: &str = "store.db";
/// The state at the position, for people. It must match the store's history.
pub const STATE: &str = "state.json";
/// The orchestrator's settings, without secrets, for people.
pub const SETTINGS: &str = "settings.txt";
/// The journal's messages, one JSON object a line.
pub const JOURNAL: &str = "journal.jsonl";
/// The control stream's messages, one JSON object a line.
pub const CONTROL: &str = "control.jsonl";
/// The files that an archive may contain besides its manifest.
const FILES: [&str; 5] = [STORE, STATE, SETTINGS, JOURNAL, CONTROL];

/// The manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// The archive's format.
    pub format: u32,
    /// The version of the program that made it.
    pub program: String,
    /// Why it was made.
    pub kind: Kind,
    pub site: String,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// The position of its store; `None` if that is missing, empty or damaged.
    pub position: Option<At>,
    /// The files by name.
    pub files: BTreeMap<String, Entry>,
}

/// Why an archive was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An operator made a backup.
    Backup,
    /// A restoration saved the data that it replaced.
    Saved,
}

/// A position in both streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct At {
    /// The sequence of the last record of the journal.
    pub journal: u64,
    pub append_id: String,
    /// The position in the control stream as of that record.
    pub control: u64,
    /// The last sequence of the control stream.
    pub control_end: u64,
}

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// Its length in bytes.
    pub size: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Why an archive cannot be written or used. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file exists already.
    #[error("{} exists; `--force` replaces it", .0.display())]
    Exists(PathBuf),
    /// It cannot be written.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// It cannot be opened.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not a backup of os-upgrade", .0.display())]
    NotABackup(PathBuf),
    /// It is truncated or has been changed.
    #[error("the backup {} is damaged: {what}", path.display())]
    Damaged {
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It was made by another version.
    #[error("the backup {} has format {found}; this version reads format {FORMAT}", path.display())]
    OtherFormat {
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It belongs to another site.
    #[error("the backup {} belongs to site {found:?}, not {expected:?}", path.display())]
    OtherSite {
        path: PathBuf,
        /// Its site.
        found: String,
        /// This site.
        expected: String,
    },
    /// It contains no store with a history.
    #[error("the backup {} contains no store to restore", .0.display())]
    NoStore(PathBuf),
}

/// Writes an archive of the known files in `directory` to `path`, either whole and synced or not at all.
///
/// # Errors
/// `path` exists and `replace` is false, or it cannot be written.
pub fn write(
    path: &Path,
    replace: bool,
    mut manifest: Manifest,
    directory: &Path,
) -> Result<Manifest, ArchiveError> {
    if !replace && path.exists() {
        return Err(ArchiveError::Exists(path.to_owned()));
    }
    let failed = |source| ArchiveError::Write { path: path.to_owned(), source };
    let parent = parent(path);
    let mut partial = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
    for name in FILES {
        let file = directory.join(name);
        if file.exists() {
            manifest.files.insert(name.to_owned(), Entry::of(&file).map_err(failed)?);
        }
    }
    pack(partial.as_file_mut(), &manifest, directory).map_err(failed)?;
    partial.as_file().sync_all().map_err(failed)?;
    let kept = if replace { partial.persist(path) } else { partial.persist_noclobber(path) };
    kept.map_err(|error| failed(error.error))?;
    sync_directory(parent).map_err(failed)?;
    Ok(manifest)
}

/// The directory of `path`.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes creations, renames and removals in a directory survive a power cut.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn pack(file: &mut File, manifest: &Manifest, directory: &Path) -> io::Result<()> {
    let mut tar = tar::Builder::new(GzEncoder::new(io::BufWriter::new(file), Compression::default()));
    let json = serde_json::to_vec_pretty(manifest)?;
    tar.append_data(&mut header(json.len() as u64), MANIFEST, &json[..])?;
    for (name, entry) in &manifest.files {
        let source = File::open(directory.join(name))?;
        tar.append_data(&mut header(entry.size), name, source)?;
    }
    tar.into_inner()?.finish()?.flush()
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let mut hashing = Hashing { inner: io::sink(), hash: Sha256::new(), size: 0 };
        io::copy(&mut File::open(path)?, &mut hashing)?;
        Ok(hashing.entry())
    }
}

/// Hashes and counts what is written through it.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W> Hashing<W> {
    fn entry(self) -> Entry {
        let hash = self.hash.finalize();
        let mut sha256 = String::with_capacity(2 * hash.len());
        for byte in hash {
            let _ = write!(sha256, "{byte:02x}");
        }
        Entry { size: self.size, sha256 }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Unpacks the archive at `path` into `directory`. All of it is verified before anything is written.
///
/// # Errors
/// It is not an undamaged backup of `site` that this version can read.
pub fn read(path: &Path, site: &str, directory: &Path) -> Result<Manifest, ArchiveError> {
    let unreadable = |source| ArchiveError::Read { path: path.to_owned(), source };
    unpack(path, site, |_| Ok(io::sink()))?;
    // The file may have been replaced meanwhile.
    let manifest = unpack(path, site, |name| File::create(directory.join(name)))?;
    for name in manifest.files.keys() {
        File::open(directory.join(name)).and_then(|file| file.sync_all()).map_err(unreadable)?;
    }
    Ok(manifest)
}

/// Writes every file of the archive to what `create` makes of its name, and verifies it on the way.
fn unpack<W: Write>(
    path: &Path,
    site: &str,
    mut create: impl FnMut(&str) -> io::Result<W>,
) -> Result<Manifest, ArchiveError> {
    let unreadable = |source| ArchiveError::Read { path: path.to_owned(), source };
    let damaged = |what: String| ArchiveError::Damaged { path: path.to_owned(), what };
    let broken = |error: io::Error| damaged(error.to_string());
    let mut file = File::open(path).map_err(unreadable)?;
    let mut magic = [0; 2];
    let is_gzip = file.read_exact(&mut magic).is_ok() && magic == [0x1f, 0x8b];
    if !is_gzip {
        return Err(ArchiveError::NotABackup(path.to_owned()));
    }
    io::Seek::rewind(&mut file).map_err(unreadable)?;
    let mut tar = tar::Archive::new(GzDecoder::new(io::BufReader::new(file)));
    let mut entries = tar.entries().map_err(broken)?;
    let first = entries.next().ok_or_else(|| ArchiveError::NotABackup(path.to_owned()))?.map_err(broken)?;
    let manifest = read_manifest(path, first)?;
    let mut found = BTreeMap::new();
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.to_string_lossy().into_owned();
        // Only known names are accepted, so none leads out of the directory.
        let Some(expected) = manifest.files.get(&name).filter(|_| FILES.contains(&name.as_str())) else {
            return Err(damaged(format!("it contains {name:?}, which its manifest does not name")));
        };
        let (found_bytes, expected_bytes) = (entry.size(), expected.size);
        if found_bytes != expected_bytes {
            let what = format!("{name} has {found_bytes} bytes, and by its manifest {expected_bytes}");
            return Err(damaged(what));
        }
        let inner = create(&name).map_err(unreadable)?;
        let mut hashing = Hashing { inner, hash: Sha256::new(), size: 0 };
        io::copy(&mut entry, &mut hashing).map_err(broken)?;
        if found.insert(name.clone(), hashing.entry()).is_some() {
            return Err(damaged(format!("it contains {name} twice")));
        }
    }
    // At the end of the stream, gzip verifies its checksum.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(broken)?;
    if let Some(name) =
        manifest.files.iter().find(|(name, entry)| found.get(*name) != Some(entry)).map(|(name, _)| name)
    {
        return Err(damaged(format!("{name} is missing or not as it was written")));
    }
    if manifest.site != site {
        let (found, expected) = (manifest.site, site.to_owned());
        return Err(ArchiveError::OtherSite { path: path.to_owned(), found, expected });
    }
    Ok(manifest)
}

fn read_manifest(path: &Path, mut entry: tar::Entry<'_, impl Read>) -> Result<Manifest, ArchiveError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let damaged = |what: String| ArchiveError::Damaged { path: path.to_owned(), what };
    let is_manifest = entry.path().is_ok_and(|name| name == Path::new(MANIFEST));
    if !is_manifest || entry.size() > MANIFEST_BYTES_MAX {
        return Err(ArchiveError::NotABackup(path.to_owned()));
    }
    let mut json = Vec::new();
    entry.read_to_end(&mut json).map_err(|error| damaged(error.to_string()))?;
    // In another format, every field but this may differ.
    let Format { format } = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
    if format != FORMAT {
        return Err(ArchiveError::OtherFormat { path: path.to_owned(), found: format });
    }
    serde_json::from_slice(&json).map_err(|error| damaged(format!("its manifest: {error}")))
}

/// The id of the archive at `path`: its SHA-256.
///
/// # Errors
/// It cannot be read.
pub fn id(path: &Path) -> Result<String, ArchiveError> {
    let entry = Entry::of(path);
    entry.map(|entry| entry.sha256).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })
}

/// A temporary directory in `beside`, deleted on drop.
///
/// # Errors
/// It cannot be created.
pub fn scratch_directory(beside: &Path) -> Result<tempfile::TempDir, ArchiveError> {
    let failed = |source| ArchiveError::Write { path: beside.to_owned(), source };
    fs::metadata(beside).map_err(failed)?;
    // For its user only: what it will contain is the site's history.
    let only_here = fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(".os-upgrade-").permissions(only_here).tempdir_in(beside).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of `entries` whose manifest says that the state has `size` bytes and is `content`.
    fn archive(path: &Path, size: u64, content: &[u8], entries: &[(&str, &[u8])]) {
        let mut hashing = Hashing { inner: io::sink(), hash: Sha256::new(), size: 0 };
        hashing.write_all(content).unwrap();
        let entry = Entry { size, ..hashing.entry() };
        let manifest = Manifest {
            format: FORMAT,
            program: "1".to_owned(),
            kind: Kind::Backup,
            site: "s".to_owned(),
            made_at: DateTime::UNIX_EPOCH,
            position: None,
            files: [(STATE.to_owned(), entry)].into(),
        };
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let mut tar = tar::Builder::new(GzEncoder::new(File::create(path).unwrap(), Compression::default()));
        for (name, content) in [(MANIFEST, &manifest[..])].iter().chain(entries) {
            tar.append_data(&mut header(content.len() as u64), name, *content).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
    }

    #[test]
    fn damaged_archives_are_refused_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (path, to) = (directory.path().join("a.tar.gz"), directory.path().join("to"));
        fs::create_dir(&to).unwrap();
        let read = |size, content: &[u8], entries: &[(&str, &[u8])]| {
            archive(&path, size, content, entries);
            let read = read(&path, "s", &to).map(drop).map_err(|error| error.to_string());
            (read, fs::read_dir(&to).unwrap().count())
        };
        let state: (&str, &[u8]) = (STATE, b"state");
        let refused = |what: &str| (Err(format!("the backup {} is damaged: {what}", path.display())), 0);
        for (size, content, entries, expected) in [
            (4, &b"stat"[..], &[state][..], "state.json has 5 bytes, and by its manifest 4"),
            (6, b"state!", &[state], "state.json has 5 bytes, and by its manifest 6"),
            (5, b"State", &[state], "state.json is missing or not as it was written"),
            (5, b"state", &[state, state], "it contains state.json twice"),
            (5, b"state", &[], "state.json is missing or not as it was written"),
            (
                5,
                b"state",
                &[state, (STORE, b"")],
                "it contains \"store.db\", which its manifest does not name",
            ),
        ] {
            assert_eq!(read(size, content, entries), refused(expected));
        }
        assert_eq!(read(5, b"state", &[state]), (Ok(()), 1));
        assert_eq!(fs::read(to.join(STATE)).unwrap(), b"state");
    }
}
