//! Errors, told in one line.

use std::error::Error;

/// `error` and what it stems from, in one line. A cause that is told already is not repeated: many errors of libraries
/// tell their source themselves.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        source = cause.source();
    }
    text
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
    fn every_cause_is_told_once() {
        for (texts, expected) in [
            (&["no lease"][..], "no lease"),
            (&["no lease", "timed out", "reset by peer"], "no lease: timed out: reset by peer"),
            (&["no lease: timed out", "timed out", "reset"], "no lease: timed out: reset"),
        ] {
            assert_eq!(with_causes(&layers(texts)), expected);
        }
    }
}
