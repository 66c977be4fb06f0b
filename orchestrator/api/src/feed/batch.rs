//! Events that are sent together: rendered once, for all subscribers.

use std::ops::Range;

use axum::body::Bytes;
use os_upgrade_api_types::routes::events::{Event, EventId, FollowParameters, SiteEvent};
use os_upgrade_kernel::FactCursor;
use os_upgrade_store::{FactRow, StoreError};

use crate::bodies;

/// The most bytes that are passed on at once, unless a single block has more: as much is kept for each subscriber that does not
/// read.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// Some events, in order, as blocks of Server-Sent Events.
#[derive(Debug)]
pub(super) struct Batch {
    /// All blocks.
    bytes: Bytes,
    blocks: Vec<Block>,
    /// The last fact before the next batch, of which there may be no event.
    end: FactCursor,
}

/// One event in a [`Batch`].
#[derive(Debug)]
struct Block {
    /// The fact that it tells of; `None` for an event without an id.
    fact: Option<FactCursor>,
    event: SiteEvent,
    range: Range<usize>,
}

impl Batch {
    /// The events of `facts`, which end with `end`.
    pub(super) fn of_facts(epoch: i64, facts: &[FactRow], end: FactCursor) -> Result<Self, StoreError> {
        let mut batch = Builder::default();
        for row in facts {
            let event = bodies::event(Some(epoch), row);
            let event =
                event.map_err(|error| StoreError::BadValue { column: "fact", value: error.to_string() })?;
            if let Some(event) = event {
                batch.add(event);
            }
        }
        Ok(batch.build(end))
    }

    /// Events without ids, between two facts of which `end` is the first.
    pub(super) fn of_events(events: impl IntoIterator<Item = SiteEvent>, end: FactCursor) -> Self {
        let mut batch = Builder::default();
        events.into_iter().for_each(|what| batch.add(Event { id: None, time: None, what }));
        batch.build(end)
    }

    /// The last fact before the next batch.
    pub(super) const fn end(&self) -> FactCursor {
        self.end
    }

    /// The number of events.
    pub(super) const fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The number of events, at least one: a batch without any takes room too.
    pub(super) fn weight(&self) -> usize {
        self.len().max(1)
    }

    /// The size of all blocks, in bytes.
    pub(super) const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The blocks after `after` that `wanted` selects, of those from the number `from` on. If they are more than
    /// [`PIECE_BYTES_MAX`], the first ones.
    pub(super) fn select(&self, wanted: &FollowParameters, after: FactCursor, from: usize) -> Selection {
        let is_selected =
            |block: &Block| block.fact.is_none_or(|fact| fact > after) && accepts(wanted, &block.event);
        let (mut selected, mut size, mut rest) = (Vec::new(), 0, None);
        for (number, block) in self.blocks.iter().enumerate().skip(from) {
            if !is_selected(block) {
                continue;
            }
            if !selected.is_empty() && size + block.range.len() > PIECE_BYTES_MAX {
                rest = Some(number);
                break;
            }
            size += block.range.len();
            selected.push(block);
        }
        let range =
            selected.first().zip(selected.last()).map(|(first, last)| first.range.start..last.range.end);
        let bytes = match range {
            // Nothing is left out between them.
            Some(range) if range.len() == size => self.bytes.slice(range),
            _ => {
                let pieces = selected.iter().map(|block| &self.bytes[block.range.clone()]);
                pieces.collect::<Vec<_>>().concat().into()
            }
        };
        let last = selected.iter().rev().find_map(|block| block.fact);
        Selection { bytes, count: selected.len() as u64, last, rest }
    }
}

/// Some blocks of a batch.
#[derive(Debug)]
pub(super) struct Selection {
    /// The blocks.
    pub(super) bytes: Bytes,
    /// Their number.
    pub(super) count: u64,
    /// The fact of the last one with an id.
    pub(super) last: Option<FactCursor>,
    /// The number of the first selected block that is not among them; `None` if there is none.
    pub(super) rest: Option<usize>,
}

#[derive(Default)]
struct Builder {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
}

impl Builder {
    fn add(&mut self, event: Event) {
        let start = self.bytes.len();
        write_block(&mut self.bytes, &event);
        let range = start..self.bytes.len();
        self.blocks.push(Block { fact: event.id.map(|id| id.fact), event: event.what, range });
    }

    fn build(self, end: FactCursor) -> Batch {
        Batch { bytes: self.bytes.into(), blocks: self.blocks, end }
    }
}

/// Whether a subscriber that asked for `wanted` gets `event`.
fn accepts(wanted: &FollowParameters, event: &SiteEvent) -> bool {
    let FollowParameters { kinds, run, host, after: _ } = wanted;
    if let SiteEvent::Reset { .. } = event {
        return true;
    }
    kinds.as_ref().is_none_or(|kinds| kinds.has(event.kind()))
        && run.as_ref().is_none_or(|run| event.run() == Some(run.as_str()))
        && host.as_ref().is_none_or(|host| event.is_about(host.as_str()))
}

/// Writes the block of `event`. JSON has no line breaks, so `data` is one line.
fn write_block(bytes: &mut Vec<u8>, event: &Event) {
    if let Some(id) = event.id {
        bytes.extend_from_slice(id_line(id).as_bytes());
    }
    bytes.extend_from_slice(format!("event: {}\ndata: ", event.what.kind()).as_bytes());
    let data = serde_json::to_vec(event).expect("an event has string keys and no fallible part");
    bytes.extend_from_slice(&data);
    bytes.extend_from_slice(b"\n\n");
}

fn id_line(id: EventId) -> String {
    format!("id: {id}\n")
}

/// A block with an id alone: the position from which a client resumes moves, and nothing is dispatched.
pub(super) fn position(id: EventId) -> Bytes {
    format!("{}\n", id_line(id)).into()
}

/// The block of an event without an id.
pub(super) fn single(what: SiteEvent) -> Bytes {
    let mut bytes = Vec::new();
    write_block(&mut bytes, &Event { id: None, time: None, what });
    bytes.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const fn at(sequence: u64, place: u64) -> FactCursor {
        FactCursor { sequence, place }
    }

    fn row(sequence: u64, run: Option<&str>, fact: &serde_json::Value) -> FactRow {
        FactRow {
            sequence,
            place: 0,
            at: "2026-11-21T01:00:00.5Z".parse().unwrap(),
            name: String::new(),
            event: None,
            actor: None,
            run: run.map(ToOwned::to_owned),
            host: None,
            fact: serde_json::value::to_raw_value(fact).unwrap(),
        }
    }

    fn batch() -> Batch {
        let rows = [
            row(5, Some("r1"), &json!({"type": "slot-released", "host": "h01", "why": "upgraded"})),
            row(6, None, &json!({"type": "fence-passed", "sequence": 9})),
            row(7, Some("r1"), &json!({"type": "run-ended", "run": "r1", "result": "completed"})),
            row(8, None, &json!({"type": "hosts-approved", "hosts": ["h01", "h02"], "actor": "eve"})),
        ];
        Batch::of_facts(0xab, &rows, at(8, 0)).unwrap()
    }

    /// The ids of the blocks that are selected by the query `wanted`, after a fact.
    fn selected(wanted: &FollowParameters, after: FactCursor) -> Vec<String> {
        selected_of(&batch(), wanted, after)
    }

    fn selected_of(batch: &Batch, wanted: &FollowParameters, after: FactCursor) -> Vec<String> {
        let Selection { bytes, count, .. } = batch.select(wanted, after, 0);
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let ids: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("id: ").map(ToOwned::to_owned)).collect();
        assert_eq!(ids.len() as u64, count);
        ids
    }

    #[test]
    fn filters_select_blocks() {
        let all = FollowParameters::default;
        assert_eq!(selected(&all(), at(0, 0)), ["ab.5.0", "ab.7.0", "ab.8.0"]);
        assert_eq!(selected(&all(), at(5, 0)), ["ab.7.0", "ab.8.0"], "what was received is not sent again");
        let kinds = || Some("run-ended,hosts-approved".parse().unwrap());
        assert_eq!(selected(&FollowParameters { kinds: kinds(), ..all() }, at(0, 0)), ["ab.7.0", "ab.8.0"]);
        let run = || Some("r1".parse().unwrap());
        assert_eq!(selected(&FollowParameters { run: run(), ..all() }, at(0, 0)), ["ab.5.0", "ab.7.0"]);
        let host = |name: &str| Some(name.parse().unwrap());
        for (name, ids) in [("h01", vec!["ab.5.0", "ab.8.0"]), ("h02", vec!["ab.8.0"]), ("h03", vec![])] {
            assert_eq!(selected(&FollowParameters { host: host(name), ..all() }, at(0, 0)), ids, "{name}");
        }
        assert_eq!(
            selected(&FollowParameters { kinds: kinds(), run: run(), ..all() }, at(0, 0)),
            ["ab.7.0"],
            "every filter applies"
        );
    }

    /// That a node is drained for a run is told by the host's step, once.
    #[test]
    fn steps_of_a_node_are_in_the_run_for_which_it_is_drained() {
        let node = |sequence, run, kind: &str| {
            row(sequence, run, &json!({ "type": "node", "host": "h01", "step": { "kind": kind } }))
        };
        let drained = json!({ "type": "host", "run": "r1", "host": "h01", "event": { "type": "drained" } });
        let rows = [
            node(5, Some("r1"), "eviction-began"),
            node(6, Some("r1"), "drained"),
            row(7, Some("r1"), &drained),
            node(8, Some("r1"), "drained"),
            node(9, Some("rq-1-1728000000"), "drained"),
            node(10, None, "uncordoned"),
        ];
        let batch = Batch::of_facts(0xab, &rows, at(10, 0)).unwrap();
        let all = FollowParameters::default;
        assert_eq!(selected_of(&batch, &all(), at(0, 0)), ["ab.5.0", "ab.7.0", "ab.9.0", "ab.10.0"]);
        let of_run = FollowParameters { run: Some("r1".parse().unwrap()), ..all() };
        assert_eq!(selected_of(&batch, &of_run, at(0, 0)), ["ab.5.0", "ab.7.0"]);
    }

    #[test]
    fn block_is_a_server_sent_event() {
        let Selection { bytes, last, .. } = batch().select(&FollowParameters::default(), at(5, 0), 0);
        assert_eq!(last, Some(at(8, 0)));
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(
            text.split_inclusive("\n\n").next().unwrap(),
            "id: ab.7.0\nevent: run-ended\ndata: {\"id\":\"ab.7.0\",\"time\":\"2026-11-21T01:00:00.500Z\",\
             \"kind\":\"run-ended\",\"run\":\"r1\",\"result\":\"completed\"}\n\n"
        );
        assert_eq!(position(EventId { epoch: 0xab, fact: at(7, 0) }), "id: ab.7.0\n\n");
    }

    /// What is held for a subscriber that does not read is bounded, whether it filters or not.
    #[test]
    fn large_selections_come_in_pieces() {
        let approved = json!({"type": "hosts-approved", "hosts": ["h".repeat(100)], "actor": "eve"});
        let ended = json!({"type": "run-ended", "run": "r1", "result": "completed"});
        let pairs =
            (1..=1_000).step_by(2).map(|at| [row(at, None, &approved), row(at + 1, Some("r1"), &ended)]);
        let rows: Vec<FactRow> = pairs.flatten().collect();
        let batch = Batch::of_facts(0xab, &rows, at(1_000, 0)).unwrap();
        for (run, expected) in [(None, 1_000), (Some("r1"), 500)] {
            let run = run.map(|run: &str| run.parse().unwrap());
            let wanted = FollowParameters { run, ..FollowParameters::default() };
            let (mut from, mut text, mut count, mut pieces) = (Some(0), String::new(), 0, 0);
            while let Some(first) = from {
                let piece = batch.select(&wanted, at(0, 0), first);
                assert!(piece.bytes.len() <= PIECE_BYTES_MAX, "{}", piece.bytes.len());
                text.push_str(str::from_utf8(&piece.bytes).unwrap());
                (from, count, pieces) = (piece.rest, count + piece.count, pieces + 1);
            }
            assert_eq!((count, text.matches("data: ").count() as u64), (expected, expected));
            assert!(pieces > 3, "{pieces}");
        }
    }
}
