//! Helpers to split and classify bytes and texts.

/// The first `N` parts of `data`, separated by `separator`; missing parts are empty, and the last one is the rest.
pub(crate) fn split<const N: usize>(data: &[u8], separator: u8) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |byte| *byte == separator);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Whether `data` is a JSON object in UTF-8. Serde would also accept a list with the fields in their order.
pub(crate) fn is_object(data: &[u8]) -> bool {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    str::from_utf8(data).is_ok_and(|text| text.trim_start().starts_with('{') && is_json(text))
}

/// Whether `text` is one line without control characters, as required for logs and answers.
pub(crate) fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
