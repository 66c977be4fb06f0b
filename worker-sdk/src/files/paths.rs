//! Which paths files may have: those below the roots. Pure; what the file system has at them is looked at in `directory`.

use std::path::PathBuf;

use super::error::{FilesError, PathFault};

/// The longest path of a file or root in bytes: Linux's `PATH_MAX`.
const PATH_BYTES_MAX: usize = 4096;
/// How much of a path that is too long is in its error, in bytes.
const SHOWN_BYTES_MAX: usize = 80;
/// What the names of temporary files begin and end with, around 16 hexadecimal digits.
const TEMPORARY: (&str, &str) = (".os-upgrade.", ".tmp");

fn check(path: &str) -> Result<(), PathFault> {
    if path.len() > PATH_BYTES_MAX {
        return Err(PathFault::TooLong { max: PATH_BYTES_MAX });
    }
    if path.chars().any(char::is_control) {
        return Err(PathFault::Control);
    }
    let below = path.strip_prefix('/').ok_or(PathFault::Relative)?;
    if below.is_empty() {
        return Err(PathFault::WholeFileSystem);
    }
    if below.split('/').any(|component| matches!(component, "" | "." | "..")) {
        return Err(PathFault::Component);
    }
    Ok(())
}

/// `path` for an error: its beginning, if it is too long.
fn shown(path: &str) -> String {
    if path.len() <= PATH_BYTES_MAX {
        return path.to_owned();
    }
    format!("{}…", &path[..path.floor_char_boundary(SHOWN_BYTES_MAX)])
}

/// The directories below which files may be put. One may be in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Roots(Vec<String>);

impl Roots {
    /// # Errors
    /// A root is `/`, not absolute, or not normalised.
    pub(crate) fn new(roots: impl IntoIterator<Item = PathBuf>) -> Result<Self, FilesError> {
        let checked = roots.into_iter().map(|root| {
            let failed = |path: &str, fault| FilesError::Root { path: shown(path), fault };
            let root = root.into_os_string().into_string();
            let root = root.map_err(|root| failed(&root.to_string_lossy(), PathFault::NotUtf8))?;
            check(&root).map_err(|fault| failed(&root, fault))?;
            Ok(root)
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    /// The roots, for people.
    fn names(&self) -> String {
        if self.0.is_empty() { "there is none".to_owned() } else { self.0.join(", ") }
    }

    /// Where `path` is: below the longest root that it begins with. A root itself is not below a shorter one.
    pub(crate) fn locate<'a>(&'a self, path: &'a str) -> Result<Location<'a>, FilesError> {
        let failed = |fault| FilesError::Path { path: shown(path), fault };
        check(path).map_err(failed)?;
        let below = |root: &'a String| {
            let rest = path.strip_prefix(root.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((root.as_str(), rest))
        };
        let found = self.0.iter().filter_map(below).max_by_key(|(root, _)| root.len());
        let Some((root, rest)) = found.filter(|(_, rest)| !rest.is_empty()) else {
            return Err(FilesError::NotBelowRoot { path: path.to_owned(), roots: self.names() });
        };
        let (parents, name) = rest.rsplit_once('/').expect("it begins with a slash");
        if is_temporary(name) {
            return Err(failed(PathFault::Temporary));
        }
        Ok(Location { path, root, parents, name })
    }
}

/// The path of a file, checked and divided: `root`, `parents` and `/name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location<'a> {
    pub(crate) path: &'a str,
    pub(crate) root: &'a str,
    /// The directories between root and file, each after a slash.
    parents: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> Location<'a> {
    /// The path of the directory that the file is in.
    pub(crate) fn directory(&self) -> &'a str {
        &self.path[..self.root.len() + self.parents.len()]
    }

    /// The names of the directories between root and file.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &'a str> {
        components(self.parents)
    }

    /// The names of the directories between `/` and the root, and the root's own.
    pub(crate) fn root_components(&self) -> impl Iterator<Item = &'a str> {
        components(self.root)
    }
}

fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip(1)
}

/// The paths of the directories that `path` is in, but for `/`.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(index, _)| &path[..index])
}

/// The name of a temporary file.
pub(crate) fn temporary(random: u64) -> String {
    let (prefix, suffix) = TEMPORARY;
    format!("{prefix}{random:016x}{suffix}")
}

/// Whether [`temporary`] may have returned `name`.
pub(crate) fn is_temporary(name: &str) -> bool {
    let (prefix, suffix) = TEMPORARY;
    let random = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    random.is_some_and(|random| {
        random.len() == 16 && random.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(roots: &[&str]) -> Result<Roots, FilesError> {
        Roots::new(roots.iter().map(PathBuf::from))
    }

    /// What is wrong with a path that is refused for itself.
    fn fault(error: &FilesError) -> Option<PathFault> {
        if let FilesError::Root { fault, .. } | FilesError::Path { fault, .. } = error {
            Some(*fault)
        } else {
            None
        }
    }

    /// Paths that neither a file nor a root has, and why.
    fn refused() -> Vec<(String, PathFault)> {
        let table = [
            ("", PathFault::Relative),
            ("srv/a", PathFault::Relative),
            ("/", PathFault::WholeFileSystem),
            ("//", PathFault::Component),
            ("/srv/../etc/a", PathFault::Component),
            ("/srv/..", PathFault::Component),
            ("/srv/./a", PathFault::Component),
            ("/srv//a", PathFault::Component),
            ("/srv/a/", PathFault::Component),
            ("//srv/a", PathFault::Component),
            ("/srv/a\nb", PathFault::Control),
            ("/srv/a\0b", PathFault::Control),
            ("/srv/a\u{9b}b", PathFault::Control),
        ];
        let long = format!("/srv/{}", "a/".repeat(PATH_BYTES_MAX));
        let table = table.map(|(path, fault)| (path.to_owned(), fault));
        table.into_iter().chain([(long, PathFault::TooLong { max: PATH_BYTES_MAX })]).collect()
    }

    #[test]
    fn paths_that_leave_or_hide_are_refused() {
        let known = roots(&["/srv"]).unwrap();
        for (path, expected) in refused() {
            let error = known.locate(&path).unwrap_err();
            assert_eq!(fault(&error), Some(expected), "{path}");
            assert!(error.to_string().len() < 200, "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error}");
            assert_eq!(fault(&roots(&["/srv", &path]).unwrap_err()), Some(expected), "{path}");
        }
        let temporary = known.locate("/srv/.os-upgrade.0123456789abcdef.tmp").unwrap_err();
        assert_eq!(fault(&temporary), Some(PathFault::Temporary));
        for other in
            ["/srv/.os-upgrade.0123456789abcdef.tmp2", "/srv/.os-upgrade.x.tmp", "/srv/...", "/srv/..a"]
        {
            assert_eq!(known.locate(other).unwrap().path, other);
        }
    }

    #[test]
    fn files_are_below_the_longest_root() {
        let roots = roots(&["/srv", "/srv/app/conf", "/etc/app"]).unwrap();
        for (path, expected) in [
            ("/srv/a", Some(("/srv", "", "a"))),
            ("/srv/app/a", Some(("/srv", "/app", "a"))),
            ("/srv/app/conf/a", Some(("/srv/app/conf", "", "a"))),
            ("/srv/app/conf/d/e/a", Some(("/srv/app/conf", "/d/e", "a"))),
            ("/srv/app/config", Some(("/srv", "/app", "config"))),
            ("/srv/app/conf", None),
            ("/srv", None),
            ("/srvice/a", None),
            ("/etc/app2", None),
            ("/etc/a", None),
        ] {
            let found = roots.locate(path);
            let parts = found.as_ref().ok().map(|found| (found.root, found.parents, found.name));
            assert_eq!(parts, expected, "{path}");
        }
        assert_eq!(
            roots.locate("/etc/a").unwrap_err().to_string(),
            "/etc/a is not below a root for files (/srv, /srv/app/conf, /etc/app): choose another path, or configure a \
             root for it"
        );
        let deep = roots.locate("/srv/app/conf/d/e/a").unwrap();
        assert_eq!(deep.directory(), "/srv/app/conf/d/e");
        assert_eq!(deep.parents().collect::<Vec<_>>(), ["d", "e"]);
        assert_eq!(deep.root_components().collect::<Vec<_>>(), ["srv", "app", "conf"]);
        assert_eq!(ancestors("/srv/app/a").collect::<Vec<_>>(), ["/srv", "/srv/app"]);
        assert_eq!(roots.locate("/srv/a").unwrap().parents().next(), None);
    }

    #[test]
    fn without_roots_no_file_is_put() {
        assert!(matches!(roots(&[]).unwrap().locate("/srv/a"), Err(FilesError::NotBelowRoot { .. })));
    }
}
