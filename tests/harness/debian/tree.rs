//! A Debian system in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::{NamedTempFile, TempDir};

/// A mount, unmounted when dropped.
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    fn new(kind: &str, options: &str, at: &Path) -> Self {
        fs::create_dir_all(at).unwrap();
        let status = Command::new("mount").args(["-t", kind, "-o", options, kind]).arg(at).status().unwrap();
        assert!(status.success(), "these tests need root, and a kernel that mounts {kind}");
        Self(at.to_owned())
    }

    /// Changes the size of a disk.
    pub fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: killed processes may not have ended yet.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A disk with ext4 in a file. Without a sync, nothing moves from its journal to its place within minutes.
#[derive(Debug)]
pub struct Disk {
    // First field: unmounted before the file is deleted.
    _mount: Mount,
    image: NamedTempFile,
}

impl Disk {
    fn new(at: &Path) -> Self {
        let image = NamedTempFile::new().unwrap();
        image.as_file().set_len(32 * 1024 * 1024).unwrap();
        let made =
            Command::new("mke2fs").args(["-q", "-F", "-t", "ext4"]).arg(image.path()).status().unwrap();
        assert!(made.success(), "mke2fs");
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop,commit=300"]).arg(image.path()).arg(at);
        assert!(mount.status().unwrap().success(), "these tests need loop devices");
        Self { _mount: Mount(at.to_owned()), image }
    }

    /// The content of a file as a boot loader reads it, without the journal.
    pub fn read_as_boot_loader(&self, name: &str) -> String {
        let read =
            Command::new("debugfs").args(["-R", &format!("cat {name}")]).arg(self.image.path()).output();
        String::from_utf8_lossy(&read.unwrap().stdout).into_owned()
    }
}

/// The properties of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    modified: SystemTime,
    mode: u32,
    content: Vec<u8>,
}

/// A Debian system.
#[derive(Debug)]
pub struct Tree {
    // First field: unmounted before the directory is deleted.
    mounts: Vec<Mount>,
    directory: TempDir,
}

impl Tree {
    /// A system as debootstrap leaves it, without sources.
    pub fn new() -> Self {
        Self::over(&[])
    }

    /// The same with systemd and busybox, as `.ci/systemd-tree` makes it.
    pub fn with_systemd() -> Self {
        Self::over(&[&made("systemd-tree")])
    }

    /// A system that starts as `other`, which must not change any more.
    #[must_use]
    pub fn like(other: &Self) -> Self {
        Self::over(&[&other.directory.path().join("changed")])
    }

    fn over(lower: &[&Path]) -> Self {
        let made = made("debian-tree");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["changed", "work"] {
            fs::create_dir(path(name)).unwrap();
        }
        let lower: Vec<_> =
            lower.iter().copied().chain([made.as_path()]).map(|path| path.display().to_string()).collect();
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.join(":"),
            path("changed").display(),
            path("work").display()
        );
        let mount = Mount::new("overlay", &options, &path("root"));
        Self { mounts: vec![mount], directory }
    }

    /// Its root.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name.trim_start_matches('/'))
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// The content of a file; empty if it does not exist.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Mounts a disk of this size at a directory.
    pub fn disk(&self, directory: &str, size: &str) -> Mount {
        Mount::new("tmpfs", &format!("size={size}"), &self.path(directory))
    }

    /// Mounts a disk at a directory, which can be read as a boot loader does.
    pub fn ext4_disk(&self, directory: &str) -> Disk {
        Disk::new(&self.path(directory))
    }

    /// Makes a directory read-only.
    pub fn read_only(&self, directory: &str) -> Mount {
        let at = self.path(directory);
        let mount = |options: &str| {
            let mounted = Command::new("mount").args(["-o", options]).arg(&at).arg(&at).status().unwrap();
            assert!(mounted.success(), "{options}");
        };
        mount("bind");
        mount("remount,ro,bind");
        Mount(at)
    }

    /// Bind-mounts a directory of this machine at the same path.
    pub fn bind(&mut self, directory: &Path) {
        let at = self.path(&directory.display().to_string());
        fs::create_dir_all(&at).unwrap();
        let status = Command::new("mount").arg("--bind").arg(directory).arg(&at).status().unwrap();
        assert!(status.success(), "{} is not shown", directory.display());
        self.mounts.insert(0, Mount(at));
    }

    /// Mounts the file systems that programs expect of a running system.
    pub fn mount_proc(&mut self) {
        let proc = Mount::new("proc", "nosuid", &self.path("proc"));
        // Unmounted before the system itself.
        self.mounts.insert(0, proc);
    }

    /// Runs a command in it.
    pub fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new("chroot");
        command.arg(self.root()).args(words);
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8").output().unwrap()
    }

    /// Runs a command in it that must succeed, and returns what it prints.
    pub fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The installed version of a package with its state, such as `ii 1.0`.
    pub fn package(&self, name: &str) -> String {
        let format = "--showformat=${db:Status-Abbrev}${Version}";
        let output = self.run(&["dpkg-query", "--show", format, name]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The output of `dpkg --audit`.
    pub fn audit(&self) -> String {
        self.must(&["dpkg", "--audit"])
    }

    /// Every file that differs from what debootstrap made, except those below `but`.
    pub fn changes(&self, but: &str) -> BTreeMap<PathBuf, File> {
        let changed = self.directory.path().join("changed");
        let mut files = BTreeMap::new();
        collect(&changed, &changed.join(but.trim_start_matches('/')), &mut files);
        files
    }

    /// Kills all processes in it, as a power cut would.
    pub fn kill_all(&self) {
        let root = fs::metadata(self.root()).unwrap();
        loop {
            let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
                let entry = entry.ok()?;
                let id: i32 = entry.file_name().to_str()?.parse().ok()?;
                let its = fs::metadata(entry.path().join("root")).ok()?;
                // A zombie has no root.
                ((its.dev(), its.ino()) == (root.dev(), root.ino())).then_some(id)
            });
            let processes: Vec<i32> = processes.collect();
            if processes.is_empty() {
                return;
            }
            for id in processes {
                // It may just have ended.
                let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
    }
}

/// A directory made by `make debian-tree`.
fn made(name: &str) -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools").join(name);
    assert!(made.with_extension("made").is_file(), "{name} is missing: run `make debian-tree` as root");
    made
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill_all();
        self.mounts.clear();
    }
}

fn collect(directory: &Path, but: &Path, files: &mut BTreeMap<PathBuf, File>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if path == but {
            continue;
        }
        if metadata.is_dir() {
            collect(&path, but, files);
        } else {
            let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let file = File { modified: metadata.modified().unwrap(), mode: metadata.mode(), content };
            files.insert(path, file);
        }
    }
}
