//! Page tokens, in fleet's own format: URL-safe base64 of two little-endian `u16`, the size of a page and its number.

use std::fmt;
use std::num::NonZeroU16;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;

/// Entities on a page. Tokens name it, and no other size is accepted.
pub const PAGE_SIZE: u16 = 100;

/// Which page of a list is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageToken {
    /// From 1.
    page: NonZeroU16,
}

/// Why the `nextPageToken` of a query names no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageTokenError {
    /// There are several.
    #[error("there must be one at most")]
    Repeated,
    /// It has no value.
    #[error("it is empty")]
    Empty,
    /// It is not base64 of four bytes.
    #[error("it is not a token that this API has given")]
    Malformed,
    /// It is for pages of another size.
    #[error("it is for pages of {size}, and pages here have {PAGE_SIZE}")]
    OtherSize {
        /// The size that it names.
        size: u16,
    },
    /// Pages are counted from 1.
    #[error("it is for page 0, and the first page is 1")]
    PageZero,
}

impl PageToken {
    /// The first page.
    pub const FIRST: Self = Self { page: NonZeroU16::MIN };

    /// Reads all values of `nextPageToken` in a query; without any it is the first page.
    ///
    /// # Errors
    /// There are several, or the value is not one that this API gives.
    pub fn read<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, PageTokenError> {
        let mut values = values.into_iter();
        let Some(value) = values.next() else { return Ok(Self::FIRST) };
        if values.next().is_some() {
            return Err(PageTokenError::Repeated);
        }
        if value.is_empty() {
            return Err(PageTokenError::Empty);
        }
        let bytes = URL_SAFE.decode(value).map_err(|_| PageTokenError::Malformed)?;
        let [size_low, size_high, page_low, page_high] =
            <[u8; 4]>::try_from(bytes).map_err(|_| PageTokenError::Malformed)?;
        let size = u16::from_le_bytes([size_low, size_high]);
        if size != PAGE_SIZE {
            return Err(PageTokenError::OtherSize { size });
        }
        let page = NonZeroU16::new(u16::from_le_bytes([page_low, page_high]));
        Ok(Self { page: page.ok_or(PageTokenError::PageZero)? })
    }

    /// The page after it; `None` if tokens cannot name it, which takes more than six million entities.
    pub fn next(self) -> Option<Self> {
        Some(Self { page: self.page.checked_add(1)? })
    }

    /// How many entities are on the pages before it.
    pub fn start(self) -> usize {
        (usize::from(self.page.get()) - 1) * usize::from(PAGE_SIZE)
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [size_low, size_high] = PAGE_SIZE.to_le_bytes();
        let [page_low, page_high] = self.page.get().to_le_bytes();
        f.write_str(&URL_SAFE.encode([size_low, size_high, page_low, page_high]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(page: u16) -> PageToken {
        PageToken { page: NonZeroU16::new(page).unwrap() }
    }

    #[test]
    fn tokens_have_the_format_of_fleet() {
        for (number, text) in [(1, "ZAABAA=="), (2, "ZAACAA=="), (256, "ZAAAAQ=="), (65_535, "ZAD__w==")] {
            assert_eq!(page(number).to_string(), text);
            assert_eq!(PageToken::read([text]), Ok(page(number)), "{text}");
        }
        assert_eq!(PageToken::read([]), Ok(PageToken::FIRST));
        assert_eq!(PageToken::FIRST.next(), Some(page(2)));
        assert_eq!(page(65_535).next(), None);
        assert_eq!([page(1), page(2), page(65_535)].map(PageToken::start), [0, 100, 6_553_400]);
    }

    #[test]
    fn other_tokens_are_refused() {
        for (text, error) in [
            ("", PageTokenError::Empty),
            ("8fefec2c", PageTokenError::Malformed),
            // Six bytes and three.
            ("ZAACAAAA", PageTokenError::Malformed),
            ("ZAAC", PageTokenError::Malformed),
            // Without padding, with blanks, in the other alphabet, and with bits that mean nothing.
            ("ZAACAA", PageTokenError::Malformed),
            ("ZAACAA==\n", PageTokenError::Malformed),
            (" ZAACAA==", PageTokenError::Malformed),
            ("ZAD//w==", PageTokenError::Malformed),
            ("ZAACAB==", PageTokenError::Malformed),
            ("%%%", PageTokenError::Malformed),
            ("ZQACAA==", PageTokenError::OtherSize { size: 101 }),
            ("AAACAA==", PageTokenError::OtherSize { size: 0 }),
            ("AGQAAg==", PageTokenError::OtherSize { size: 25_600 }),
            ("ZAAAAA==", PageTokenError::PageZero),
        ] {
            assert_eq!(PageToken::read([text]), Err(error), "{text}");
        }
        assert_eq!(PageToken::read(["ZAACAA==", "ZAACAA=="]), Err(PageTokenError::Repeated));
    }
}
