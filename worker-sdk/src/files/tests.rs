//! The rules for files, each on a real file system. A crash is a plan that is carried out, but whose result is not saved,
//! or a temporary file from before.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::stat::{Mode, umask};
use nix::unistd::mkfifo;
use tempfile::TempDir;

use super::*;

/// A host with one root, and what its worker has saved of one name.
struct Host {
    directory: TempDir,
    roots: Roots,
    saved: Vec<OwnedFile>,
    of_others: BTreeSet<String>,
}

impl Host {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        let roots = Roots::new([directory.path().join("root")]).unwrap();
        Self { directory, roots, saved: Vec::new(), of_others: BTreeSet::new() }
    }

    /// A path in the root, or outside with `..`.
    fn path(&self, name: &str) -> String {
        let root = self.directory.path().join("root");
        format!("{}/{name}", root.display())
    }

    fn outside(&self, name: &str) -> String {
        format!("{}/{name}", self.directory.path().display())
    }

    fn entry(&self, name: &str, content: &str) -> FileEntry {
        FileEntry { path: self.path(name), mode: None, user: None, group: None, bytes: content.len() }
    }

    /// Names and contents of files, as they are given to a plan.
    fn entries<'c>(&self, files: &[(&str, &'c str)]) -> Vec<(FileEntry, &'c [u8])> {
        files.iter().map(|(name, content)| (self.entry(name, content), content.as_bytes())).collect()
    }

    fn plan<'h>(&'h self, entries: &'h [(FileEntry, &[u8])]) -> Result<Plan<'h>, FilesError> {
        let wanted: Vec<(&FileEntry, &[u8])> =
            entries.iter().map(|(entry, content)| (entry, *content)).collect();
        Plan::new(&self.roots, &self.saved, &self.of_others, &wanted)
    }

    /// A whole change: the names of changed files.
    fn place(&mut self, files: &[(&str, &str)]) -> Result<Vec<String>, FilesError> {
        self.place_entries(&self.entries(files))
    }

    fn place_entries(&mut self, entries: &[(FileEntry, &[u8])]) -> Result<Vec<String>, FilesError> {
        let plan = self.plan(entries)?;
        let planned = plan.owned();
        let placed = plan.carry_out();
        self.saved = planned;
        let Placed { owned, changed } = placed?;
        self.saved = owned;
        let root = self.path("");
        Ok(changed
            .iter()
            .map(|path| path.to_str().unwrap().strip_prefix(&root).unwrap().to_owned())
            .collect())
    }

    /// The text of the error, with the root's path as `ROOT`.
    fn text(&self, error: &FilesError) -> String {
        error.to_string().replace(self.path("").trim_end_matches('/'), "ROOT")
    }

    fn refusal(&mut self, files: &[(&str, &str)]) -> String {
        let error = self.place(files).unwrap_err();
        self.text(&error)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// With the mode that files have by default.
    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    /// The names of all in a directory below the root, sorted.
    fn names(&self, directory: &str) -> Vec<String> {
        names(&self.path(directory))
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().mode() & 0o7777
    }

    fn remove(&self) -> Result<(), FilesError> {
        remove(&self.roots, &self.saved)
    }
}

fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_root() -> bool {
    geteuid().is_root()
}

#[test]
fn files_are_put_replaced_and_removed() {
    let mut host = Host::new();
    assert_eq!(host.place(&[("a", "one"), ("d/e/b", "")]).unwrap(), ["a", "d/e/b"]);
    assert_eq!((host.read("a").as_str(), host.read("d/e/b").as_str()), ("one", ""));
    assert_eq!(host.saved[0], owned(&host.path("a"), [digest(b"one").as_str()]));
    assert_eq!(host.mode("a"), 0o600);
    let before = fs::metadata(host.path("a")).unwrap();

    assert_eq!(host.place(&[("a", "one"), ("d/e/b", "")]).unwrap(), [""; 0]);
    assert_eq!(fs::metadata(host.path("a")).unwrap().ino(), before.ino());

    assert_eq!(host.place(&[("a", "two"), ("c", "3")]).unwrap(), ["a", "c", "d/e/b"]);
    assert_eq!(host.read("a"), "two");
    assert_eq!(host.names(""), ["a", "c", "d"]);
    assert_eq!(host.names("d/e"), [""; 0]);

    host.remove().unwrap();
    host.remove().unwrap();
    assert_eq!(host.names(""), ["d"]);
}

#[test]
fn plan_changes_nothing() {
    let mut host = Host::new();
    host.place(&[("a", "one"), ("b", "one")]).unwrap();
    let entries = host.entries(&[("a", "two"), ("d/c", "new")]);
    let plan = host.plan(&entries).unwrap();
    let (one, two, new) = (digest(b"one"), digest(b"two"), digest(b"new"));
    let mut both = [one.as_str(), two.as_str()];
    both.sort_unstable();
    assert_eq!(
        plan.owned(),
        [
            owned(&host.path("a"), both),
            owned(&host.path("d/c"), [new.as_str()]),
            owned(&host.path("b"), [one.as_str()])
        ]
    );
    drop(plan);
    assert_eq!(host.names(""), ["a", "b"]);
    assert_eq!(host.read("a"), "one");
}

#[test]
fn cut_off_changes_are_resumed() {
    let mut host = Host::new();
    host.place(&[("a", "one"), ("b", "one"), ("old", "one")]).unwrap();
    // Killed after the first file.
    let entries = host.entries(&[("a", "two"), ("b", "two"), ("c", "two")]);
    let planned = host.plan(&entries).unwrap().owned();
    host.saved = planned.clone();
    host.write("a", "two");
    host.write("c", "two");
    assert_eq!(host.place(&[("a", "two"), ("b", "two"), ("c", "two")]).unwrap(), ["b", "old"]);
    // Killed there, and now to be something else.
    host.saved = planned;
    host.write("b", "one");
    assert_eq!(host.place(&[("a", "three"), ("b", "three")]).unwrap(), ["a", "b", "c"]);
    assert_eq!(host.names(""), ["a", "b"]);
}

#[test]
fn saved_digests_do_not_pile_up() {
    let mut host = Host::new();
    host.place(&[("a", "0")]).unwrap();
    for round in 1..6 {
        let content = round.to_string();
        host.saved = host.plan(&host.entries(&[("a", &content)])).unwrap().owned();
        assert_eq!(host.saved[0].digests.len(), 2);
    }
    assert_eq!(host.place(&[("a", "0")]).unwrap(), [""; 0]);
}

#[test]
fn files_of_somebody_else_stay() {
    let mut host = Host::new();
    for content in ["theirs", "ours"] {
        host.write("a", content);
        assert_eq!(
            host.refusal(&[("b", "new"), ("a", "ours")]),
            "ROOT/a exists, and this worker has not put it there: move it away, or choose another path"
        );
        assert_eq!((host.read("a").as_str(), host.names("")), (content, vec!["a".to_owned()]));
    }
}

#[test]
fn files_that_somebody_changed_stay() {
    let mut host = Host::new();
    host.place(&[("a", "one"), ("b", "one")]).unwrap();
    host.write("b", "theirs");
    let refusal = "ROOT/b has been changed by somebody else since this worker put it there: move it away";
    assert_eq!(host.refusal(&[("a", "two"), ("b", "two")]), refusal);
    assert_eq!(host.refusal(&[("a", "two")]), refusal);
    assert_eq!(host.text(&host.remove().unwrap_err()), refusal);
    assert_eq!((host.read("a").as_str(), host.read("b").as_str()), ("one", "theirs"));
    // Larger than any file of a worker, so not read to its end.
    fs::File::options().write(true).open(host.path("b")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(host.refusal(&[("b", "two")]), refusal);
    // Changed to what is wanted now.
    host.write("b", "two");
    assert_eq!(host.place(&[("a", "two"), ("b", "two")]).unwrap(), ["a"]);
    // Moved away.
    fs::rename(host.path("b"), host.path("b.theirs")).unwrap();
    assert_eq!(host.place(&[("a", "two"), ("b", "two")]).unwrap(), ["b"]);
}

#[test]
fn files_that_change_after_the_check_stay() {
    let mut host = Host::new();
    host.place(&[("a", "one"), ("old", "one")]).unwrap();
    for (name, content, entries) in [
        ("a", "theirs", vec![("a", "two"), ("old", "one")]),
        ("b", "theirs", vec![("a", "one"), ("b", "one"), ("old", "one")]),
        ("old", "theirs", vec![("a", "one")]),
    ] {
        let entries = host.entries(&entries);
        let plan = host.plan(&entries).unwrap();
        host.write(name, content);
        let error = plan.carry_out().unwrap_err();
        assert!(matches!(&error, FilesError::Changed { path } if *path == host.path(name)), "{error}");
        assert_eq!(host.read(name), "theirs");
        fs::remove_file(host.path(name)).unwrap();
        host.place(&[("a", "one"), ("old", "one")]).unwrap();
    }
    assert_eq!(host.names(""), ["a", "old"]);
}

#[test]
fn publishing_does_not_replace_what_was_not_there() {
    let host = Host::new();
    let path = host.path("a");
    let location = host.roots.locate(&path).unwrap();
    let directory = Directory::create(&location).unwrap();
    let access = Access { mode: 0o600, uid: geteuid().as_raw(), gid: getegid().as_raw() };
    let staged = directory.stage(location, b"ours", &access).unwrap();
    host.write("a", "theirs");
    assert!(matches!(staged.publish(false), Err(FilesError::Foreign { .. })));
    assert_eq!((host.read("a").as_str(), host.names("")), ("theirs", vec!["a".to_owned()]));
    directory.stage(location, b"ours", &access).unwrap().publish(true).unwrap();
    assert_eq!((host.read("a").as_str(), host.names("")), ("ours", vec!["a".to_owned()]));
}

#[test]
fn paths_belong_to_one_name() {
    let mut host = Host::new();
    assert_eq!(
        host.refusal(&[("a", "1"), ("b", "1"), ("a", "2")]),
        "ROOT/a is there twice: leave one of them out"
    );
    assert_eq!(
        host.refusal(&[("a", "1"), ("a.b", "1"), ("a/b/c", "2")]),
        "ROOT/a/b/c is to be in ROOT/a, which is to be a file: choose another path for one of them"
    );
    host.of_others.insert(host.path("a"));
    assert_eq!(
        host.refusal(&[("b", "1"), ("a", "1")]),
        "ROOT/a belongs to another name: choose another path, or take it out there first"
    );
    assert_eq!(host.names(""), [""; 0]);
    let names: Vec<String> = (0..=FILES_MAX).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(
        host.refusal(&many),
        "257 files are more than one name may have (256): divide them among several names"
    );
}

#[test]
fn paths_outside_the_roots_are_refused() {
    let mut host = Host::new();
    for name in ["../x", "d/../../x", "", ".", "b/"] {
        let error = host.place(&[("a", "1"), (name, "1")]).unwrap_err();
        assert!(matches!(error, FilesError::Path { .. }), "{error}");
    }
    let outside = host.outside("x");
    let entry = FileEntry { path: outside.clone(), ..host.entry("x", "1") };
    let error = host.place_entries(&[(entry, b"1")]).unwrap_err();
    assert!(matches!(error, FilesError::NotBelowRoot { .. }), "{error}");
    // A root that is configured no longer: its files are not touched.
    fs::write(&outside, "1").unwrap();
    host.saved = vec![owned(&outside, [digest(b"1").as_str()])];
    assert!(matches!(host.remove(), Err(FilesError::NotBelowRoot { .. })));
    assert!(Path::new(&outside).exists());
    assert_eq!(host.names(""), [""; 0]);
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let mut host = Host::new();
    let outside = host.outside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(format!("{outside}/a"), "1").unwrap();
    symlink(&outside, host.path("linked")).unwrap();
    symlink(format!("{outside}/a"), host.path("file")).unwrap();
    symlink("nowhere", host.path("dangling")).unwrap();
    fs::create_dir(host.path("d")).unwrap();
    symlink("../d", host.path("d/inside")).unwrap();
    for (name, at) in [
        ("linked/a", "linked"),
        ("linked/new", "linked"),
        ("linked/d/new", "linked"),
        ("d/inside/new", "d/inside"),
        ("file", "file"),
        ("dangling", "dangling"),
    ] {
        let refusal = format!(
            "ROOT/{name} cannot be used, as ROOT/{at} is a symbolic link: use the path that it leads to, or move it away"
        );
        assert_eq!(host.refusal(&[("b", "1"), (name, "1")]), refusal);
        // Nor is a file removed over a link, if one has taken the place of a directory of ours.
        host.saved = vec![owned(&host.path(name), [digest(b"1").as_str()])];
        assert_eq!(host.text(&host.remove().unwrap_err()), refusal);
        host.saved.clear();
    }
    assert_eq!(names(&outside), ["a"]);
    assert_eq!(host.names(""), ["d", "dangling", "file", "linked"]);
}

#[test]
fn roots_are_directories_that_exist() {
    let mut host = Host::new();
    let outside = host.outside("");
    let outside = outside.trim_end_matches('/');
    symlink(host.path(""), host.outside("link")).unwrap();
    fs::create_dir(host.path("d")).unwrap();
    host.write("f", "");
    for (root, expected) in [
        (
            "gone",
            "OUTSIDE/gone/a needs the root OUTSIDE/gone, which does not exist: create or mount it, or correct the roots \
             for files",
        ),
        (
            "link/d",
            "OUTSIDE/link/d/a cannot be used, as OUTSIDE/link is a symbolic link: use the path that it leads to, or move \
             it away",
        ),
        (
            "root/f",
            "OUTSIDE/root/f/a cannot be used, as OUTSIDE/root/f is not a directory: move it away, or choose another path",
        ),
    ] {
        host.roots = Roots::new([host.outside(root).into()]).unwrap();
        let entry = FileEntry { path: format!("{}/a", host.outside(root)), ..host.entry("a", "") };
        let entries = [(entry, &b""[..])];
        let error = host.plan(&entries).err().expect("before anything is changed");
        assert_eq!(error.to_string().replace(outside, "OUTSIDE"), expected);
    }
    // What was in a root that is gone is gone.
    host.roots = Roots::new([host.outside("gone").into()]).unwrap();
    host.saved = vec![owned(&host.outside("gone/a"), [digest(b"").as_str()])];
    host.remove().unwrap();
}

#[test]
fn only_regular_files_are_replaced() {
    let mut host = Host::new();
    fs::create_dir(host.path("d")).unwrap();
    mkfifo(Path::new(&host.path("pipe")), Mode::S_IRWXU).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(host.path("socket")).unwrap();
    for (name, kind) in [("d", "a directory"), ("pipe", "a pipe"), ("socket", "a socket")] {
        let refusal = format!(
            "ROOT/{name} is {kind}, which is neither replaced nor removed: move it away, or choose another path"
        );
        assert_eq!(host.refusal(&[("b", "1"), (name, "1")]), refusal);
        host.saved = vec![owned(&host.path(name), [digest(b"").as_str()])];
        assert_eq!(host.text(&host.remove().unwrap_err()), refusal);
        host.saved.clear();
    }
    drop(socket);
    assert_eq!(
        host.refusal(&[("pipe/a", "1")]),
        "ROOT/pipe/a cannot be used, as ROOT/pipe is not a directory: move it away, or choose another path"
    );
    assert_eq!(host.names(""), ["d", "pipe", "socket"]);
}

#[test]
fn hard_links_keep_their_content() {
    let mut host = Host::new();
    host.place(&[("a", "one")]).unwrap();
    fs::hard_link(host.path("a"), host.path("other")).unwrap();
    host.place(&[("a", "two")]).unwrap();
    assert_eq!((host.read("a").as_str(), host.read("other").as_str()), ("two", "one"));
}

#[test]
fn modes_are_set_and_corrected() {
    let mut host = Host::new();
    let entry = |host: &Host, mode| FileEntry { mode, ..host.entry("a", "1") };
    let entries = [(entry(&host, Some(0o4755)), &b"1"[..])];
    let error = host.place_entries(&entries).unwrap_err();
    assert_eq!(
        host.text(&error),
        "ROOT/a is to have the mode 4755: choose one of 0 to 777, without setuid, setgid and sticky"
    );
    for mode in [Some(0o644), Some(0o777), None, Some(0o440)] {
        let entries = [(entry(&host, mode), &b"1"[..])];
        assert_eq!(host.place_entries(&entries).unwrap(), ["a"]);
        assert_eq!(host.mode("a"), mode.unwrap_or(0o600));
        assert_eq!(host.place_entries(&entries).unwrap(), [""; 0]);
    }
    fs::set_permissions(host.path("a"), Permissions::from_mode(0o4440)).unwrap();
    assert_eq!(host.place_entries(&[(entry(&host, Some(0o440)), b"1")]).unwrap(), ["a"]);
    assert_eq!(host.mode("a"), 0o440);
}

#[test]
fn owners_are_set_and_corrected() {
    let mut host = Host::new();
    let nobody = User::from_name("nobody").unwrap().expect("every system has it");
    let mine = User::from_uid(geteuid()).unwrap().map(|user| user.name);
    for (user, group, refusal) in [
        (
            Some("no-such:user"),
            None,
            "ROOT/a is to belong to the user \"no-such:user\", whom this host does not have: create the user first",
        ),
        (
            mine.as_deref(),
            Some("no-such\0group"),
            "ROOT/a is to belong to the group \"no-such\\0group\", which this host does not have: create the group first",
        ),
    ] {
        let owned_by = (user.map(ToOwned::to_owned), group.map(ToOwned::to_owned));
        let entry = FileEntry { user: owned_by.0, group: owned_by.1, ..host.entry("a", "1") };
        let error = host.place_entries(&[(entry, b"1")]).unwrap_err();
        assert_eq!(host.text(&error), refusal);
    }
    let entry = FileEntry { user: Some("nobody".to_owned()), ..host.entry("a", "1") };
    let given = host.place_entries(&[(host.entry("b", "1"), b"1"), (entry, b"1")]);
    if is_root() {
        assert_eq!(given.unwrap(), ["b", "a"]);
        let metadata = fs::metadata(host.path("a")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (nobody.uid.as_raw(), getegid().as_raw()));
        assert_eq!(host.place(&[("b", "1"), ("a", "1")]).unwrap(), ["a"]);
        assert_eq!(fs::metadata(host.path("a")).unwrap().uid(), 0);
    } else if nobody.uid != geteuid() {
        assert!(matches!(given, Err(FilesError::NotPermitted { .. })));
        // Neither file was put, and nothing is left of the attempt.
        assert_eq!(host.names(""), [""; 0]);
    }
}

#[test]
fn temporary_files_left_behind_are_removed() {
    let mut host = Host::new();
    host.place(&[("d/a", "1"), ("e/b", "1")]).unwrap();
    let left = ".os-upgrade.00000000000000ff.tmp";
    let similar =
        [".os-upgrade.00000000000000f.tmp", ".os-upgrade.00000000000000ff.tmpx", ".os-upgrade.x.tmp"];
    let plant = |host: &Host| {
        for directory in ["d", "e"] {
            host.write(&format!("{directory}/{left}"), "secret");
        }
    };
    plant(&host);
    for name in similar {
        host.write(&format!("d/{name}"), "");
    }
    let directory = ".os-upgrade.0123456789abcdef.tmp";
    fs::create_dir(host.path(&format!("d/{directory}"))).unwrap();
    if is_root() {
        // Killed when the file had its owner already.
        std::os::unix::fs::chown(host.path(&format!("d/{left}")), Some(1), Some(1)).unwrap();
    }
    // In each directory of a file, be it unchanged or no longer wanted.
    assert_eq!(host.place(&[("d/a", "1")]).unwrap(), ["e/b"]);
    let kept = [&similar[..], &[directory, "a"]].concat();
    assert_eq!(
        host.names("d").into_iter().collect::<BTreeSet<_>>(),
        kept.into_iter().map(Into::into).collect()
    );
    assert_eq!(host.names("e"), [""; 0]);
    plant(&host);
    host.remove().unwrap();
    assert!(!host.names("d").contains(&left.to_owned()));
}

#[test]
fn failed_changes_leave_no_temporary_files() {
    let mut host = Host::new();
    let long = "x".repeat(256);
    let error = host.place(&[("a", "1"), (&long, "1")]).unwrap_err();
    assert!(matches!(error, FilesError::Io { .. }), "{error}");
    // A directory takes the place of the second file when the first is already put.
    let entries = host.entries(&[("a", "secret"), ("b", "secret")]);
    let plan = host.plan(&entries).unwrap();
    fs::create_dir(host.path("b")).unwrap();
    let error = plan.carry_out().unwrap_err();
    assert!(matches!(error, FilesError::NotRegular { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"));
    assert_eq!(host.names(""), ["a", "b"]);
}

#[test]
fn missing_directories_are_created_and_stay() {
    let mut host = Host::new();
    fs::create_dir(host.path("shared")).unwrap();
    fs::set_permissions(host.path("shared"), Permissions::from_mode(0o2700)).unwrap();
    // Of the whole process, but no other test depends on it for longer than it takes to create a directory.
    let before = umask(Mode::from_bits_truncate(0o077));
    host.place(&[("d/e/a", "1"), ("shared/d/a", "1")]).unwrap();
    umask(before);
    assert_eq!((host.mode("d"), host.mode("d/e")), (0o755, 0o755));
    assert_eq!((host.mode("shared"), host.mode("shared/d")), (0o2700, 0o2755));
    host.remove().unwrap();
    assert_eq!(host.names("d/e"), [""; 0]);
    fs::remove_dir_all(host.path("d")).unwrap();
    host.remove().unwrap();
    assert!(!Path::new(&host.path("d")).exists());
}

#[test]
fn directory_replaced_by_a_link_is_not_left() {
    let host = Host::new();
    let outside = host.outside("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(host.path("d")).unwrap();
    let path = host.path("d/a");
    let location = host.roots.locate(&path).unwrap();
    let access = Access { mode: 0o600, uid: geteuid().as_raw(), gid: getegid().as_raw() };
    // Between a plan and its change.
    let entries = host.entries(&[("d/a", "1")]);
    let plan = host.plan(&entries).unwrap();
    // Between any two steps of a change.
    let directory = Directory::find(&location).unwrap().unwrap();
    let staged = directory.stage(location, b"1", &access).unwrap();
    fs::rename(host.path("d"), host.path("moved")).unwrap();
    symlink(&outside, host.path("d")).unwrap();
    assert!(matches!(plan.carry_out(), Err(FilesError::Link { .. })));
    staged.publish(false).unwrap();
    assert_eq!(names(&outside), [""; 0]);
    assert_eq!(host.names("moved"), ["a"]);
    fs::write(format!("{outside}/a"), "1").unwrap();
    directory.remove(&location).unwrap();
    assert_eq!((names(&outside), host.names("moved")), (vec!["a".to_owned()], vec![]));
}

/// With musl there is no `renameat2`, which exchanges the two names.
#[cfg(target_env = "gnu")]
#[test]
fn racing_links_do_not_lead_outside() {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

    /// By then both outcomes have been seen, however busy the machine is.
    const ROUNDS_MAX: usize = 100_000;
    let mut host = Host::new();
    let outside = host.outside("outside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(host.path("d")).unwrap();
    symlink(&outside, host.path("link")).unwrap();
    let (directory, link) = (host.path("d"), host.path("link"));
    let done = AtomicBool::new(false);
    let (mut placed, mut refused, mut failed) = (0, 0, None);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let exchange = RenameFlags::RENAME_EXCHANGE;
                renameat2(AT_FDCWD, directory.as_str(), AT_FDCWD, link.as_str(), exchange).unwrap();
            }
        });
        for round in 0..ROUNDS_MAX {
            match host.place(&[("d/a", &round.to_string())]) {
                Ok(_) => placed += 1,
                Err(FilesError::Link { .. }) => refused += 1,
                Err(error) => failed = Some(error),
            }
            if failed.is_some() || round >= 300 && placed > 0 && refused > 0 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(&outside), [""; 0]);
    assert!(failed.is_none(), "{failed:?}");
    assert!(placed > 0 && refused > 0, "{placed} placed, {refused} refused");
}

#[test]
fn owned_files_are_read_back() {
    let file = owned("/srv/a", ["00", "ff"]);
    let text = serde_json::to_string(&file).unwrap();
    assert_eq!(text, r#"{"path":"/srv/a","digests":["00","ff"]}"#);
    assert_eq!(serde_json::from_str::<OwnedFile>(&text).unwrap(), file);
}
