//! What is yet to happen, in the order of simulated time. Of things at the same time the one noted first comes first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Simulated time since the beginning, in microseconds.
pub(crate) type Micros = u64;

pub(crate) const MILLI: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;
pub(crate) const MINUTE: Micros = 60 * SECOND;

/// Things that are yet to happen.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    noted: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Micros,
    order: u64,
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), noted: 0 }
    }

    pub(crate) fn note(&mut self, at: Micros, what: T) {
        self.noted += 1;
        self.heap.push(Entry { at, order: self.noted, what });
    }

    pub(crate) fn next(&mut self) -> Option<(Micros, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// The heap gives its largest first, so the earliest is the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
