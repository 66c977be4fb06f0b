//! The largest message of each kind that either side reads, in bytes unless it says otherwise.

/// What NATS must take as one message, with its headers; the default of nats-server.
pub const NATS_MESSAGE_BYTES: usize = 1024 * 1024;
/// A command; `prepare` may name many hosts.
pub const COMMAND_BYTES_MAX: usize = 1024 * 1024;
/// A reply. Workers truncate its message to [`MESSAGE_BYTES_MAX`], so no real reply comes near this limit.
pub const REPLY_BYTES_MAX: usize = 64 * 1024;
/// A worker's announcement.
pub const ANNOUNCEMENT_BYTES_MAX: usize = 16 * 1024;
/// A map of package versions.
pub const VERSIONS_BYTES_MAX: usize = 256 * 1024;
/// A manifest.
pub const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// The items of a manifest, as a number.
pub const ITEMS_MAX: usize = CONFIGURATIONS_MAX + UNITS_MAX;
/// The configurations among them.
pub const CONFIGURATIONS_MAX: usize = 256;
/// The units among them.
pub const UNITS_MAX: usize = 256;
/// The contents of a unit.
pub const UNIT_BYTES_MAX: usize = 64 * 1024;
/// An item of kind `unit`: JSON may need six bytes for a byte of the contents.
pub const UNIT_ITEM_BYTES_MAX: usize = 6 * UNIT_BYTES_MAX + 4 * 1024;
/// The content of an item, without the line that says what it is.
pub const ITEM_BYTES_MAX: usize = 512 * 1024;
/// That line.
pub const CONTENT_HEADER_BYTES_MAX: usize = 32 * 1024;
/// A message with a sealed item, with its headers.
pub const ITEM_MESSAGE_BYTES_MAX: usize = ITEM_BYTES_MAX + CONTENT_HEADER_BYTES_MAX + 4 * 1024;
/// A host's report on what it has applied.
pub const APPLIED_BYTES_MAX: usize = 640 * 1024;
/// Why an item could not be applied, in such a report.
pub const APPLY_ERROR_BYTES_MAX: usize = 256;
/// A word of systemd about a unit, in such a report.
pub const UNIT_WORD_BYTES_MAX: usize = 32;
/// The id of a run, or of an item.
pub const ID_BYTES_MAX: usize = 64;
/// A progress message.
pub const PROGRESS_BYTES_MAX: usize = 4 * 1024;
/// A heartbeat.
pub const HEARTBEAT_BYTES_MAX: usize = 1024;
/// The lines of a command's output, as a number.
pub const OUTPUT_LINES_MAX: usize = 200;
/// The text of a command's output.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// One line of a command's output.
pub const OUTPUT_LINE_BYTES_MAX: usize = 4 * 1024;
/// A message with a command's output, with its headers.
pub const OUTPUT_MESSAGE_BYTES_MAX: usize = OUTPUT_BYTES_MAX + 4 * 1024;
/// The text of a progress message.
pub const PROGRESS_TEXT_BYTES_MAX: usize = 256;
/// Of the lines that say why a host needs a reboot, or what a reboot did not bring; the rest is cut off.
pub const REBOOT_REQUIRED_BYTES_MAX: usize = 256;
/// The message in a reply, and any reason shown to an operator.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// The name of a host, an application or a group, before it is encoded.
pub const NAME_BYTES_MAX: usize = 255;
/// The name of a host after it is encoded as a token. Files of workers, files of credentials and JetStream consumers are named
/// after hosts; their names have 255 bytes at most, and this leaves 32 for what they add to the token.
pub const HOST_TOKEN_BYTES_MAX: usize = 255 - 32;

/// `text` truncated to [`MESSAGE_BYTES_MAX`] bytes at a character boundary, ending in an ellipsis if truncated.
pub fn bounded_message(text: &str) -> String {
    bounded(text, MESSAGE_BYTES_MAX)
}

/// `text` truncated to `bytes_max` bytes, at least 3, at a character boundary, ending in an ellipsis if truncated.
pub fn bounded(text: &str, bytes_max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max - ELLIPSIS.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_end_at_character_boundary() {
        let cut = bounded_message(&"ä".repeat(MESSAGE_BYTES_MAX));
        assert!(cut.len() <= MESSAGE_BYTES_MAX, "{} bytes", cut.len());
        assert!(cut.ends_with("ä…"));
        assert_eq!(bounded_message("short"), "short");
    }
}
