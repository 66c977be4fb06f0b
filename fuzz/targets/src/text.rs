//! The parts of some bytes, and of which form bytes and texts are.

/// The parts of `data` between `separator`s, `N` of them; what is not there is empty.
pub(crate) fn split<const N: usize>(data: &[u8], separator: u8) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |byte| *byte == separator);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Whether `data` is a JSON object in UTF-8: a list could be taken for one whose fields stand in order.
pub(crate) fn is_object(data: &[u8]) -> bool {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    str::from_utf8(data).is_ok_and(|text| text.trim_start().starts_with('{') && is_json(text))
}

/// Whether `text` is one line without control characters: it goes into logs and answers.
pub(crate) fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
