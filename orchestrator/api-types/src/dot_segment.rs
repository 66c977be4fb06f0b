//! The names `.` and `..` as segments of a path. Clients and proxies remove such segments, also written as `%2E`, so they are
//! written after a character that no name has.

use std::borrow::Cow;

/// The character before the dots.
const MARK: char = '\u{7f}';

/// `name` as a segment of a path, before it is percent-encoded.
pub fn segment(name: &str) -> Cow<'_, str> {
    match name {
        "." | ".." => format!("{MARK}{name}").into(),
        _ => name.into(),
    }
}

/// The percent-encoded `path` with segments of [`segment`] written as the names that they stand for; `None` if there are none.
pub fn restored(path: &str) -> Option<String> {
    let name = |segment: &str| match segment {
        "%7F." | "%7f." => Some("%2E"),
        "%7F.." | "%7f.." => Some("%2E%2E"),
        _ => None,
    };
    path.split('/').any(|segment| name(segment).is_some()).then(|| {
        let segments: Vec<&str> = path.split('/').map(|segment| name(segment).unwrap_or(segment)).collect();
        segments.join("/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_written_and_restored() {
        for (name, written, path) in [
            (".", "\u{7f}.", Some("/a/%2E/b")),
            ("..", "\u{7f}..", Some("/a/%2E%2E/b")),
            ("...", "...", None),
            ("%2E", "%2E", None),
            ("a.", "a.", None),
        ] {
            assert_eq!(segment(name), written);
            let encoded = written.replace('%', "%25").replace('\u{7f}', "%7F");
            assert_eq!(restored(&format!("/a/{encoded}/b")).as_deref(), path);
        }
    }
}
