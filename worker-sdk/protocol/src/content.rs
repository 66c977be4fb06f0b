//! What is sealed in an item: one line of JSON that says what the bytes after it are, and the bytes.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::json::parse_bounded;
use crate::limits::{CONTENT_HEADER_BYTES_MAX, ITEM_BYTES_MAX};

/// The content of an item: `{"files":[{"path":"/etc/app.conf","mode":416,"user":"root","group":"app","bytes":7}]}`, a line feed, and the
/// bytes, which are the files one after the other. Without files the bytes are for the worker's handler alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub files: Vec<FileEntry>,
    pub bytes: Vec<u8>,
}

/// A file that a host is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its absolute path.
    pub path: String,
    /// Its permission bits, 0 to 0o777: neither setuid, setgid nor sticky.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// The name of its owner; whoever the worker runs as if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of its group; that of the worker if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How many of the bytes it has.
    pub bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(default)]
    files: Vec<FileEntry>,
}

impl Content {
    /// Reads what [`Self::to_bytes`] writes.
    ///
    /// # Errors
    /// The first line is not such JSON or has more than [`CONTENT_HEADER_BYTES_MAX`] bytes, there are more than [`ITEM_BYTES_MAX`] bytes
    /// after it, or they are not those of the files.
    pub fn parse(opened: &[u8]) -> Result<Self, ParseError> {
        let end = opened.iter().take(CONTENT_HEADER_BYTES_MAX + 1).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| ParseError::Value("its first line does not end".to_owned()))?;
        let Header { files } = parse_bounded(&opened[..end], CONTENT_HEADER_BYTES_MAX)?;
        let bytes = &opened[end + 1..];
        if bytes.len() > ITEM_BYTES_MAX {
            return Err(ParseError::TooLarge { limit: ITEM_BYTES_MAX });
        }
        let of_files = files.iter().try_fold(0_usize, |sum, file| sum.checked_add(file.bytes));
        if !files.is_empty() && of_files != Some(bytes.len()) {
            return Err(ParseError::Value("its files have other sizes than its bytes".to_owned()));
        }
        Ok(Self { files, bytes: bytes.to_vec() })
    }

    /// What is to be sealed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header { files: self.files.clone() };
        let mut content = serde_json::to_vec(&header).expect("texts and numbers have no fallible part");
        content.push(b'\n');
        content.extend_from_slice(&self.bytes);
        content
    }

    /// Each file with its bytes.
    pub fn each_file(&self) -> impl Iterator<Item = (&FileEntry, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.files.iter().map(move |file| {
            let (bytes, others) = rest.split_at(file.bytes);
            rest = others;
            (file, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, bytes: usize) -> FileEntry {
        FileEntry { path: path.to_owned(), mode: None, user: None, group: None, bytes }
    }

    #[test]
    fn contents_are_read_back() {
        let text = "{\"files\":[{\"path\":\"/etc/app.conf\",\"mode\":416,\"user\":\"root\",\"group\":\"app\",\"bytes\":7}]}\nlevel=3";
        let content = Content::parse(text.as_bytes()).unwrap();
        assert_eq!(content.to_bytes(), text.as_bytes());
        let two = Content { files: vec![file("/a", 1), file("/b", 2)], bytes: b"123".to_vec() };
        let read = Content::parse(&two.to_bytes()).unwrap();
        let files: Vec<_> = read.each_file().map(|(file, bytes)| (file.path.as_str(), bytes)).collect();
        assert_eq!(files, [("/a", &b"1"[..]), ("/b", b"23")]);
        let opaque = Content { files: Vec::new(), bytes: b"a\nb".to_vec() };
        assert_eq!(Content::parse(&opaque.to_bytes()).unwrap(), opaque);
    }

    #[test]
    fn contents_that_are_none_are_refused() {
        let long = format!("{{{}}}\n", " ".repeat(CONTENT_HEADER_BYTES_MAX));
        let large = [b"{}\n".to_vec(), vec![0; ITEM_BYTES_MAX + 1]].concat();
        for bytes in [
            &b""[..],
            b"{}",
            b"[]\n",
            b"{\"files\":[{\"path\":\"/a\",\"bytes\":2}]}\n1",
            b"{\"files\":[{\"path\":\"/a\",\"bytes\":1}]}\n12",
            b"{\"files\":[{\"path\":\"/a\",\"bytes\":18446744073709551615},{\"path\":\"/a\",\"bytes\":2}]}\n1",
            long.as_bytes(),
            &large,
        ] {
            assert!(Content::parse(bytes).is_err(), "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
        }
        assert!(Content::parse(&large[..large.len() - 1]).is_ok());
    }
}
