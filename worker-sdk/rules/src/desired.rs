//! What a worker does about the configurations that its host is to have: events in, actions out.
//!
//! Only the newest manifest counts. Whatever it no longer names is revoked, and then whatever it names and is not in force is applied, in its
//! order, one after the other; names that fail are tried again later, and the others go on. A manifest that is older than the accepted one,
//! of another site or malformed changes nothing but the report.
//!
//! The state file is saved before a handler is called: then it is not known what is in force for the name, until the handler has succeeded
//! and that is saved too. So the process may die between any two actions, and the next process calls the handler again, even if the
//! manifest has gone back to the earlier item meanwhile. That process waits until it has read the manifest, which may be a newer one.

pub mod action;
pub mod message;
pub mod state_file;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use os_upgrade_protocol::applied::apply_error;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::APPLIED_BYTES_MAX;
use os_upgrade_protocol::{
    Applied, AppliedItem, HostName, Item, ItemId, ItemKind, Manifest, ManifestRefusal, Revision,
};

use crate::Loaded;
use crate::limits::{apply_backoff, backoff};
pub use action::{DesiredAction, DesiredEvent};
pub use message::DesiredMessage;
pub use state_file::{Accepted, DesiredState, NAMES_MAX};

/// What a report has besides its items, in bytes: the longest name of a site takes about half of it.
const REPORT_HEAD_BYTES: usize = 1024;

/// One call of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Configure(Item),
    Revoke(String),
}

/// What the logic waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Activity {
    NotStarted,
    /// Another manifest, or the time to try something again.
    Idle,
    /// An item to be opened.
    Getting(Item),
    /// The state file to be saved; then the step is begun.
    Saving {
        next: Option<Step>,
        attempt: u32,
    },
    /// The time to try again to save it.
    SaveRetry {
        next: Option<Step>,
        attempt: u32,
        at: TimeDelta,
    },
    /// A handler to return.
    Acting(Step),
}

/// Why a name is not as the manifest says.
#[derive(Debug, Clone)]
struct Failure {
    error: String,
    attempt: u32,
    /// When to try again, in monotonic time.
    retry_at: TimeDelta,
}

/// The configurations of a host without the I/O. Times are monotonic, since a fixed moment.
#[derive(Debug, Clone)]
pub struct DesiredLogic {
    /// The contents of the file, once the save under way is done.
    file: DesiredState,
    /// The file has changed since a save was requested.
    is_changed: bool,
    /// The newest accepted manifest, once this process has read it.
    manifest: Option<Manifest>,
    /// Why the manifest that was read last is not followed.
    refused: Option<ManifestRefusal>,
    /// Whether the stream had no manifest for this host when it was read last.
    is_absent: bool,
    failures: BTreeMap<String, Failure>,
    /// Why the file could not be saved last, until it is.
    save_error: Option<String>,
    activity: Activity,
}

impl DesiredLogic {
    /// The logic of `host`, which waits for [`DesiredEvent::Started`].
    pub fn new(host: HostName) -> Self {
        Self {
            file: DesiredState::new(host),
            is_changed: false,
            manifest: None,
            refused: None,
            is_absent: false,
            failures: BTreeMap::new(),
            save_error: None,
            activity: Activity::NotStarted,
        }
    }

    /// Handles one event and returns the actions that follow from it.
    pub fn handle(&mut self, now: TimeDelta, event: DesiredEvent) -> Vec<DesiredAction> {
        let mut out = Vec::new();
        match event {
            DesiredEvent::Started(loaded) => self.started(loaded, &mut out),
            DesiredEvent::ManifestRead(payload) => self.manifest_read(payload.as_deref(), &mut out),
            DesiredEvent::RetryNow => {
                for failure in self.failures.values_mut() {
                    failure.retry_at = now;
                }
            }
            DesiredEvent::Got(result) => self.got(now, result, &mut out),
            DesiredEvent::Finished(result) => self.finished(now, result, &mut out),
            DesiredEvent::StateSaved => self.saved(&mut out),
            DesiredEvent::StateSaveFailed(error) => self.save_failed(now, &error, &mut out),
            DesiredEvent::Tick => {
                if let Activity::SaveRetry { next, attempt, at } = &self.activity
                    && *at <= now
                {
                    self.save(next.clone(), attempt + 1, &mut out);
                }
            }
        }
        self.proceed(now, &mut out);
        out
    }

    /// What orchestrators are to know; `None` while there is nothing that they do not know from an earlier process.
    pub fn report(&self) -> Option<Applied> {
        let Accepted { site, revision } = self.file.accepted.clone()?;
        // If there is no manifest any more, orchestrators may know nothing of this host: the stream was lost.
        if self.manifest.is_none() && self.refused.is_none() && !self.is_absent {
            return None;
        }
        let desired = self.manifest.iter().flat_map(|manifest| &manifest.items).map(|item| match item.kind {
            ItemKind::Configuration => self.reported(&item.name),
            // This worker runs no units.
            ItemKind::Unit | ItemKind::Other => AppliedItem {
                kind: ItemKind::Other,
                name: item.name.clone(),
                id: None,
                error: Some("this worker knows no items of this kind".to_owned()),
                unit: None,
            },
        });
        let others = self.file.configurations.keys().filter(|name| self.desired(name).is_none());
        let mut left = APPLIED_BYTES_MAX - REPORT_HEAD_BYTES;
        let mut items: Vec<_> = desired.chain(others.map(|name| self.reported(name))).collect();
        items.retain(|item| {
            let bytes = serde_json::to_vec(item).map_or(usize::MAX, |json| json.len().saturating_add(1));
            let fits = bytes <= left;
            left -= if fits { bytes } else { 0 };
            fits
        });
        Some(Applied { site, revision, items, refused: self.refused })
    }

    fn reported(&self, name: &str) -> AppliedItem {
        let id = self.file.configurations.get(name).cloned().flatten();
        let is_in_force = id.is_some() && id.as_ref() == self.desired(name);
        let error = self.failures.get(name).map(|failure| &failure.error).or(self.save_error.as_ref());
        AppliedItem {
            kind: ItemKind::Configuration,
            name: name.to_owned(),
            id,
            error: error.filter(|_| !is_in_force).map(|error| apply_error(error)),
            unit: None,
        }
    }

    /// The item that the accepted manifest names, if this process has read it.
    fn desired(&self, name: &str) -> Option<&ItemId> {
        self.configurations().find(|item| item.name == name).map(|item| &item.id)
    }

    fn configurations(&self) -> impl Iterator<Item = &Item> {
        let items = self.manifest.iter().flat_map(|manifest| &manifest.items);
        items.filter(|item| item.kind == ItemKind::Configuration)
    }

    fn started(&mut self, loaded: Loaded<DesiredState>, out: &mut Vec<DesiredAction>) {
        if self.activity != Activity::NotStarted {
            return unexpected("Started", out);
        }
        match loaded {
            Loaded::Nothing => {}
            Loaded::File(file) => self.file = *file,
            Loaded::Corrupt { error } => {
                out.push(DesiredAction::Log(DesiredMessage::StateFileCorrupt { error }));
            }
        }
        self.activity = Activity::Idle;
    }

    fn manifest_read(&mut self, payload: Option<&[u8]>, out: &mut Vec<DesiredAction>) {
        let read = payload.map(Manifest::parse).transpose();
        let read = read.map_err(|error| (ManifestRefusal::Malformed, with_causes(&error)));
        match read.and_then(|manifest| manifest.map(|manifest| self.acceptable(manifest)).transpose()) {
            Ok(manifest) => {
                self.refused = None;
                self.is_absent = manifest.is_none();
                if let Some(manifest) = manifest {
                    self.accept(manifest, out);
                }
            }
            Err((refusal, detail)) => {
                self.refused = Some(refusal);
                out.push(DesiredAction::Log(DesiredMessage::Refused { refusal, detail }));
            }
        }
    }

    /// `manifest`, unless it is to be refused.
    fn acceptable(&self, manifest: Manifest) -> Result<Manifest, (ManifestRefusal, String)> {
        let Some(Accepted { site, revision }) = &self.file.accepted else {
            return Ok(manifest);
        };
        if manifest.site != *site {
            let detail = format!(
                "{} instead of {site}; if the host has moved there, stop its worker and remove {}.desired.json in its state \
                 directory",
                manifest.site,
                self.file.host.token()
            );
            return Err((ManifestRefusal::OtherSite, detail));
        }
        if manifest.revision < *revision {
            let show = |revision: &Revision| format!("{} of epoch {}", revision.sequence, revision.epoch);
            return Err((
                ManifestRefusal::Older,
                format!("{} after {}", show(&manifest.revision), show(revision)),
            ));
        }
        Ok(manifest)
    }

    fn accept(&mut self, manifest: Manifest, out: &mut Vec<DesiredAction>) {
        let accepted = Some(Accepted { site: manifest.site.clone(), revision: manifest.revision });
        if self.file.accepted != accepted {
            out.push(DesiredAction::Log(DesiredMessage::Accepted {
                revision: manifest.revision,
                items: manifest.items.len(),
            }));
            self.file.accepted = accepted;
            self.is_changed = true;
        }
        if self.manifest.as_ref() != Some(&manifest) {
            self.failures.clear();
            self.manifest = Some(manifest);
        }
    }

    fn got(&mut self, now: TimeDelta, result: Result<(), String>, out: &mut Vec<DesiredAction>) {
        let Activity::Getting(item) = &self.activity else {
            return unexpected("Got", out);
        };
        let step = Step::Configure(item.clone());
        self.activity = Activity::Idle;
        match result {
            Ok(()) if self.is_desired(&step) => {
                self.file.configurations.insert(step.name().to_owned(), None);
                self.save(Some(step), 1, out);
            }
            Ok(()) => out.push(DesiredAction::Discard),
            Err(error) => self.failed(now, &step, error, out),
        }
    }

    fn finished(&mut self, now: TimeDelta, result: Result<(), String>, out: &mut Vec<DesiredAction>) {
        let Activity::Acting(step) = &self.activity else {
            return unexpected("Finished", out);
        };
        let step = step.clone();
        self.activity = Activity::Idle;
        if let Err(error) = result {
            return self.failed(now, &step, error, out);
        }
        self.failures.remove(step.name());
        self.is_changed = true;
        out.push(DesiredAction::Log(match step {
            Step::Configure(Item { name, id, .. }) => {
                self.file.configurations.insert(name.clone(), Some(id.clone()));
                DesiredMessage::Configured { name, id }
            }
            Step::Revoke(name) => {
                self.file.configurations.remove(&name);
                DesiredMessage::Revoked { name }
            }
        }));
    }

    /// Notes that `step` has failed, unless the manifest wants something else by now.
    fn failed(&mut self, now: TimeDelta, step: &Step, error: String, out: &mut Vec<DesiredAction>) {
        if !self.is_desired(step) {
            return;
        }
        let name = step.name().to_owned();
        out.push(DesiredAction::Log(DesiredMessage::Failed { name: name.clone(), error: error.clone() }));
        let attempt = self.failures.get(&name).map_or(0, |failure| failure.attempt).saturating_add(1);
        self.failures.insert(name, Failure { error, attempt, retry_at: now + apply_backoff(attempt) });
    }

    fn saved(&mut self, out: &mut Vec<DesiredAction>) {
        let Activity::Saving { next, .. } = &self.activity else {
            return unexpected("StateSaved", out);
        };
        let next = next.clone();
        self.save_error = None;
        if self.is_changed {
            return self.save(next, 1, out);
        }
        self.activity = match next {
            None => Activity::Idle,
            Some(step) if !self.is_desired(&step) => {
                out.push(DesiredAction::Discard);
                Activity::Idle
            }
            Some(step) => {
                out.push(match step.clone() {
                    Step::Configure(item) => DesiredAction::Configure(item),
                    Step::Revoke(name) => DesiredAction::Revoke(name),
                });
                Activity::Acting(step)
            }
        };
    }

    fn save_failed(&mut self, now: TimeDelta, error: &str, out: &mut Vec<DesiredAction>) {
        let Activity::Saving { next, attempt } = &self.activity else {
            return unexpected("StateSaveFailed", out);
        };
        self.activity =
            Activity::SaveRetry { next: next.clone(), attempt: *attempt, at: now + backoff(*attempt) };
        out.push(DesiredAction::Log(DesiredMessage::SaveFailed { error: error.to_owned() }));
        self.save_error = Some(format!("cannot save the worker's state: {error}"));
    }

    fn save(&mut self, next: Option<Step>, attempt: u32, out: &mut Vec<DesiredAction>) {
        self.is_changed = false;
        self.activity = Activity::Saving { next, attempt };
        out.push(DesiredAction::SaveState(Box::new(self.file.clone())));
    }

    /// Begins what is to be done next, unless something is under way.
    fn proceed(&mut self, now: TimeDelta, out: &mut Vec<DesiredAction>) {
        if self.activity != Activity::Idle {
            return;
        }
        if self.is_changed {
            return self.save(None, 1, out);
        }
        if self.manifest.is_none() {
            return;
        }
        let is_due = |name: &String| self.failures.get(name).is_none_or(|failure| failure.retry_at <= now);
        // First, because what is applied may take the place of what is revoked.
        let mut in_force = self.file.configurations.keys();
        if let Some(name) = in_force.find(|name| self.desired(name).is_none() && is_due(name)).cloned() {
            self.file.configurations.insert(name.clone(), None);
            return self.save(Some(Step::Revoke(name)), 1, out);
        }
        let is_in_force =
            |item: &Item| self.file.configurations.get(&item.name) == Some(&Some(item.id.clone()));
        let pending = self.configurations().find(|item| !is_in_force(item) && is_due(&item.name)).cloned();
        let Some(item) = pending else {
            return;
        };
        let is_known = self.file.configurations.contains_key(&item.name);
        if !is_known && self.file.configurations.len() >= NAMES_MAX {
            let error = format!("{NAMES_MAX} others are in force or could not be revoked: see their errors");
            return self.failed(now, &Step::Configure(item), error, out);
        }
        self.activity = Activity::Getting(item.clone());
        out.push(DesiredAction::Get(item));
    }

    /// Whether the manifest still wants this.
    fn is_desired(&self, step: &Step) -> bool {
        match step {
            Step::Configure(item) => self.configurations().any(|desired| desired == item),
            Step::Revoke(name) => self.desired(name).is_none(),
        }
    }
}

impl Step {
    fn name(&self) -> &str {
        match self {
            Self::Configure(item) => &item.name,
            Self::Revoke(name) => name,
        }
    }
}

fn unexpected(event: &'static str, out: &mut Vec<DesiredAction>) {
    out.push(DesiredAction::Log(DesiredMessage::Unexpected(event)));
}
