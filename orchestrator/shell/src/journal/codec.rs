//! The format of records and snapshots in the stream.
//!
//! A payload is JSON, deflated if it is large, and split if it would not fit into one message. The parts of one payload
//! are consecutive messages and take effect with the last; an incomplete set is ignored. Headers mean the same in every
//! format, so the chain can be followed through messages whose payload cannot be read.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use os_upgrade_kernel::format;
use os_upgrade_kernel::{Record, State};
use os_upgrade_protocol::subject;
use serde::Serialize;

use super::error::INFLATED_BYTES_MAX;
use super::{AppendId, DecodeError, JournalError, Tip};

/// The smallest payload that is deflated, in bytes.
const DEFLATE_BYTES_MIN: usize = 8 * 1024;
/// The largest payload of one message, in bytes; NATS accepts 1 MiB by default, including headers.
const PART_BYTES_MAX: usize = 768 * 1024;
/// The most parts of a payload.
const PARTS_MAX: u32 = 512;

/// The header with this message's id.
pub const APPEND_ID: &str = "Os-Upgrade-Append-Id";
/// The header with the predecessor's id; absent on the first message.
pub const PREVIOUS_ID: &str = "Os-Upgrade-Previous-Append-Id";
/// The header with the format of the payload.
pub const FORMAT_HEADER: &str = "Os-Upgrade-Format";
/// The header `n/N`: part n of N; absent if there is one part.
pub const PART: &str = "Os-Upgrade-Part";
/// The header with the encoding of the joined parts: `deflate`, or absent.
pub const ENCODING: &str = "Os-Upgrade-Encoding";
/// The header of a snapshot with the sequence at which the previous snapshot starts, 0 if there is none.
pub const PREVIOUS_SNAPSHOT: &str = "Os-Upgrade-Previous-Snapshot";

const DEFLATE: &str = "deflate";

/// The kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A record of facts.
    Record,
    /// The whole state after all earlier messages.
    Snapshot {
        /// The sequence at which the previous snapshot starts, 0 if there is none.
        previous: u64,
    },
}

impl Kind {
    /// The subject of its messages.
    pub const fn subject(self) -> &'static str {
        match self {
            Self::Record => subject::JOURNAL_FACT,
            Self::Snapshot { .. } => subject::JOURNAL_SNAPSHOT,
        }
    }
}

/// A message of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind of the payload.
    pub kind: Kind,
    pub append_id: AppendId,
    /// The predecessor's id; `None` for the first message.
    pub previous: Option<AppendId>,
    /// The format of the payload.
    pub format: u32,
    /// The number of this part, from 1.
    pub part: u32,
    /// The number of parts.
    pub parts: u32,
    /// Whether the joined parts are deflated.
    pub deflated: bool,
    /// Its part of the payload.
    pub payload: Bytes,
}

/// The content of a complete payload.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Facts.
    Record(Record),
    /// The whole state.
    Snapshot(Box<State>),
}

impl Message {
    /// Its headers.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers =
            vec![(APPEND_ID, self.append_id.to_string()), (FORMAT_HEADER, self.format.to_string())];
        headers.extend(self.previous.as_ref().map(|previous| (PREVIOUS_ID, previous.to_string())));
        if self.parts > 1 {
            headers.push((PART, format!("{}/{}", self.part, self.parts)));
        }
        if self.deflated {
            headers.push((ENCODING, DEFLATE.to_owned()));
        }
        if let Kind::Snapshot { previous } = self.kind {
            headers.push((PREVIOUS_SNAPSHOT, previous.to_string()));
        }
        headers
    }

    /// Whether it is the first part of a snapshot.
    pub fn begins_snapshot(&self) -> bool {
        matches!(self.kind, Kind::Snapshot { .. }) && self.part == 1
    }

    /// Parses a message; `header` looks up a header by name.
    pub fn read<'a>(
        sequence: u64,
        subject: &str,
        header: impl Fn(&str) -> Option<&'a str>,
        payload: Bytes,
    ) -> Result<Self, JournalError> {
        let missing = |header| JournalError::Header { sequence, header };
        let format: u32 =
            header(FORMAT_HEADER).and_then(|text| text.parse().ok()).ok_or_else(|| missing(FORMAT_HEADER))?;
        let (part, parts) = match header(PART) {
            None => (1, 1),
            // Part n cannot come before sequence n.
            Some(text) => read_part(text)
                .filter(|(part, _)| u64::from(*part) <= sequence)
                .ok_or_else(|| missing(PART))?,
        };
        let kind = if subject == subject::JOURNAL_SNAPSHOT {
            let previous = header(PREVIOUS_SNAPSHOT).and_then(|text| text.parse().ok());
            Kind::Snapshot { previous: previous.ok_or_else(|| missing(PREVIOUS_SNAPSHOT))? }
        } else {
            Kind::Record
        };
        Ok(Self {
            kind,
            append_id: header(APPEND_ID).map(AppendId::new).ok_or_else(|| missing(APPEND_ID))?,
            previous: header(PREVIOUS_ID).map(AppendId::new),
            format,
            part,
            parts,
            deflated: header(ENCODING) == Some(DEFLATE),
            payload,
        })
    }
}

fn read_part(text: &str) -> Option<(u32, u32)> {
    let (part, parts) = text.split_once('/')?;
    let (part, parts) = (part.parse().ok()?, parts.parse().ok()?);
    (1 <= part && part <= parts && parts <= PARTS_MAX).then_some((part, parts))
}

/// Encodes `content` as the messages that follow `tip`; `next_id` provides their ids.
pub fn encode<T: Serialize>(
    kind: Kind,
    content: &T,
    tip: &Tip,
    mut next_id: impl FnMut() -> AppendId,
) -> Vec<Message> {
    let json = serde_json::to_vec(content).expect("records and states serialise");
    // A larger payload could not be read back.
    assert!(
        json.len() <= INFLATED_BYTES_MAX,
        "a payload of {} bytes is too large for the journal",
        json.len()
    );
    let deflated = json.len() >= DEFLATE_BYTES_MIN;
    let payload = Bytes::from(if deflated { deflate(&json) } else { json });
    let parts = payload.len().div_ceil(PART_BYTES_MAX).max(1);
    let mut previous = tip.append_id.clone();
    (0..parts)
        .map(|index| {
            let end = payload.len().min((index + 1) * PART_BYTES_MAX);
            let append_id = next_id();
            Message {
                kind,
                previous: previous.replace(append_id.clone()),
                append_id,
                format: format::NEWEST,
                part: count(index + 1),
                parts: count(parts),
                deflated,
                payload: payload.slice(index * PART_BYTES_MAX..end),
            }
        })
        .collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).expect("a payload has few parts")
}

fn deflate(json: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(json).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

/// Decodes a joined payload; `last` is its last message.
pub fn decode(last: &Message, payload: &[u8]) -> Result<Content, DecodeError> {
    match last.format {
        format::OLDEST..=format::NEWEST => {}
        found @ ..format::OLDEST => return Err(DecodeError::OldFormat(found)),
        found => return Err(DecodeError::NewFormat(found)),
    }
    let inflated;
    let json = if last.deflated {
        let mut buffer = Vec::new();
        let mut decoder = DeflateDecoder::new(payload).take(INFLATED_BYTES_MAX as u64 + 1);
        decoder.read_to_end(&mut buffer).map_err(DecodeError::Inflate)?;
        if buffer.len() > INFLATED_BYTES_MAX {
            return Err(DecodeError::TooLarge);
        }
        inflated = buffer;
        &inflated[..]
    } else {
        payload
    };
    match last.kind {
        Kind::Record => format::read(json).map(Content::Record),
        Kind::Snapshot { .. } => format::read(json).map(|state| Content::Snapshot(Box::new(state))),
    }
    .map_err(DecodeError::Content)
}

/// The sequence at which the last complete snapshot starts, given the last stored snapshot message: the one that
/// `message` completes, or else the previous one. `None`: there is no complete snapshot, read from the beginning.
pub fn snapshot_start(sequence: u64, message: &Message) -> Option<u64> {
    match message.kind {
        Kind::Snapshot { .. } if message.part == message.parts => {
            sequence.checked_sub(u64::from(message.parts) - 1).filter(|start| *start > 0)
        }
        Kind::Snapshot { previous } => (previous > 0).then_some(previous),
        Kind::Record => None,
    }
}
