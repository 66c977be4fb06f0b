//! A token in a file, which others replace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderValue;

/// Why a file has no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// There is no token in it.
    #[error("it is empty")]
    Empty,
    /// What is in it cannot be sent.
    #[error("it has more than one line, or characters that no token has")]
    Unusable,
}

/// A token in a file. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct TokenFile {
    file: PathBuf,
    /// The token that was read last, as a header.
    last: Arc<Mutex<HeaderValue>>,
}

impl TokenFile {
    /// The token in `file`.
    ///
    /// # Errors
    /// There is none now.
    pub(super) fn open(file: PathBuf) -> Result<Self, TokenError> {
        let last = Arc::new(Mutex::new(read(&file)?));
        Ok(Self { file, last })
    }

    /// The header `Authorization` with the token as it is now. While there is none, because the file is being replaced or was taken
    /// away, the last one is used.
    pub(super) fn header(&self) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(now) = read(&self.file) {
            *last = now;
        }
        last.clone()
    }
}

fn read(file: &Path) -> Result<HeaderValue, TokenError> {
    let text = std::fs::read_to_string(file)?;
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenError::Empty);
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::Unusable);
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| TokenError::Unusable)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;

    fn write(file: &NamedTempFile, text: &str) {
        std::fs::write(file.path(), text).unwrap();
    }

    #[test]
    fn token_is_what_the_file_has_without_spaces_around() {
        let file = NamedTempFile::new().unwrap();
        for text in ["a.b-c", "a.b-c\n", "a.b-c\r\n", " a.b-c \n\n"] {
            write(&file, text);
            let header = TokenFile::open(file.path().to_owned()).unwrap().header();
            assert_eq!(header, "Bearer a.b-c", "{text:?}");
            assert!(header.is_sensitive());
        }
        write(&file, "a\nb");
        assert!(matches!(TokenFile::open(file.path().to_owned()), Err(TokenError::Unusable)));
        write(&file, "\n");
        assert!(matches!(TokenFile::open(file.path().to_owned()), Err(TokenError::Empty)));
    }

    #[test]
    fn last_token_is_used_while_there_is_none() {
        let file = NamedTempFile::new().unwrap();
        write(&file, "one");
        let token = TokenFile::open(file.path().to_owned()).unwrap();
        write(&file, "");
        assert_eq!(token.header(), "Bearer one");
        write(&file, "two");
        assert_eq!(token.clone().header(), "Bearer two");
        drop(file);
        assert_eq!(token.header(), "Bearer two");
    }
}
