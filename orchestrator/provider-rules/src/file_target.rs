//! Which files configuration may become, and whose they may be.

/// The longest path, in bytes: as long as Linux takes.
pub const FILE_PATH_BYTES_MAX: usize = 4095;
/// The longest name of a user or group, in bytes.
pub const OWNER_BYTES_MAX: usize = 255;

/// Whether `path` is an absolute path to a file without `.`, `..`, empty segments and control characters, of at most
/// [`FILE_PATH_BYTES_MAX`] bytes.
pub fn is_file_path(path: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    let segments = path.strip_prefix('/');
    path.len() <= FILE_PATH_BYTES_MAX
        && !path.chars().any(char::is_control)
        && segments.is_some_and(|segments| segments.split('/').all(is_segment))
}

/// Whether `owner` can name a user or a group: 1 to [`OWNER_BYTES_MAX`] bytes without `:`, white space and control characters.
pub fn is_owner(owner: &str) -> bool {
    let is_out = |c: char| c == ':' || c.is_whitespace() || c.is_control();
    (1..=OWNER_BYTES_MAX).contains(&owner.len()) && !owner.chars().any(is_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_plain() {
        let (longest, longer) = (format!("/{}", "x".repeat(4094)), format!("/{}", "x".repeat(4095)));
        for path in ["/a", "/etc/a b", "/etc/.hidden", "/etc/...", "/ä", &longest] {
            assert!(is_file_path(path), "{path}");
        }
        for path in ["", "/", "a", "etc/a", "/etc/", "//a", "/a//b", "/./a", "/a/..", "/a\n", &longer] {
            assert!(!is_file_path(path), "{path}");
        }
    }

    #[test]
    fn owners_are_names() {
        let (longest, longer) = ("x".repeat(255), "x".repeat(256));
        for owner in ["root", "systemd-network", "0", "ä", &longest] {
            assert!(is_owner(owner), "{owner}");
        }
        for owner in ["", "a:b", "a b", "a\t", "\u{7f}", &longer] {
            assert!(!is_owner(owner), "{owner}");
        }
    }
}
