//! Which node of a cluster a host is.

use std::collections::BTreeMap;

use os_upgrade_protocol::HostName;

use super::read::{Shape, Value, wrong};
use super::selector::{is_label_key, is_subdomain};
use crate::problem::Problem;
use crate::raw::{Located, Raw};

/// How the node of a host is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSource {
    /// It has the host's name.
    Host,
    /// Its label with this key has the host's name as value.
    Label(String),
    /// A table has its name.
    Mapping,
}

impl Value for NodeSource {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "\"host\", \"label:KEY\" or \"mapping\"".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("label:")) {
            ("host", _) => Ok(Self::Host),
            ("mapping", _) => Ok(Self::Mapping),
            (_, Some(key)) if is_label_key(key) => Ok(Self::Label(key.to_owned())),
            (_, Some(key)) => Err(format!(": {key:?} is not the key of a label")),
            (_, None) => Err(String::new()),
        }
    }
}

/// Hosts with the names of their nodes. No two hosts have the same node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeNames {
    nodes: BTreeMap<HostName, String>,
    hosts: BTreeMap<String, HostName>,
}

impl NodeNames {
    /// Whether it names no host.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every host with its node's name.
    pub fn iter(&self) -> impl Iterator<Item = (&HostName, &str)> {
        self.nodes.iter().map(|(host, node)| (host, node.as_str()))
    }

    /// Adds a host, or says what is wrong.
    fn add(&mut self, host: &str, NodeName(node): NodeName) -> Result<(), String> {
        let host =
            HostName::first_seen(host).map_err(|error| format!("{host:?} is no name of a host: {error}"))?;
        if let Some(other) = self.hosts.insert(node.clone(), host.clone()) {
            return Err(format!("{node} is the node of {other} already"));
        }
        match self.nodes.insert(host.clone(), node) {
            Some(_) => Err(format!("{host} is listed twice")),
            None => Ok(()),
        }
    }

    fn read_entries(
        name: &str,
        entries: &[(Located<String>, Located<Raw>)],
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let before = problems.len();
        let mut names = Self::default();
        for (host, node) in entries {
            let key = format!("{name}.{}", host.value);
            if let Raw::Table(_) = node.value {
                let hint = "; the name of a host with a dot needs quotes";
                problems.push(host.problem(wrong::<NodeName>(&key, &node.value, hint)));
            } else if let Some(node) = NodeName::read(&key, node, problems)
                && let Err(why) = names.add(&host.value, node)
            {
                problems.push(host.problem(format!("{name}: {why}")));
            }
        }
        (problems.len() == before).then_some(names)
    }
}

impl Value for NodeNames {
    const SHAPE: Shape = Shape::Table;

    fn expected() -> String {
        "hosts with their nodes, such as h01 = \"node-1\" (in a variable: h01=node-1,h02=node-2)".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut names = Self::default();
        for entry in text.split(',') {
            // Names of nodes have no such sign, and those of hosts may.
            let (host, node) = entry.rsplit_once('=').ok_or_else(String::new)?;
            let node = NodeName::parse(node.trim()).map_err(|hint| format!("{hint} in {entry:?}"))?;
            names.add(host.trim(), node).map_err(|why| format!(": {why}"))?;
        }
        Ok(names)
    }

    fn read(name: &str, raw: &Located<Raw>, problems: &mut Vec<Problem>) -> Option<Self> {
        let hint = match &raw.value {
            Raw::Table(entries) => return Self::read_entries(name, entries, problems),
            Raw::Variable(text) => match Self::parse(text) {
                Ok(names) => return Some(names),
                Err(hint) => hint,
            },
            Raw::String(_) | Raw::Integer(_) | Raw::Boolean(_) | Raw::Other(_) => String::new(),
        };
        problems.push(raw.problem(wrong::<Self>(name, &raw.value, &hint)));
        None
    }
}

/// The name of one node.
struct NodeName(String);

impl Value for NodeName {
    const SHAPE: Shape = Shape::String;

    fn expected() -> String {
        "the name of a node".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let hint = ": it consists of lower-case letters, digits, dashes and dots";
        if is_subdomain(text) { Ok(Self(text.to_owned())) } else { Err(hint.to_owned()) }
    }
}

/// What happens to the node of a host that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedNode {
    /// It stays cordoned, until an operator looks after it.
    KeepCordoned,
    /// It is uncordoned.
    Uncordon,
}
