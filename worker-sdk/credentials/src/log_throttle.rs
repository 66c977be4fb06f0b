//! What would be said again and again, said seldom.

use std::time::{Duration, Instant};

/// Time between two lines of the log that say the same.
const SAME_EVERY: Duration = Duration::from_mins(10);
/// How many different lines there may be in that time: each attempt may fail in words of its own.
const TEXTS_MAX: usize = 16;

/// What has been said of late.
#[derive(Debug, Default)]
pub struct LogThrottle {
    said: Vec<(String, Instant)>,
}

impl LogThrottle {
    /// Whether `text` is to be said at `now`, which then counts as said: once, and then each 10 minutes.
    pub fn is_due(&mut self, text: &str, now: Instant) -> bool {
        self.said.retain(|(_, at)| now.saturating_duration_since(*at) < SAME_EVERY);
        if self.said.len() >= TEXTS_MAX || self.said.iter().any(|(said, _)| said == text) {
            return false;
        }
        self.said.push((text.to_owned(), now));
        true
    }

    /// Whether anything has been said of late.
    pub fn is_silent(&self) -> bool {
        self.said.is_empty()
    }

    /// Has everything said at once when it comes again.
    pub fn forget(&mut self) {
        self.said.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_said_once_and_then_seldom() {
        let start = Instant::now();
        let mut paced = LogThrottle::default();
        let mut is_due = |text: &str, secs| paced.is_due(text, start + Duration::from_secs(secs));
        assert!(is_due("refused", 0));
        assert!(!is_due("refused", 1));
        // Two servers that fail in different ways.
        assert!(is_due("not found", 2));
        for secs in 3..600 {
            assert!(!is_due("refused", secs) && !is_due("not found", secs), "{secs}");
        }
        assert!(is_due("refused", 600));
        assert!(!is_due("not found", 601));
        assert!(is_due("not found", 602));
        // Words that are others each time.
        assert_eq!((603..1200).filter(|secs| is_due(&secs.to_string(), *secs)).count(), TEXTS_MAX - 2);
        paced.forget();
        assert!(paced.is_due("refused", start + Duration::from_mins(20)));
    }
}
