//! Limits how often the same line is logged.

use std::time::{Duration, Instant};

/// Minimum time between two identical lines.
const SAME_EVERY: Duration = Duration::from_mins(10);
/// Most different lines in that time: each attempt may fail with another text.
const TEXTS_MAX: usize = 16;

/// The lines that were logged in the last 10 minutes.
#[derive(Debug, Default)]
pub struct LogThrottle {
    logged: Vec<(String, Instant)>,
}

impl LogThrottle {
    /// Whether to log `text` now: at first, and then every 10 minutes. If so, it counts as logged at `now`.
    pub fn is_due(&mut self, text: &str, now: Instant) -> bool {
        self.logged.retain(|(_, at)| now.saturating_duration_since(*at) < SAME_EVERY);
        if self.logged.len() >= TEXTS_MAX || self.logged.iter().any(|(logged, _)| logged == text) {
            return false;
        }
        self.logged.push((text.to_owned(), now));
        true
    }

    /// Whether no line counts as logged.
    pub fn is_empty(&self) -> bool {
        self.logged.is_empty()
    }

    /// Forgets what was logged, so that every text is due immediately.
    pub fn reset(&mut self) {
        self.logged.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_are_limited() {
        let start = Instant::now();
        let mut throttle = LogThrottle::default();
        let mut is_due = |text: &str, secs| throttle.is_due(text, start + Duration::from_secs(secs));
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
        // A different text each time.
        assert_eq!((603..1200).filter(|secs| is_due(&secs.to_string(), *secs)).count(), TEXTS_MAX - 2);
        throttle.reset();
        assert!(throttle.is_due("refused", start + Duration::from_mins(20)));
    }
}
