//! What a command has printed on its host, as operators see it: its last lines, without anything that could affect a
//! terminal. Both sides make it safe, because a worker in another language may send anything.

use std::collections::VecDeque;
use std::fmt;

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

use crate::limits::{
    OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX, OUTPUT_MESSAGE_BYTES_MAX, bounded,
};
use crate::text::sanitized_character;
use crate::{CommandId, HostName, header};

/// The output of one command, as sent: the text is the payload, and headers name the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub command: CommandId,
    /// What it has printed.
    pub tail: OutputTail,
}

/// The message is not output of this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// It has no valid command id.
    #[error("the header {} names no command", header::COMMAND_ID)]
    NoCommand,
    /// Its command is of another host.
    #[error("it names a command of {0}")]
    OtherHost(HostName),
    #[error("{bytes} bytes are more than {OUTPUT_MESSAGE_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl Output {
    /// Reads output from a message of `host` with the header [`header::COMMAND_ID`]. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// It names no command of this host, or is too large.
    pub fn parse(host: &HostName, command_id: Option<&str>, payload: &[u8]) -> Result<Self, OutputError> {
        let command: CommandId = command_id.and_then(|id| id.parse().ok()).ok_or(OutputError::NoCommand)?;
        if command.host != *host {
            return Err(OutputError::OtherHost(command.host));
        }
        if payload.len() > OUTPUT_MESSAGE_BYTES_MAX {
            return Err(OutputError::TooLarge { bytes: payload.len() });
        }
        let mut tail = OutputTail::default();
        tail.push(&String::from_utf8_lossy(payload));
        Ok(Self { command, tail })
    }

    /// The headers of the message.
    pub fn headers(command: &CommandId) -> [(&'static str, String); 2] {
        [(header::RUN, command.run.to_string()), (header::COMMAND_ID, command.to_string())]
    }
}

/// The last lines of an output: [`OUTPUT_LINES_MAX`] lines of [`OUTPUT_LINE_BYTES_MAX`] bytes at most, and
/// [`OUTPUT_BYTES_MAX`] bytes in all. Its text is its `Display`, a line break after each line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputTail {
    lines: VecDeque<String>,
    /// The length of the text in bytes, with line breaks.
    bytes: usize,
}

impl OutputTail {
    /// Adds the lines of `text`, and drops the oldest lines beyond the limits.
    pub fn push(&mut self, text: &str) {
        for line in text.lines() {
            let line = sanitized(line);
            self.bytes += line.len() + 1;
            self.lines.push_back(line);
            while self.lines.len() > OUTPUT_LINES_MAX || self.bytes > OUTPUT_BYTES_MAX {
                let dropped = self.lines.pop_front().map_or(0, |line| line.len() + 1);
                self.bytes -= dropped;
            }
        }
    }

    /// Whether there is nothing to show.
    pub fn is_blank(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }
}

impl fmt::Display for OutputTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// `line` as a terminal would leave it, without colours: escape sequences are left out, a carriage return begins the
/// line anew, and other control characters and bidi characters are replaced.
fn sanitized(line: &str) -> String {
    let line = line.trim_end();
    let line = bounded(line.rsplit('\r').next().unwrap_or(line), OUTPUT_LINE_BYTES_MAX);
    let mut parser = Parser::<DefaultCharAccumulator>::new();
    let mut text = Text::default();
    for byte in line.bytes() {
        parser.advance(&mut text, byte);
    }
    // A replaced character may be longer.
    bounded(text.0.trim_end(), OUTPUT_LINE_BYTES_MAX)
}

/// The characters outside of escape sequences.
#[derive(Default)]
struct Text(String);

impl Perform for Text {
    fn print(&mut self, character: char) {
        self.0.push(sanitized_character(character));
    }

    fn execute(&mut self, byte: u8) {
        let control = char::from(byte);
        self.0.push(if control == '\t' { control } else { sanitized_character(control) });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Action, RunId};

    fn tail(text: &str) -> OutputTail {
        let mut tail = OutputTail::default();
        tail.push(text);
        tail
    }

    fn command(host: &str) -> CommandId {
        let (run, host) = (RunId::new("r1").unwrap(), HostName::new(host).unwrap());
        CommandId { run, host, action: Action::Upgrade, attempt: 2 }
    }

    #[test]
    fn output_cannot_affect_a_terminal() {
        for (text, shown) in [
            ("plain\n", "plain\n"),
            ("no line break", "no line break\n"),
            ("a\n\nb  \r\n", "a\n\nb\n"),
            ("\u{1b}[31mred\u{1b}[0m and \u{1b}[1;4mbold", "red and bold\n"),
            ("\u{1b}]0;title\u{7}after", "after\n"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link\n"),
            ("\u{1b}]0;never ended\nnext", "\nnext\n"),
            ("\u{1b}[2J\u{1b}[Hhome\u{1b}", "home\n"),
            ("10%\r50%\r100%\r", "100%\n"),
            ("a\tb\u{7}c\u{0}", "a\tb\u{fffd}c\u{fffd}\n"),
            ("a\u{9b}31mb\u{202e}c", "a\u{fffd}31mb\u{fffd}c\n"),
            ("grün 日本", "grün 日本\n"),
        ] {
            assert_eq!(tail(text).to_string(), shown, "{text:?}");
        }
        assert!(tail("\n \n\u{1b}[0m").is_blank());
        assert!(!tail("a").is_blank());
    }

    #[test]
    fn last_lines_are_kept() {
        let numbers = |first: u32| (first..=1_000).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(tail(&numbers(1).join("\n")).to_string().lines().collect::<Vec<_>>(), numbers(801));
        let long = tail(&format!("{}\n", "x".repeat(OUTPUT_LINE_BYTES_MAX * 2)).repeat(100));
        let text = long.to_string();
        assert_eq!((text.len(), text.lines().count()), (15 * (OUTPUT_LINE_BYTES_MAX + 1), 15));
    }

    #[test]
    fn output_names_a_command_of_its_host() {
        let host = HostName::new("h.1").unwrap();
        let id = command("h.1");
        let [(_, run), (_, header)] = Output::headers(&id);
        assert_eq!((run.as_str(), header.as_str()), ("r1", "r1/h%2E1/upgrade/2"));
        let read = Output::parse(&host, Some(&header), b"a \xff\n").unwrap();
        assert_eq!((read.command, read.tail), (id, tail("a \u{fffd}")));
        assert_eq!(Output::parse(&host, None, b""), Err(OutputError::NoCommand));
        assert_eq!(Output::parse(&host, Some("r1"), b""), Err(OutputError::NoCommand));
        let other = command("h2");
        let expected = Err(OutputError::OtherHost(other.host.clone()));
        assert_eq!(Output::parse(&host, Some(&other.to_string()), b""), expected);
        let large = vec![b' '; OUTPUT_MESSAGE_BYTES_MAX + 1];
        assert!(matches!(Output::parse(&host, Some(&header), &large), Err(OutputError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn any_output_is_bounded_and_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            let text = tail(&String::from_utf8_lossy(&bytes).repeat(40)).to_string();
            prop_assert!(text.len() <= OUTPUT_BYTES_MAX && text.lines().count() <= OUTPUT_LINES_MAX);
            prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(tail(&text).to_string(), text);
        }
    }
}
