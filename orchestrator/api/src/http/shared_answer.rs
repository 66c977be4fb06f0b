//! An answer that is rendered once for everybody to whom it is true: those who ask before anything changes, and those who
//! have asked before its rendering began. Where rendering takes long, an answer is also given for a short time after
//! something has changed, and rendered anew meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::WindowBlocker;
use os_upgrade_site::published_state::PublishedState;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout};

use crate::http::error::Problem;

/// How old an answer may be where rendering takes long. Times in it are in whole seconds.
const AGE_MAX: Duration = Duration::from_secs(1);
/// At what age it is rendered anew for those who will ask next.
const AGE_RENEWED: Duration = Duration::from_millis(500);

/// How long it may take to render it for the next reader.
const RENEWED_WITHIN: Duration = Duration::from_secs(20);

/// The last answer. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedAnswer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    /// Held by whoever renders.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Known {
    last: Option<Rendered>,
    /// When this instance last answered a request for a change, which every later answer shows.
    changed: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Rendered {
    began: Instant,
    of: Source,
    bytes: Bytes,
}

/// What an answer is made of.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The state as it was published.
    pub(crate) published: Arc<PublishedState>,
    /// What the leader says of it.
    pub(crate) leader_startable: Option<Result<(), WindowBlocker>>,
    /// When it is shown; parts of a second make no difference.
    pub(crate) now: DateTime<Utc>,
    /// Whether it takes long to render.
    pub(crate) is_large: bool,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.published, &other.published)
            && self.leader_startable == other.leader_startable
            && self.now.timestamp() == other.now.timestamp()
    }
}

impl SharedAnswer {
    /// The answer made of what `source` returns, or one that is as new, or new enough. At most one is rendered at a time.
    ///
    /// # Errors
    /// Those of `source` and `render`.
    pub(crate) async fn get<R>(
        &self,
        source: impl Fn() -> Result<Source, Problem> + Send + 'static,
        render: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Bytes, Problem>
    where
        R: Future<Output = Result<Bytes, Problem>> + Send,
    {
        let asked = Instant::now();
        let of = source()?;
        if let Some(last) = self.last() {
            let age = asked.saturating_duration_since(last.began);
            if last.of == of {
                return Ok(last.bytes);
            }
            if of.is_large && age <= AGE_MAX && self.shows_changes(&last) {
                if age > AGE_RENEWED
                    && let Ok(turn) = Arc::clone(&self.0.turn).try_lock_owned()
                {
                    let next = self.clone();
                    tokio::spawn(async move {
                        let renewed = timeout(RENEWED_WITHIN, next.renew(turn, source, render)).await;
                        if !matches!(renewed, Ok(Ok(_))) {
                            tracing::debug!("the state is not rendered anew; the next reader waits for it");
                        }
                    });
                }
                return Ok(last.bytes);
            }
        }
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        let of = source()?;
        match self.last().filter(|last| last.began >= asked || last.of == of) {
            Some(last) => Ok(last.bytes),
            None => self.renew(turn, source, render).await,
        }
    }

    /// A request for a change has been answered: whoever asks from now on sees the change.
    pub(crate) fn changed(&self) {
        self.known().changed = Some(Instant::now());
    }

    async fn renew<R>(
        &self,
        turn: OwnedMutexGuard<()>,
        source: impl FnOnce() -> Result<Source, Problem>,
        render: impl FnOnce() -> R,
    ) -> Result<Bytes, Problem>
    where
        R: Future<Output = Result<Bytes, Problem>>,
    {
        // Before its source is looked at, so that it is never older than this says.
        let began = Instant::now();
        let of = source()?;
        let bytes = render().await?;
        self.known().last = Some(Rendered { began, of, bytes: bytes.clone() });
        drop(turn);
        Ok(bytes)
    }

    fn last(&self) -> Option<Rendered> {
        self.known().last.clone()
    }

    fn shows_changes(&self, last: &Rendered) -> bool {
        self.known().changed.is_none_or(|changed| last.began > changed)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    /// A state that is another one each time it is looked at.
    #[derive(Clone, Default)]
    struct Site {
        is_large: bool,
        rendered: Arc<AtomicU8>,
        answer: SharedAnswer,
    }

    impl Site {
        /// The number of the rendering that is answered.
        async fn read(&self) -> u8 {
            let is_large = self.is_large;
            let source = move || {
                let published = Arc::new(PublishedState::default());
                Ok(Source { published, leader_startable: None, now: Utc::now(), is_large })
            };
            let rendered = Arc::clone(&self.rendered);
            let render = async move || Ok(Bytes::from(vec![rendered.fetch_add(1, Ordering::Relaxed) + 1]));
            self.answer.get(source, render).await.unwrap()[0]
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_as_new_as_the_state() {
        let site = Site::default();
        assert_eq!(site.read().await, 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(site.read().await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_are_renewed_for_the_next_reader() {
        let site = Site { is_large: true, ..Site::default() };
        assert_eq!((site.read().await, site.read().await), (1, 1));
        tokio::time::advance(AGE_RENEWED * 3 / 2).await;
        assert_eq!(site.read().await, 1);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(site.read().await, 2);
        tokio::time::advance(AGE_MAX * 2).await;
        assert_eq!(site.read().await, 3, "too old");
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_show_what_was_changed_here() {
        let site = Site { is_large: true, ..Site::default() };
        assert_eq!(site.read().await, 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        site.answer.changed();
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((site.read().await, site.read().await), (2, 2));
    }
}
