//! The mark of a node that was cordoned from here: who did it, under which fence, and what was before. Pure.
//!
//! Several sites may share a cluster. A site leaves alone what another one has marked, and a mark that it cannot read.

use chrono::{DateTime, Utc};
use os_upgrade_console::purpose;
use os_upgrade_kernel::{NodeFence, Owner};
use os_upgrade_protocol::limits::bounded_message;
use os_upgrade_protocol::{HostName, RunId, time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The annotation.
pub const ANNOTATION: &str = "os-upgrade/cordon";
/// Where a node says whether it takes pods, as a JSON pointer.
const UNSCHEDULABLE: &str = "/spec/unschedulable";

/// Who speaks for a node: the leader of a site. A host has one slot at most, so the site and the fence say all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The site. Sites that share a cluster have different names.
    pub site: String,
    /// The host of the node.
    pub host: HostName,
    /// The leader's fence. That of a later leader of the same journal is greater.
    pub fence: NodeFence,
    /// When the journal of the site was created, which tells it from others; absent if that is not known.
    pub journal: Option<DateTime<Utc>>,
    /// The fence in a mark of another journal of the site that is taken over all the same.
    pub takes_over: Option<NodeFence>,
}

/// The value of the annotation. Members that are not known are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The site that has cordoned the node.
    pub site: String,
    /// What of the site the cordon belongs to, such as a run. It is for people.
    pub owner: String,
    /// The host of the node, by which it is found once nothing else says so.
    pub host: HostName,
    /// The fence under which the mark was written last.
    pub fence: NodeFence,
    /// When the journal was created that the fence is of. Older versions do not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<DateTime<Utc>>,
    /// Whether the node was unschedulable before, as an administrator had left it.
    pub was_unschedulable: bool,
}

impl Mark {
    /// Whether it is known to be of another journal than the one that was created at this time.
    pub fn is_of_other_journal(&self, journal: Option<DateTime<Utc>>) -> bool {
        self.journal.zip(journal).is_some_and(|(theirs, own)| theirs != own)
    }
}

/// What a mark says to people besides. Nothing is decided by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Note {
    /// When the node was cordoned, in whole seconds.
    #[serde(default)]
    pub since: Option<String>,
    /// What it was cordoned for.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Note {
    /// Reads the text of a mark. That of an older version has none.
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// What the annotation of a node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marking {
    /// There is none.
    None,
    /// It is a mark, with the text as it stands there.
    Marked { mark: Mark, text: String },
    /// It cannot be read, so that nobody knows whose it is. Such a node is neither cordoned nor uncordoned from here.
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

impl Marking {
    /// Reads the annotation of a node.
    pub fn read(annotation: Option<&str>) -> Self {
        let Some(text) = annotation else { return Self::None };
        match serde_json::from_str(text) {
            Ok(mark) => Self::Marked { mark, text: text.to_owned() },
            Err(error) => Self::Unreadable { detail: bounded_message(&error.to_string()) },
        }
    }
}

/// What a claim finds on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The node is cordoned for the site, under the claim's fence or an older one.
    Ours,
    /// The node is marked for the site, and somebody has made it schedulable.
    ForeignUncordon,
    /// There is no mark.
    Unmarked,
    /// A later leader of the site, or one of another journal, has marked the node.
    Superseded(Mark),
    /// Another site has marked the node.
    OtherSite(Mark),
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

impl<T> Step<T> {
    /// The same step, towards what `map` makes of the outcome.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Done(outcome) => Step::Done(map(outcome)),
            Self::Merge(patch) => Step::Merge(patch),
            Self::Json(patch) => Step::Json(patch),
        }
    }
}

/// What came of a cordon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cordoned {
    /// The node is cordoned, and its mark has the claim's fence.
    Ours {
        /// Whether it was unschedulable before, and will be afterwards.
        was_unschedulable: bool,
    },
    /// A later leader of the site, or one of another journal, has marked the node.
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
    /// A later leader of the site, or one of another journal, has marked the node.
    Superseded(Mark),
    /// Another site has marked the node.
    OtherSite(Mark),
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
    Done {
        /// Whether the node was unschedulable before, and will be afterwards.
        was_unschedulable: bool,
    },
    /// The node is not marked.
    Unmarked,
    /// A later leader of the site, or one of another journal, has marked the node.
    Superseded(Mark),
    /// Another site has marked the node.
    OtherSite(Mark),
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

/// A mark with a note.
fn noted(mark: &Mark, note: &Note) -> String {
    let mut text = json!(mark);
    for (key, value) in [("since", &note.since), ("reason", &note.reason)] {
        if let Some(value) = value {
            text[key] = json!(value);
        }
    }
    text.to_string()
}

fn is_unschedulable() -> Value {
    json!({ "op": "test", "path": UNSCHEDULABLE, "value": true })
}

impl Claim {
    /// What the claim finds on a node.
    pub fn standing(&self, cordon: &Cordon) -> Standing {
        match &cordon.marking {
            Marking::None => Standing::Unmarked,
            Marking::Unreadable { detail } => Standing::Unreadable { detail: detail.clone() },
            // Fences of two sites cannot be compared.
            Marking::Marked { mark, .. } if mark.site != self.site => Standing::OtherSite(mark.clone()),
            Marking::Marked { mark, .. } if self.is_superseded_by(mark) => Standing::Superseded(mark.clone()),
            Marking::Marked { .. } if cordon.is_unschedulable => Standing::Ours,
            Marking::Marked { .. } => Standing::ForeignUncordon,
        }
    }

    /// Whether a later leader, or one of another journal, has written the mark.
    fn is_superseded_by(&self, mark: &Mark) -> bool {
        self.fence.yields_to(mark.fence, mark.is_of_other_journal(self.journal))
            && Some(mark.fence) != self.takes_over
    }

    /// The step that writes the claim's fence into a mark, which must not have changed.
    fn rewrite<T>(&self, mark: &Mark, before: &str, more: Option<Value>) -> Step<T> {
        let after = Mark { fence: self.fence, journal: self.journal, ..mark.clone() };
        let after = noted(&after, &Note::read(before));
        let mut patch = vec![json!({ "op": "test", "path": pointer(), "value": before })];
        patch.extend(more);
        patch.push(json!({ "op": "replace", "path": pointer(), "value": after }));
        Step::Json(Value::Array(patch))
    }

    /// The step towards a cordon for `owner`. The mark of an earlier cordon of the site is taken over with what it remembers. Without a
    /// mark, the node was unschedulable before if it is so now, unless the site knows that it is so because of the site alone
    /// (`is_ours`), and somebody has removed its mark.
    pub(super) fn cordon(
        &self,
        owner: &str,
        cordon: &Cordon,
        is_ours: bool,
        version: &str,
        now: DateTime<Utc>,
    ) -> Step<Cordoned> {
        let before = match self.standing(cordon) {
            Standing::Unreadable { detail } => return Step::Done(Cordoned::Unreadable { detail }),
            Standing::OtherSite(mark) => return Step::Done(Cordoned::OtherSite(mark)),
            Standing::Superseded(mark) => return Step::Done(Cordoned::Superseded(mark)),
            Standing::Ours | Standing::ForeignUncordon | Standing::Unmarked => &cordon.marking,
        };
        let was_unschedulable = match before {
            // Whoever has made the node schedulable since has said how it is to be left.
            Marking::Marked { mark, .. } => mark.was_unschedulable && cordon.is_unschedulable,
            Marking::None | Marking::Unreadable { .. } => cordon.is_unschedulable && !is_ours,
        };
        let wanted = Mark {
            site: self.site.clone(),
            owner: owner.to_owned(),
            host: self.host.clone(),
            fence: self.fence,
            journal: self.journal,
            was_unschedulable,
        };
        if let Marking::Marked { mark, .. } = before
            && *mark == wanted
            && cordon.is_unschedulable
        {
            return Step::Done(Cordoned::Ours { was_unschedulable });
        }
        let since = match before {
            Marking::Marked { mark, text } if mark.owner == owner && cordon.is_unschedulable => {
                Note::read(text).since
            }
            Marking::Marked { .. } | Marking::None | Marking::Unreadable { .. } => None,
        };
        let note = Note {
            since: Some(since.unwrap_or_else(|| time::format(now))),
            reason: RunId::new(owner).ok().map(|run| format!("drained {}", purpose(&Owner::from(run)))),
        };
        Step::Merge(json!({
            "metadata": { "resourceVersion": version, "annotations": { ANNOTATION: noted(&wanted, &note) } },
            "spec": { "unschedulable": true },
        }))
    }

    /// The step towards a cordon with the claim's fence, where the site has one. Nothing is cordoned anew.
    pub(super) fn keep(&self, cordon: &Cordon) -> Step<Standing> {
        match (self.standing(cordon), &cordon.marking) {
            (Standing::Ours, Marking::Marked { mark, text }) if mark.fence != self.fence => {
                self.rewrite(mark, text, Some(is_unschedulable()))
            }
            (standing, _) => Step::Done(standing),
        }
    }

    /// The step towards a node as it was before the cordon. One that is unschedulable because of this site alone, as the site knows
    /// (`is_ours`), is made schedulable even if somebody has removed its mark.
    pub(super) fn uncordon(&self, cordon: &Cordon, version: &str, is_ours: bool) -> Step<Uncordoned> {
        let is_unmarked = || Uncordoned::Unmarked { is_unschedulable: cordon.is_unschedulable };
        match self.standing(cordon) {
            Standing::Unmarked if is_ours && cordon.is_unschedulable => {
                return Step::Merge(json!({
                    "metadata": { "resourceVersion": version },
                    "spec": { "unschedulable": null },
                }));
            }
            Standing::Unmarked => return Step::Done(is_unmarked()),
            Standing::Unreadable { detail } => return Step::Done(Uncordoned::Unreadable { detail }),
            Standing::OtherSite(mark) => return Step::Done(Uncordoned::OtherSite(mark)),
            Standing::Superseded(mark) => return Step::Done(Uncordoned::Superseded(mark)),
            Standing::Ours | Standing::ForeignUncordon => {}
        }
        let Marking::Marked { mark, text } = &cordon.marking else { return Step::Done(is_unmarked()) };
        let mut patch = vec![
            json!({ "op": "test", "path": pointer(), "value": text }),
            json!({ "op": "remove", "path": pointer() }),
        ];
        if cordon.is_unschedulable && !mark.was_unschedulable {
            patch.push(is_unschedulable());
            patch.push(json!({ "op": "remove", "path": UNSCHEDULABLE }));
        }
        Step::Json(Value::Array(patch))
    }

    /// The step towards a mark with the claim's fence, so that an earlier leader can undo nothing any more.
    pub(super) fn refence(&self, cordon: &Cordon) -> Step<Refenced> {
        match (self.standing(cordon), &cordon.marking) {
            (Standing::Unreadable { detail }, _) => Step::Done(Refenced::Unreadable { detail }),
            (Standing::OtherSite(mark), _) => Step::Done(Refenced::OtherSite(mark)),
            (Standing::Superseded(mark), _) => Step::Done(Refenced::Superseded(mark)),
            (Standing::Ours | Standing::ForeignUncordon, Marking::Marked { mark, text }) => {
                if mark.fence == self.fence {
                    Step::Done(Refenced::Done { was_unschedulable: mark.was_unschedulable })
                } else {
                    self.rewrite(mark, text, None)
                }
            }
            (Standing::Unmarked | Standing::Ours | Standing::ForeignUncordon, _) => {
                Step::Done(Refenced::Unmarked)
            }
        }
    }
}

#[cfg(test)]
mod tests;
