//! The calls of the API that a drain needs, one function each.

use std::time::Duration;

use hyper::Method;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use os_upgrade_protocol::limits::bounded_message;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::{Client, Outgoing};
use super::error::Error;
use super::eviction::{self, Verdict};
use super::objects::{Budget, Namespace, Node, OBJECTS_MAX, Page, Pod};
use super::plan::PodRef;
use super::request_rate::Turn;
use super::rights::{
    CREATE_EVENT, DELETE_POD, EVICT_POD, GET_NODE, LIST_BUDGETS, LIST_NAMESPACES, LIST_NODES, LIST_PODS,
    PATCH_NODE, REVIEW_RIGHTS, Right,
};

/// The objects of a page.
const PAGE_OBJECTS: usize = 250;
/// The most pages of a list.
const PAGES_MAX: usize = OBJECTS_MAX / PAGE_OBJECTS;
/// The most bytes of a list, over all its pages.
const LIST_BYTES_MAX: usize = 64 << 20;
/// How often a list begins anew when its continue token expires.
const LISTS_MAX: usize = 3;
/// Where events about objects without a namespace are.
pub(super) const EVENT_NAMESPACE: &str = "default";
/// The status of an expired token.
const GONE: u16 = 410;

/// What has a meaning in URLs. Names of objects contain none of it.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How a node is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// The members of an object.
    Merge,
    /// A list of operations.
    Json,
}

/// Whether a write is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is. A pod gets this time to end instead of its own, if there is one.
    Real {
        /// In whole seconds, 1 at least.
        grace: Option<Duration>,
    },
    /// It is only judged.
    DryRun,
}

/// What is listed.
struct List {
    right: Right,
    path: String,
    /// It begins with `&`, or is empty.
    query: String,
    /// What is listed, for operators.
    what: String,
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{}", encode(name))
}

fn pod_path(pod: &PodRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", encode(&pod.namespace), encode(&pod.name))
}

impl Client {
    /// A node as it is.
    ///
    /// # Errors
    /// The request fails, or there is no such node.
    pub(crate) async fn node(&self, name: &str) -> Result<Node, Error> {
        if name.is_empty() {
            // The path would be that of the list.
            return Err(Error::NotFound { right: GET_NODE, detail: "a node without a name".to_owned() });
        }
        self.get(GET_NODE, node_path(name)).await
    }

    /// All nodes.
    ///
    /// # Errors
    /// A request fails.
    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let (path, what) = ("/api/v1/nodes".to_owned(), "nodes".to_owned());
        self.list(List { right: LIST_NODES, path, query: String::new(), what }).await
    }

    /// The nodes whose label `key` has this value.
    ///
    /// # Errors
    /// A request fails.
    pub(crate) async fn nodes_labelled(&self, key: &str, value: &str) -> Result<Vec<Node>, Error> {
        let query = format!("&labelSelector={}", encode(&format!("{key}={value}")));
        let (path, what) = ("/api/v1/nodes".to_owned(), format!("nodes with the label {key}={value}"));
        self.list(List { right: LIST_NODES, path, query, what }).await
    }

    /// Changes a node, and returns it.
    ///
    /// # Errors
    /// The request fails, or the patch does not apply.
    pub(super) async fn patch_node(
        &self,
        turn: Turn,
        name: &str,
        kind: PatchKind,
        patch: &Value,
    ) -> Result<Node, Error> {
        let content_type = match kind {
            PatchKind::Merge => "application/merge-patch+json",
            PatchKind::Json => "application/json-patch+json",
        };
        let body = patch.to_string().into_bytes();
        let outgoing = Outgoing { method: Method::PATCH, path: node_path(name), content_type, body };
        self.send(turn, outgoing).await?.object(PATCH_NODE)
    }

    /// The pods of a node, not from a cache: without a version, a list shows what is there now.
    ///
    /// # Errors
    /// A request fails.
    pub(super) async fn pods_of(&self, node: &str) -> Result<Vec<Pod>, Error> {
        let query = format!("&fieldSelector={}", encode(&format!("spec.nodeName={node}")));
        let (path, what) = ("/api/v1/pods".to_owned(), format!("pods of the node {node}"));
        self.list(List { right: LIST_PODS, path, query, what }).await
    }

    /// All namespaces.
    ///
    /// # Errors
    /// A request fails.
    pub(super) async fn namespaces(&self) -> Result<Vec<Namespace>, Error> {
        let (path, what) = ("/api/v1/namespaces".to_owned(), "namespaces".to_owned());
        self.list(List { right: LIST_NAMESPACES, path, query: String::new(), what }).await
    }

    /// The disruption budgets of a namespace.
    ///
    /// # Errors
    /// A request fails.
    pub(super) async fn budgets_of(&self, namespace: &str) -> Result<Vec<Budget>, Error> {
        let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", encode(namespace));
        let what = format!("disruption budgets of the namespace {namespace}");
        self.list(List { right: LIST_BUDGETS, path, query: String::new(), what }).await
    }

    /// Whether this client has a right in a namespace, or in all of them if that is empty, as the server says.
    ///
    /// # Errors
    /// The request fails.
    pub async fn has_right(&self, right: Right, namespace: &str) -> Result<bool, Error> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "namespace": namespace,
                "verb": right.verb,
                "group": right.group,
                "resource": resource,
                "subresource": subresource,
            } },
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        let body = body.to_string().into_bytes();
        let outgoing = Outgoing { method: Method::POST, path, content_type: "application/json", body };
        let answer = self.send(self.turn().await, outgoing).await?;
        let review: SelfSubjectAccessReview = answer.object(REVIEW_RIGHTS)?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }

    /// Writes an event about a node. One of the same name, which says the same, may be there.
    ///
    /// # Errors
    /// The request fails.
    pub(super) async fn create_event(&self, event: &Value) -> Result<(), Error> {
        let path = format!("/api/v1/namespaces/{EVENT_NAMESPACE}/events");
        let body = event.to_string().into_bytes();
        let outgoing = Outgoing { method: Method::POST, path, content_type: "application/json", body };
        let answer = self.send(self.turn().await, outgoing).await?;
        if answer.is_success() { Ok(()) } else { Err(answer.error(CREATE_EVENT)) }
    }

    /// Evicts exactly this pod.
    ///
    /// # Errors
    /// The request fails. Whatever is about the pod is no error.
    pub(super) async fn evict(&self, turn: Turn, pod: &PodRef, mode: Mode) -> Result<Verdict, Error> {
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "namespace": pod.namespace, "name": pod.name },
            "deleteOptions": delete_options(pod, mode),
        });
        self.end_pod(turn, EVICT_POD, Method::POST, format!("{}/eviction", pod_path(pod)), &body).await
    }

    /// Deletes exactly this pod.
    ///
    /// # Errors
    /// The request fails. Whatever is about the pod is no error.
    pub(super) async fn delete_pod(&self, turn: Turn, pod: &PodRef, mode: Mode) -> Result<Verdict, Error> {
        let options = delete_options(pod, mode);
        self.end_pod(turn, DELETE_POD, Method::DELETE, pod_path(pod), &options).await
    }

    async fn end_pod(
        &self,
        turn: Turn,
        right: Right,
        method: Method,
        path: String,
        body: &Value,
    ) -> Result<Verdict, Error> {
        let body = body.to_string().into_bytes();
        let answer =
            self.send(turn, Outgoing { method, path, content_type: "application/json", body }).await?;
        eviction::read(&answer, right)
    }

    async fn get<T: DeserializeOwned>(&self, right: Right, path: String) -> Result<T, Error> {
        self.send(self.turn().await, Outgoing::get(path)).await?.object(right)
    }

    /// All objects of a list that shows one moment.
    async fn list<T: DeserializeOwned>(&self, list: List) -> Result<Vec<T>, Error> {
        let mut lists = 1;
        loop {
            match self.list_once(&list).await {
                Err(Error::Refused { status: GONE, .. }) if lists < LISTS_MAX => lists += 1,
                result => return result,
            }
        }
    }

    async fn list_once<T: DeserializeOwned>(&self, list: &List) -> Result<Vec<T>, Error> {
        let List { right, path, query, what } = list;
        let too_large = || Error::ListTooLarge {
            right: *right,
            what: bounded_message(what),
            mebibytes_max: LIST_BYTES_MAX >> 20,
            objects_max: OBJECTS_MAX,
        };
        let (mut objects, mut token, mut bytes_left) = (Vec::new(), String::new(), LIST_BYTES_MAX);
        for _ in 0..PAGES_MAX {
            let outgoing = Outgoing::get(format!("{path}?limit={PAGE_OBJECTS}{query}{token}"));
            let answer = match self.send_up_to(self.turn().await, outgoing, bytes_left).await {
                Err(Error::AnswerTooLarge { .. }) => return Err(too_large()),
                result => result?,
            };
            bytes_left -= answer.body.len();
            let page: Page<T> = answer.object(*right)?;
            if objects.len() + page.items.count > OBJECTS_MAX {
                return Err(too_large());
            }
            objects.extend(page.items.first);
            let next = page.metadata.and_then(|metadata| metadata.token);
            let Some(next) = next.filter(|next| !next.is_empty()) else { return Ok(objects) };
            token = format!("&continue={}", encode(&next));
        }
        Err(too_large())
    }
}

fn delete_options(pod: &PodRef, mode: Mode) -> Value {
    let mut options =
        json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": pod.uid } });
    match mode {
        Mode::DryRun => options["dryRun"] = json!(["All"]),
        Mode::Real { grace: Some(grace) } => options["gracePeriodSeconds"] = json!(grace.as_secs()),
        Mode::Real { grace: None } => {}
    }
    options
}

#[cfg(test)]
mod tests;
