//! Lists, page by page, each page of the moment at which the first was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::request::Request;
use crate::store::{self, Key, Objects, Store};

/// The most lists that have pages left; the tokens of older ones expire.
const BEGUN_MAX: usize = 100;

/// The objects of a version, for the pages that follow, and those that the cache shows while it stands still.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    begun: BTreeMap<u64, Objects>,
    cache: Option<(u64, Objects)>,
}

/// A version of the future, which neither lists nor reads wait for.
pub(crate) fn check_version(asked: &str, store: &Store) -> Result<(), Failure> {
    let current = store.version();
    if asked.is_empty() {
        return Ok(());
    }
    let Ok(version) = asked.parse::<u64>() else {
        let why = format!("strconv.ParseUint: parsing \"{asked}\": invalid syntax");
        let message = format!("invalid resource version: resourceVersion: Invalid value: \"{asked}\": {why}");
        return Err(Failure::bad_request(message));
    };
    if version > current {
        let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
        let message = format!("Too large resource version: {version}, current: {current}");
        return Err(Failure::new(504, "Timeout", message)
            .details(json!({ "causes": [cause] }))
            .retry_after(1));
    }
    Ok(())
}

/// A continue token: the version of the first page, 0 for the current one, and the object before the next page.
fn token(version: u64, after: &Key) -> String {
    let text =
        json!({ "v": "meta.k8s.io/v1", "rv": version, "start": [after.namespace, after.name] }).to_string();
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

fn read_token(text: &str) -> Option<(u64, String, String)> {
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let token: Value = serde_json::from_slice(&decoded).ok()?;
    let start = |index: usize| token["start"][index].as_str().map(str::to_owned);
    Some((token["rv"].as_u64()?, start(0)?, start(1)?))
}

impl Lists {
    /// Makes every continue token expire.
    pub(crate) fn expire(&mut self) {
        self.begun.clear();
    }

    /// Makes the cache stand still, or follow again.
    pub(crate) fn stall(&mut self, is_stalled: bool, store: &Store) {
        self.cache = is_stalled.then(|| (store.version(), Arc::clone(store.objects())));
    }

    /// The version up to which the cache follows.
    pub(crate) fn cached_version(&self, store: &Store) -> u64 {
        self.cache.as_ref().map_or(store.version(), |(version, _)| *version)
    }

    /// What the cache shows.
    pub(crate) fn cached<'a>(&'a self, store: &'a Store) -> &'a Objects {
        self.cache.as_ref().map_or(store.objects(), |(_, objects)| objects)
    }

    /// One object. With `resourceVersion=0` it is read from the cache.
    pub(crate) fn get(&self, request: &Request, key: &Key, store: &Store) -> Result<Value, Failure> {
        let asked = request.parameter("resourceVersion");
        check_version(asked, store)?;
        let objects = if asked == "0" { self.cached(store) } else { store.objects() };
        let found = objects.get(key).ok_or_else(|| Failure::not_found(&key.resource, &key.name))?;
        Ok(Value::clone(found))
    }

    /// One page of a list.
    pub(crate) fn list(&mut self, request: &Request, store: &Store) -> Result<Value, Failure> {
        let (resource, namespace) = (request.target.resource, request.target.namespace.as_deref());
        let (selector, limit) = (request.selector()?, request.number("limit")?.unwrap_or_default());
        let (asked, token_text) = (request.parameter("resourceVersion"), request.parameter("continue"));
        let mut start = None;
        let (version, objects) = if token_text.is_empty() {
            check_version(asked, store)?;
            if asked == "0" {
                (self.cached_version(store), Arc::clone(self.cached(store)))
            } else {
                (store.version(), Arc::clone(store.objects()))
            }
        } else {
            if !asked.is_empty() && asked != "0" {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Failure::bad_request(message));
            }
            let not_valid = || {
                Failure::bad_request(
                    "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
                )
            };
            let (version, in_namespace, name) = read_token(token_text).ok_or_else(not_valid)?;
            let after = Key::new(resource, &in_namespace, &name);
            let found = if version == 0 {
                (store.version(), Arc::clone(store.objects()))
            } else {
                let begun = self.begun.get(&version).ok_or_else(|| expired(&after))?;
                (version, Arc::clone(begun))
            };
            start = Some(after);
            found
        };
        let is_next = |key: &Key| start.as_ref().is_none_or(|start| key > start);
        let selected: Vec<(&Key, &Arc<Value>)> = store::list(&objects, resource, namespace)
            .filter(|(key, object)| is_next(key) && selector.matches(object))
            .collect();
        // The cache ignores the limit.
        let limit = if asked == "0" { 0 } else { usize::try_from(limit).unwrap_or(usize::MAX) };
        let page = if limit == 0 { selected.len() } else { limit.min(selected.len()) };
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if page < selected.len() {
            metadata["continue"] = json!(token(version, selected[page - 1].0));
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(selected.len() - page);
            }
            self.begun.insert(version, Arc::clone(&objects));
            if self.begun.len() > BEGUN_MAX {
                self.begun.pop_first();
            }
        }
        let items: Vec<Value> = selected[..page].iter().map(|(_, object)| item(object)).collect();
        Ok(json!({
            "kind": format!("{}List", resource.kind),
            "apiVersion": resource.api_version(),
            "metadata": metadata,
            "items": items,
        }))
    }
}

/// An object in a list, which has the kind of all.
fn item(object: &Value) -> Value {
    let mut item = object.clone();
    let fields = item.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    item
}

/// 410 of a continue token, with one that goes on with the objects of now.
fn expired(after: &Key) -> Failure {
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                   list without the continue parameter, or use the continue token in this response to retrieve the \
                   remainder of the results. Continuing with the provided token results in an inconsistent list - \
                   objects that were created, modified, or deleted between the time the first chunk was returned and \
                   now may show up in the list.";
    Failure::new(410, "Expired", message).continue_token(&token(0, after))
}
