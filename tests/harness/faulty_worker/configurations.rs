//! The configurations of the worker with at most one fault. It has no handler: what it has opened is in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_nats::{Client, jetstream};
use futures::StreamExt;
use os_upgrade_protocol::{HostName, ItemKind, Revision};
use os_upgrade_sealing::{PrivateKey, SealedFor};
use os_upgrade_worker_sdk::testing::Rule;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// What the host has, and what it takes to open more. It survives restarts.
#[derive(Debug)]
pub(super) struct Configurations {
    host: HostName,
    /// The prefix of the `JetStream` API.
    api: &'static str,
    /// The rule that it breaks.
    broken: Option<Rule>,
    key: PrivateKey,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The site, the epoch and the sequence of the accepted manifest.
    accepted: Option<(String, u64, u64)>,
    /// The id of each name.
    in_force: BTreeMap<String, String>,
    errors: BTreeMap<String, &'static str>,
}

impl Configurations {
    pub(super) fn new(host: &str, api: &'static str, broken: Option<Rule>) -> Arc<Self> {
        let host = HostName::new(host).unwrap();
        Arc::new(Self { host, api, broken, key: PrivateKey::generate(), state: Mutex::default() })
    }

    /// The public key, as announced.
    pub(super) fn key(&self) -> String {
        self.key.public().to_string()
    }

    /// Follows the host's manifests. Returns only when the client is closed.
    pub(super) async fn follow(self: Arc<Self>, client: Client, jetstream: jetstream::Context) {
        let mut hints = client.subscribe(format!("os-upgrade.desired.{}", self.host)).await.unwrap();
        let mut reported = Value::Null;
        loop {
            if let Some(manifest) = self.desired(&client, "manifest").await {
                let manifest: Value = serde_json::from_slice(&manifest).unwrap();
                let report = self.consider(&client, &manifest).await;
                if report != reported {
                    let subject = format!("os-upgrade:applied.{}", self.host);
                    let stored = jetstream.publish(subject, report.to_string().into()).await.unwrap();
                    stored.await.unwrap();
                    reported = report;
                }
            }
            if hints.next().await.is_none() {
                return;
            }
        }
    }

    fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    /// The message about this host at `rest`, if there is one.
    async fn desired(&self, client: &Client, rest: &str) -> Option<Vec<u8>> {
        let at = format!("os-upgrade:desired.{}.{rest}", self.host);
        let request = format!("{}.DIRECT.GET.os-upgrade:desired.{at}", self.api);
        let answer = client.request(request, "".into()).await.ok()?;
        answer.headers?.get("Nats-Subject").map(|_| answer.payload.to_vec())
    }

    /// Does what the manifest says, and returns the report of it.
    async fn consider(&self, client: &Client, manifest: &Value) -> Value {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        let site = text(&manifest["site"]);
        let revision = revision(manifest);
        let refused = match &state.accepted {
            Some((known, ..)) if *known != site && !self.breaks(Rule::ConfigOtherSite) => Some("other-site"),
            Some((_, epoch, sequence))
                if revision < (*epoch, *sequence) && !self.breaks(Rule::ConfigOlder) =>
            {
                Some("older")
            }
            Some(_) | None => None,
        };
        if refused.is_none() {
            state.accepted = Some((site, revision.0, revision.1));
            self.apply(client, state, manifest["items"].as_array().unwrap()).await;
        }
        let (site, epoch, sequence) = state.accepted.clone().unwrap();
        let mut items: Vec<_> = state
            .in_force
            .iter()
            .map(|(name, id)| json!({ "kind": "configuration", "name": name, "id": id }))
            .collect();
        for (name, error) in &state.errors {
            items.push(json!({ "kind": "configuration", "name": name, "error": error }));
        }
        if self.breaks(Rule::ConfigApplied) {
            items.clear();
        }
        let mut report = json!({ "site": site, "epoch": epoch, "sequence": sequence, "items": items });
        if let Some(refused) = refused {
            report["refused"] = json!(refused);
        }
        report
    }

    async fn apply(&self, client: &Client, state: &mut State, items: &[Value]) {
        if items.is_empty() && self.breaks(Rule::ConfigEmptied) {
            return;
        }
        state.errors.clear();
        if !self.breaks(Rule::ConfigRevoked) {
            state.in_force.retain(|name, _| items.iter().any(|item| item["name"] == *name));
        }
        for item in items {
            let (name, id) = (text(&item["name"]), text(&item["id"]));
            let known = state.in_force.get(&name);
            let is_in_force = known.is_some_and(|known| *known == id || self.breaks(Rule::ConfigReplaced));
            if is_in_force && !self.breaks(Rule::ConfigRepeated) {
                continue;
            }
            if self.opens(client, item, &name, &id).await {
                state.in_force.insert(name, id);
                continue;
            }
            state.in_force.remove(&name);
            state.errors.insert(name, "it cannot be opened");
            if self.breaks(Rule::ConfigErrors) {
                return;
            }
        }
    }

    /// Whether this item is in the stream, and sealed to this host.
    async fn opens(&self, client: &Client, item: &Value, name: &str, id: &str) -> bool {
        let Some(sealed) = self.desired(client, &format!("item.{id}")).await else {
            return false;
        };
        let (epoch, sequence) = revision(item);
        let sealed_at = Revision { epoch, sequence };
        let sealed_for =
            SealedFor { host: &self.host, kind: ItemKind::Configuration, name, revision: sealed_at };
        self.key.open(&sealed_for, &sealed).is_ok()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The epoch and the sequence of a manifest or an item.
fn revision(value: &Value) -> (u64, u64) {
    (value["epoch"].as_u64().unwrap(), value["sequence"].as_u64().unwrap())
}
