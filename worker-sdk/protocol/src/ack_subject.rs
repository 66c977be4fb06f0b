//! The subjects through which a delivered message is acknowledged.
//!
//! nats-server has two forms, and accepts acknowledgements in both, whichever it gives with a message:
//!
//! - `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<time>.<pending>`
//! - from 2.14 on, with the feature flag `js_ack_fc_v2`, which is to become its default, with the JetStream domain (`_`
//!   without one) and a hash of the account before the stream, and perhaps more tokens at the end.

const PREFIX: &str = "$JS.ACK.";
/// The tokens of the short form after [`PREFIX`].
const SHORT: usize = 7;
/// The tokens of the long form before the stream.
const LONG_EXTRA: usize = 2;

/// A parsed subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckSubject<'a> {
    /// From the stream on.
    tokens: [&'a str; SHORT],
    is_long: bool,
}

impl<'a> AckSubject<'a> {
    /// Parses a subject; `None` if it has neither form.
    pub fn parse(subject: &'a str) -> Option<Self> {
        let tokens: Vec<_> = subject.strip_prefix(PREFIX)?.split('.').collect();
        let is_long = tokens.len() >= SHORT + LONG_EXTRA;
        let tokens = match tokens.len() {
            SHORT => &tokens[..],
            _ if is_long => &tokens[LONG_EXTRA..LONG_EXTRA + SHORT],
            _ => return None,
        };
        Some(Self { tokens: tokens.try_into().ok()?, is_long })
    }

    /// The stream of the message.
    pub const fn stream(&self) -> &'a str {
        self.tokens[0]
    }

    /// The message's sequence in its stream; `None` if it is not a number.
    pub fn stream_sequence(&self) -> Option<u64> {
        self.tokens[3].parse().ok()
    }

    /// Whether it has the long form.
    pub const fn is_long(&self) -> bool {
        self.is_long
    }

    /// The subject in the short form.
    pub fn short(&self) -> String {
        format!("{PREFIX}{}", self.tokens.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed() {
        const SHORT: &str = "$JS.ACK.os-upgrade:control.worker-h1.1.7.3.1790000000.0";
        for (subject, is_long) in [
            (SHORT, false),
            ("$JS.ACK._.bgPM0v7Z.os-upgrade:control.worker-h1.1.7.3.1790000000.0", true),
            ("$JS.ACK.hub.bgPM0v7Z.os-upgrade:control.worker-h1.1.7.3.1790000000.0.random.more", true),
        ] {
            let ack = AckSubject::parse(subject).unwrap();
            assert_eq!((ack.stream(), ack.stream_sequence()), ("os-upgrade:control", Some(7)), "{subject}");
            assert_eq!((ack.is_long(), ack.short()), (is_long, SHORT.to_owned()), "{subject}");
        }
        let unnumbered = AckSubject::parse("$JS.ACK.s.c.1.x.3.4.5").unwrap();
        assert_eq!(unnumbered.stream_sequence(), None);
        for other in ["", "$JS.ACK.", "$JS.ACK.s.c.1.7.3.4", "$JS.ACK._.hash.s.c.1.7.3.4", "_INBOX.a.b"] {
            assert_eq!(AckSubject::parse(other), None, "{other}");
        }
    }
}
