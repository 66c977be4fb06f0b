//! The media type of requests with a body.

use crate::route::JSON;

/// Why the `Content-Type` of a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MediaTypeError {
    /// There is none.
    #[error("the Content-Type must be {JSON}, and there is none")]
    Missing,
    /// There are several.
    #[error("the Content-Type must be given once")]
    Repeated,
    /// It is another one.
    #[error("the Content-Type must be {JSON}")]
    Other,
}

/// Checks all values of `Content-Type`: there must be one, JSON. Its parameters, such as `charset=utf-8`, are ignored.
///
/// # Errors
/// There is none, there are several, or it is another type.
pub fn check<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<(), MediaTypeError> {
    let mut values = values.into_iter();
    let value = values.next().ok_or(MediaTypeError::Missing)?;
    if values.next().is_some() {
        return Err(MediaTypeError::Repeated);
    }
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(JSON.as_bytes()) { Ok(()) } else { Err(MediaTypeError::Other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_accepted() {
        for (values, expected) in [
            (vec!["application/json"], Ok(())),
            (vec!["application/json; charset=utf-8"], Ok(())),
            (vec![" Application/JSON ;x"], Ok(())),
            (vec![], Err(MediaTypeError::Missing)),
            (vec![""], Err(MediaTypeError::Other)),
            (vec!["text/plain"], Err(MediaTypeError::Other)),
            (vec!["application/json5"], Err(MediaTypeError::Other)),
            (vec!["application/json, application/json"], Err(MediaTypeError::Other)),
            (vec!["application/json", "application/json"], Err(MediaTypeError::Repeated)),
        ] {
            assert_eq!(check(values.iter().map(|value| value.as_bytes())), expected, "{values:?}");
        }
    }
}
