//! A queue of messages of which only the latest of each key matters: a newer one takes the place of one that waits.
//! So whoever sends many messages under one key makes the reader read one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A queue with a bounded number of keys. Clones share it.
#[derive(Debug)]
pub struct Latest<T> {
    shared: Arc<Shared<T>>,
    keys_max: usize,
}

#[derive(Debug)]
struct Shared<T> {
    waiting: Mutex<Waiting<T>>,
    has_room: Notify,
}

#[derive(Debug)]
struct Waiting<T> {
    /// Keys, in the order in which their first messages arrived.
    order: VecDeque<String>,
    messages: HashMap<String, T>,
}

impl<T> Clone for Latest<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), keys_max: self.keys_max }
    }
}

impl<T> Latest<T> {
    /// An empty queue.
    pub fn new(keys_max: usize) -> Self {
        let waiting = Mutex::new(Waiting { order: VecDeque::new(), messages: HashMap::new() });
        Self { shared: Arc::new(Shared { waiting, has_room: Notify::new() }), keys_max }
    }

    /// Adds a message, waiting for room if its key is new.
    pub async fn put(&self, key: String, message: T) {
        let mut message = message;
        loop {
            let mut has_room = std::pin::pin!(self.shared.has_room.notified());
            has_room.as_mut().enable();
            match self.try_put(&key, message) {
                Ok(()) => return,
                Err(returned) => message = returned,
            }
            has_room.await;
        }
    }

    /// Adds a message, or returns it if its key is new and there is no room.
    pub(crate) fn try_put(&self, key: &str, message: T) -> Result<(), T> {
        let mut waiting = self.waiting();
        let is_full = waiting.order.len() >= self.keys_max && !waiting.messages.contains_key(key);
        if is_full {
            return Err(message);
        }
        waiting.add(key, message);
        Ok(())
    }

    /// Adds a message even if there is no room.
    pub(crate) fn force(&self, key: &str, message: T) {
        self.waiting().add(key, message);
    }

    /// The message that waits for longest.
    pub fn pop(&self) -> Option<T> {
        let mut waiting = self.waiting();
        let key = waiting.order.pop_front()?;
        let message = waiting.messages.remove(&key);
        drop(waiting);
        self.shared.has_room.notify_waiters();
        message
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Waiting<T> {
    fn add(&mut self, key: &str, message: T) {
        if self.messages.insert(key.to_owned(), message).is_none() {
            self.order.push_back(key.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_message_of_a_key_waits() {
        let queue = Latest::new(2);
        for number in 0..1_000 {
            queue.put("flood".to_owned(), number).await;
        }
        queue.put("other".to_owned(), 7).await;
        assert_eq!(queue.try_put("third", 8), Err(8), "there is no room");
        assert_eq!(queue.try_put("flood", 1_000), Ok(()));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(1_000), Some(7), None));
    }

    #[tokio::test]
    async fn a_new_key_waits_for_room() {
        let queue = Latest::new(1);
        queue.put("first".to_owned(), 1).await;
        let second = tokio::spawn({
            let queue = queue.clone();
            async move { queue.put("second".to_owned(), 2).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(queue.pop(), Some(1));
        second.await.unwrap();
        queue.force("third", 3);
        assert_eq!((queue.pop(), queue.pop()), (Some(2), Some(3)));
    }
}
