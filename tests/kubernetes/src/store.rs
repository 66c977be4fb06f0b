//! Objects in memory, their versions, and what changed since when. It knows no rules: others decide what may be written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::resource::Resource;

/// The version of an empty store: versions below it belong to a past that was compacted.
const FIRST_VERSION: u64 = 1000;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Its resource.
    pub(crate) resource: Resource,
    /// Its namespace; empty where it has none.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Key {
    /// The key of an object.
    pub(crate) fn new(resource: Resource, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// All objects of one moment. A clone is another name for them, until there are others.
pub(crate) type Objects = Arc<BTreeMap<Key, Arc<Value>>>;

/// A change of one object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// The version that it made.
    pub(crate) version: u64,
    /// The object's key.
    pub(crate) key: Key,
    /// The object before, unless it was created. Of a deleted one this is the last state, under the deletion's version.
    pub(crate) before: Option<Arc<Value>>,
    /// The object afterwards, unless it was deleted.
    pub(crate) after: Option<Arc<Value>>,
}

/// The objects and their history.
#[derive(Debug)]
pub(crate) struct Store {
    objects: Objects,
    version: u64,
    oldest: u64,
    changes: Vec<Change>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            objects: Objects::default(),
            version: FIRST_VERSION,
            oldest: FIRST_VERSION,
            changes: Vec::new(),
        }
    }
}

/// An object with this version.
fn versioned(mut object: Value, version: u64) -> Arc<Value> {
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    Arc::new(object)
}

impl Store {
    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The oldest version from which changes are still known.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Forgets the changes up to now for those who have not begun to watch.
    pub(crate) fn compact(&mut self) {
        self.oldest = self.version;
    }

    /// All objects.
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// All objects of a resource, in one namespace or in all.
    pub(crate) fn list(&self, resource: Resource, namespace: Option<&str>) -> Vec<Arc<Value>> {
        list(&self.objects, resource, namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects of a resource that were changed after a version and are still there; all of them without one.
    pub(crate) fn changed(&self, resource: Resource, since: Option<u64>) -> Vec<Arc<Value>> {
        let Some(since) = since else { return self.list(resource, None) };
        let changes = self.changes_after(since).iter().map(|change| &change.key);
        let keys: BTreeSet<&Key> = changes.filter(|key| key.resource == resource).collect();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
    }

    /// The changes after a version.
    pub(crate) fn changes_after(&self, version: u64) -> &[Change] {
        let known = self.changes.partition_point(|change| change.version <= version);
        &self.changes[known..]
    }

    /// Adds an object under a new uid. Nothing may have its key.
    pub(crate) fn create(&mut self, key: Key, mut object: Value, now: &str) -> Arc<Value> {
        assert!(!self.objects.contains_key(&key), "{key:?} exists");
        object["apiVersion"] = json!(key.resource.api_version());
        object["kind"] = json!(key.resource.kind);
        object["metadata"]["uid"] = json!(Uuid::new_v4().to_string());
        object["metadata"]["creationTimestamp"] = json!(now);
        self.version += 1;
        let object = versioned(object, self.version);
        Arc::make_mut(&mut self.objects).insert(key.clone(), Arc::clone(&object));
        self.record(key, None, Some(Arc::clone(&object)));
        object
    }

    /// Replaces an object. One that is equal to it already keeps its version.
    pub(crate) fn put(&mut self, key: &Key, object: Value) -> Arc<Value> {
        let before = self.get(key).unwrap_or_else(|| panic!("{key:?} does not exist"));
        let same = versioned(object, self.version_of(&before));
        if same == before {
            return before;
        }
        self.version += 1;
        let after = versioned(Arc::unwrap_or_clone(same), self.version);
        Arc::make_mut(&mut self.objects).insert(key.clone(), Arc::clone(&after));
        self.record(key.clone(), Some(before), Some(Arc::clone(&after)));
        after
    }

    /// Removes an object, if it is there.
    pub(crate) fn remove(&mut self, key: &Key) {
        if self.objects.contains_key(key)
            && let Some(before) = Arc::make_mut(&mut self.objects).remove(key)
        {
            self.version += 1;
            let last = versioned(Value::clone(&before), self.version);
            self.record(key.clone(), Some(last), None);
        }
    }

    fn version_of(&self, object: &Value) -> u64 {
        object["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or(self.version)
    }

    fn record(&mut self, key: Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.changes.push(Change { version: self.version, key, before, after });
    }
}

/// The objects of a resource among these, in one namespace or in all, ordered by namespace and name.
pub(crate) fn list<'a>(
    objects: &'a Objects,
    resource: Resource,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    let first = Key::new(resource, namespace.unwrap_or_default(), "");
    objects
        .range(first..)
        .take_while(move |(key, _)| key.resource == resource)
        .filter(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
}
