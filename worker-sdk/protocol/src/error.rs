//! Errors formatted in one line.

use std::error::Error;

use crate::tls_error::plain;

/// `error` and its sources, in one line, and a failure of TLS in plain words. A source whose text is already included is not
/// repeated: the errors of many libraries include their source.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    plain(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let source = (texts.len() > 1).then(|| Box::new(layers(&texts[1..])));
        Layer { text: texts[0], source }
    }

    #[test]
    fn causes_are_not_repeated() {
        for (texts, expected) in [
            (&["no lease"][..], "no lease"),
            (&["no lease", "timed out", "reset by peer"], "no lease: timed out: reset by peer"),
            (&["no lease: timed out", "timed out", "reset"], "no lease: timed out: reset"),
        ] {
            assert_eq!(with_causes(&layers(texts)), expected);
        }
    }
}
