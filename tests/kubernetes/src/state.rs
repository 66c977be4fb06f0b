//! Everything that a server knows, and what its requests do.

use std::sync::Mutex;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use tokio::sync::watch;

use crate::access::Access;
use crate::accounts;
use crate::controllers::Controllers;
use crate::creation::{self, Place};
use crate::deletion::{self, Options};
use crate::eviction;
use crate::failure::Failure;
use crate::faults::Faults;
use crate::lists::Lists;
use crate::patch;
use crate::request::Request;
use crate::resource::{ACCOUNTS, PODS};
use crate::store::{Key, Store};

/// What the server knows.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The objects.
    pub(crate) store: Store,
    /// The callers.
    pub(crate) access: Access,
    /// The faults to come.
    pub(crate) faults: Faults,
    /// Lists that have pages left, and the cache.
    pub(crate) lists: Lists,
    /// What else writes.
    pub(crate) controllers: Controllers,
    /// How far the server's clock is ahead.
    pub(crate) skew: TimeDelta,
    /// How often all watches were ended.
    pub(crate) cuts: u64,
}

impl State {
    /// The time of the server's clock.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.skew
    }

    /// Carries out a request other than a watch. Returns the status and the body.
    pub(crate) fn execute(&mut self, request: &Request) -> Result<(u16, Value), Failure> {
        let (now, target) = (self.now(), &request.target);
        let (resource, namespace) = (target.resource, target.namespace.as_deref());
        let key = target.name.as_ref().map(|name| Key::new(resource, namespace.unwrap_or_default(), name));
        match (request.verb, target.subresource.as_deref(), key) {
            ("list", None, None) => Ok((200, self.lists.list(request, &self.store)?)),
            ("get", None | Some("status"), Some(key)) => {
                Ok((200, self.lists.get(request, &key, &self.store)?))
            }
            ("create", Some("eviction"), Some(key)) if resource == PODS => {
                Ok((201, eviction::evict(&mut self.store, request, &key, now)?))
            }
            ("create", Some("token"), Some(key)) if resource == ACCOUNTS => {
                Ok((201, accounts::issue_token(&mut self.access, &self.store, &key)?))
            }
            ("create", None, None) if namespace.is_some() == resource.is_namespaced => {
                let place = Place { resource, namespace };
                let created =
                    creation::create(&mut self.store, place, request.json()?, now, request.is_dry_run())?;
                Ok((201, created))
            }
            ("patch" | "update", None | Some("status"), Some(key)) => {
                Ok((200, patch::write(&mut self.store, request, &key)?))
            }
            ("delete", None, Some(key)) => {
                let options = Options::of(&request.json()?, request.is_dry_run());
                let options = options.or_grace(request.number("gracePeriodSeconds")?);
                let object = deletion::delete(&mut self.store, &key, &options, now)?;
                Ok((200, deletion::answer(object, &resource)))
            }
            _ => Err(Failure::no_such_path()),
        }
    }
}

/// A state that several use, with a sign for those who wait for changes.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Shared {
    /// Reads the state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap())
    }

    /// Changes the state, lets the controllers look at everything, and wakes those who wait.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = self.read(|state| {
            let result = change(state);
            let now = state.now();
            state.controllers.settle(&mut state.store, None, now);
            result
        });
        self.changed.send_replace(());
        result
    }

    /// Changes objects and nothing else, lets the controllers follow what has changed, and wakes those who wait. It is worth
    /// it in a cluster with thousands of pods.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut State) -> T) -> T {
        let (result, has_changed) = self.read(|state| {
            let before = state.store.version();
            let result = write(state);
            let has_changed = state.store.version() != before;
            if has_changed {
                let now = state.now();
                state.controllers.settle(&mut state.store, Some(before), now);
            }
            (result, has_changed)
        });
        if has_changed {
            self.changed.send_replace(());
        }
        result
    }

    /// Wakes after each change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
