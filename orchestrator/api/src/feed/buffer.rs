//! The newest events, rendered, from which every subscriber reads at its own pace. A subscriber that is slower than the
//! buffer is long loses its place: it costs no more memory than one that is not.

use std::collections::VecDeque;
use std::sync::Arc;

use os_upgrade_kernel::FactCursor;

use super::batch::Batch;

/// Most events in the buffer.
const EVENTS_MAX: usize = 16_384;
/// Most bytes of rendered events in the buffer.
const BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The newest batches. The last one is kept however large it is.
#[derive(Debug)]
pub(super) struct Buffer {
    events_max: usize,
    bytes_max: usize,
    batches: VecDeque<Arc<Batch>>,
    /// The number of the first batch; numbers only grow.
    first: u64,
    events: usize,
    bytes: usize,
    /// The facts that are covered; `None` while nobody subscribes, and nothing is read.
    covered: Option<Covered>,
}

/// Everything after `start` and up to `end` is in the buffer.
#[derive(Debug, Clone, Copy)]
struct Covered {
    start: FactCursor,
    end: FactCursor,
}

/// What there is for a subscriber.
#[derive(Debug)]
pub(super) enum Next {
    /// This batch.
    Batch(Arc<Batch>),
    /// Nothing yet.
    Nothing,
    /// What comes next was there, and no longer is.
    Lost,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new(EVENTS_MAX, BYTES_MAX)
    }
}

impl Buffer {
    fn new(events_max: usize, bytes_max: usize) -> Self {
        Self { events_max, bytes_max, batches: VecDeque::new(), first: 0, events: 0, bytes: 0, covered: None }
    }

    /// Begins after the fact `start`, unless it has begun. Returns the fact after which the next batch goes on.
    pub(super) fn begin(&mut self, start: FactCursor) -> FactCursor {
        self.covered.get_or_insert(Covered { start, end: start }).end
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.first += self.batches.len() as u64;
        self.batches.clear();
        (self.events, self.bytes, self.covered) = (0, 0, None);
    }

    /// Adds `batch`, and drops the oldest ones beyond the bounds.
    pub(super) fn push(&mut self, batch: Batch) {
        let Some(covered) = &mut self.covered else { return };
        covered.end = batch.end();
        self.events += batch.weight();
        self.bytes += batch.size();
        self.batches.push_back(Arc::new(batch));
        while self.batches.len() > 1 && (self.events > self.events_max || self.bytes > self.bytes_max) {
            let Some(oldest) = self.batches.pop_front() else { break };
            self.first += 1;
            self.events -= oldest.weight();
            self.bytes -= oldest.size();
            covered.start = oldest.end();
        }
    }

    /// The number of the batch with which a subscriber goes on that has everything up to `after`; `None` if the buffer does
    /// not reach back so far. Of a batch that it has in part, it must skip that part.
    pub(super) fn join(&self, after: FactCursor) -> Option<u64> {
        self.covered.filter(|covered| after >= covered.start)?;
        let had = self.batches.partition_point(|batch| batch.end() <= after);
        Some(self.first + had as u64)
    }

    /// The batch with this number.
    pub(super) fn get(&self, number: u64) -> Next {
        let Some(index) = number.checked_sub(self.first) else { return Next::Lost };
        let batch = usize::try_from(index).ok().and_then(|index| self.batches.get(index));
        batch.map_or(Next::Nothing, |batch| Next::Batch(Arc::clone(batch)))
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_api_types::routes::events::SiteEvent;

    use super::*;

    const fn at(sequence: u64) -> FactCursor {
        FactCursor { sequence, place: 0 }
    }

    fn batch(sequence: u64, events: usize) -> Batch {
        Batch::of_events(std::iter::repeat_n(SiteEvent::SettingsChanged, events), at(sequence))
    }

    fn buffer(events_max: usize, bytes_max: usize, batches: impl IntoIterator<Item = Batch>) -> Buffer {
        let mut buffer = Buffer::new(events_max, bytes_max);
        buffer.begin(at(10));
        batches.into_iter().for_each(|batch| buffer.push(batch));
        buffer
    }

    #[test]
    fn subscribers_join_where_they_are() {
        let buffer = buffer(100, 10_000, [batch(12, 1), batch(14, 1)]);
        let joined = [9, 10, 11, 12, 13, 14, 15].map(|sequence| buffer.join(at(sequence)));
        assert_eq!(joined, [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)]);
        assert!(matches!(buffer.get(2), Next::Nothing));
    }

    #[test]
    fn events_and_bytes_are_bounded() {
        let size = batch(0, 1).size();
        for (events_max, bytes_max) in [(4, usize::MAX), (usize::MAX, 4 * size)] {
            let mut buffer = buffer(events_max, bytes_max, [batch(11, 2), batch(12, 2), batch(13, 1)]);
            assert!(matches!(buffer.get(0), Next::Lost), "a slow subscriber loses its place");
            assert!(matches!(buffer.get(1), Next::Batch(_)));
            assert_eq!([10, 11].map(|sequence| buffer.join(at(sequence))), [None, Some(1)]);
            buffer.push(batch(14, 9));
            assert_eq!((buffer.events, buffer.bytes), (9, 9 * size), "the last batch is kept");
        }
    }

    #[test]
    fn cleared_buffer_admits_nobody() {
        let mut buffer = buffer(4, 10_000, [batch(11, 1)]);
        buffer.clear();
        assert!(matches!(buffer.get(0), Next::Lost));
        assert_eq!(buffer.join(at(11)), None);
        buffer.push(batch(12, 1));
        assert_eq!(buffer.batches.len(), 0, "nothing is kept for nobody");
        buffer.begin(at(12));
        assert_eq!(buffer.join(at(12)), Some(1));
    }
}
