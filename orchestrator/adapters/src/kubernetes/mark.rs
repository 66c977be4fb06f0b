//! The mark of a node that was cordoned from here: who did it, under which fence, and what was before. Pure.
//!
//! Several sites may share a cluster. A site leaves alone what another one has marked, and a mark that it cannot read.

use std::collections::BTreeMap;

use os_upgrade_protocol::limits::bounded_message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The annotation.
pub const ANNOTATION: &str = "os-upgrade/cordon";

/// For whom a node is cordoned, and by which leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The site. Sites that share a cluster have different names.
    pub site: String,
    /// What of the site the cordon belongs to, such as a run's host.
    pub owner: String,
    /// The sequence of the leader's fence. That of a later leader of the same site is larger.
    pub fence: u64,
}

/// The value of the annotation. Members that are not known are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The site that has cordoned the node.
    pub site: String,
    /// What of the site the cordon belongs to.
    pub owner: String,
    /// The sequence of the fence under which the mark was written last.
    pub fence: u64,
    /// Whether the node was unschedulable before, as an administrator had left it.
    pub was_unschedulable: bool,
}

/// What the annotation of a node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marking {
    /// There is none.
    None,
    /// It is a mark, with the text as it stands there.
    Marked {
        /// The mark.
        mark: Mark,
        /// The text.
        text: String,
    },
    /// It cannot be read, so that nobody knows whose it is. Such a node is neither cordoned nor uncordoned from here.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

impl Marking {
    /// Reads the annotations of a node.
    pub fn read(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let Some(text) = annotations.and_then(|all| all.get(ANNOTATION)) else { return Self::None };
        match serde_json::from_str(text) {
            Ok(mark) => Self::Marked { mark, text: text.clone() },
            Err(error) => Self::Unreadable { detail: bounded_message(&error.to_string()) },
        }
    }
}

/// What a claim finds on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The node is cordoned for the claim, under its fence or an older one.
    Ours,
    /// The node is marked for the claim, and somebody has made it schedulable.
    ForeignUncordon,
    /// There is no mark.
    Unmarked,
    /// The mark belongs to something else, or a later leader has written it.
    Other(Mark),
    /// The mark cannot be read.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

/// The part of a node that a cordon is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// Whether the node takes no more pods.
    pub is_unschedulable: bool,
    /// Its mark.
    pub marking: Marking,
}

/// What to do to a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step<T> {
    /// There is nothing to do.
    Done(T),
    /// A merge patch, under the version of the node.
    Merge(Value),
    /// A JSON patch, which tests what it relies on.
    Json(Value),
}

/// What came of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cordoned {
    /// The node is cordoned and marked for the claim.
    Ours {
        /// Whether it was unschedulable before, and will be afterwards.
        was_unschedulable: bool,
    },
    /// A later leader of the site has marked the node.
    Superseded(Mark),
    /// Another site has marked the node.
    OtherSite(Mark),
    /// The mark cannot be read. It may be another site's.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

/// What came of an uncordon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncordoned {
    /// The node has no mark.
    Unmarked {
        /// Whether it is unschedulable, as an administrator has left it.
        is_unschedulable: bool,
    },
    /// The mark belongs to something else, or a later leader has written it.
    Other(Mark),
    /// The mark cannot be read.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

/// What came of a new fence for a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refenced {
    /// The mark has the fence of the claim.
    Done,
    /// The node is not marked.
    Unmarked,
    /// The mark belongs to something else, or a later leader has written it.
    Other(Mark),
    /// The mark cannot be read.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

/// The annotation as a JSON pointer.
fn pointer() -> String {
    format!("/metadata/annotations/{}", ANNOTATION.replace('/', "~1"))
}

fn text(mark: &Mark) -> String {
    json!(mark).to_string()
}

impl Claim {
    fn allows(&self, mark: &Mark) -> bool {
        mark.site == self.site && mark.owner == self.owner && mark.fence <= self.fence
    }

    /// What the claim finds on a node.
    pub fn standing(&self, cordon: &Cordon) -> Standing {
        match &cordon.marking {
            Marking::None => Standing::Unmarked,
            Marking::Unreadable { detail } => Standing::Unreadable { detail: detail.clone() },
            Marking::Marked { mark, .. } if !self.allows(mark) => Standing::Other(mark.clone()),
            Marking::Marked { .. } if cordon.is_unschedulable => Standing::Ours,
            Marking::Marked { .. } => Standing::ForeignUncordon,
        }
    }

    /// The step towards a cordon. The mark of an earlier claim of the site is taken over with what it remembers.
    pub(super) fn cordon(&self, cordon: &Cordon, version: &str) -> Step<Cordoned> {
        let was_unschedulable = match &cordon.marking {
            Marking::Unreadable { detail } => {
                return Step::Done(Cordoned::Unreadable { detail: detail.clone() });
            }
            // Fences of two sites cannot be compared.
            Marking::Marked { mark, .. } if mark.site != self.site => {
                return Step::Done(Cordoned::OtherSite(mark.clone()));
            }
            Marking::Marked { mark, .. } if mark.fence > self.fence => {
                return Step::Done(Cordoned::Superseded(mark.clone()));
            }
            // Whoever has made the node schedulable since has said how it is to be left.
            Marking::Marked { mark, .. } => mark.was_unschedulable && cordon.is_unschedulable,
            Marking::None => cordon.is_unschedulable,
        };
        let wanted =
            Mark { site: self.site.clone(), owner: self.owner.clone(), fence: self.fence, was_unschedulable };
        if let Marking::Marked { mark, .. } = &cordon.marking
            && *mark == wanted
            && cordon.is_unschedulable
        {
            return Step::Done(Cordoned::Ours { was_unschedulable });
        }
        Step::Merge(json!({
            "metadata": { "resourceVersion": version, "annotations": { ANNOTATION: text(&wanted) } },
            "spec": { "unschedulable": true },
        }))
    }

    /// The step towards a node as it was before the cordon.
    pub(super) fn uncordon(&self, cordon: &Cordon) -> Step<Uncordoned> {
        let (mark, text) = match &cordon.marking {
            Marking::None => {
                return Step::Done(Uncordoned::Unmarked { is_unschedulable: cordon.is_unschedulable });
            }
            Marking::Unreadable { detail } => {
                return Step::Done(Uncordoned::Unreadable { detail: detail.clone() });
            }
            Marking::Marked { mark, .. } if !self.allows(mark) => {
                return Step::Done(Uncordoned::Other(mark.clone()));
            }
            Marking::Marked { mark, text } => (mark, text),
        };
        let mut patch = vec![
            json!({ "op": "test", "path": pointer(), "value": text }),
            json!({ "op": "remove", "path": pointer() }),
        ];
        if cordon.is_unschedulable && !mark.was_unschedulable {
            patch.push(json!({ "op": "test", "path": "/spec/unschedulable", "value": true }));
            patch.push(json!({ "op": "remove", "path": "/spec/unschedulable" }));
        }
        Step::Json(Value::Array(patch))
    }

    /// The step towards a mark with the claim's fence, so that an earlier leader can undo nothing any more.
    pub(super) fn refence(&self, cordon: &Cordon) -> Step<Refenced> {
        match &cordon.marking {
            Marking::None => Step::Done(Refenced::Unmarked),
            Marking::Unreadable { detail } => Step::Done(Refenced::Unreadable { detail: detail.clone() }),
            Marking::Marked { mark, .. } if !self.allows(mark) => Step::Done(Refenced::Other(mark.clone())),
            Marking::Marked { mark, .. } if mark.fence == self.fence => Step::Done(Refenced::Done),
            Marking::Marked { mark, text: before } => {
                let after = text(&Mark { fence: self.fence, ..mark.clone() });
                Step::Json(json!([
                    { "op": "test", "path": pointer(), "value": before },
                    { "op": "replace", "path": pointer(), "value": after },
                ]))
            }
        }
    }
}

#[cfg(test)]
mod tests;
