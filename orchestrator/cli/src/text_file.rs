//! Files of operators, which are text.

/// The text in `bytes`; without the mark with which some editors begin UTF-8.
///
/// # Errors
/// It is no UTF-8; in one line, what it is instead.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, &'static str> {
    let is_utf_16 = match bytes.as_slice() {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => true,
        // Without a mark: characters of ASCII have a zero beside them.
        [first, second, ..] => (*first == 0) != (*second == 0),
        _ => false,
    };
    if is_utf_16 {
        return Err("it is UTF-16: save it as UTF-8");
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8")?;
    Ok(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_called_so() {
        let utf_16 =
            |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        for bytes in [
            utf_16("\u{feff}a: 1", u16::to_le_bytes),
            utf_16("\u{feff}a: 1", u16::to_be_bytes),
            utf_16("a: 1", u16::to_le_bytes),
            utf_16("a: 1", u16::to_be_bytes),
        ] {
            assert_eq!(text(bytes), Err("it is UTF-16: save it as UTF-8"));
        }
        assert_eq!(text(vec![0xFF, 0x41]), Err("it is not text in UTF-8"));
        assert_eq!(text("\u{feff}ä: 1".into()).as_deref(), Ok("ä: 1"));
        assert_eq!(text(Vec::new()).as_deref(), Ok(""));
        assert_eq!(text(b"a".to_vec()).as_deref(), Ok("a"));
    }
}
