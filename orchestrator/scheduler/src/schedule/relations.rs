//! What units want of each other, wherever they are: who follows whom, who replaces whom, and who is placed first.
//!
//! A unit depends on its peers (`MachineOf`), and loses its place to those that replace it. Both are arrows of a graph, from the unit that
//! decides to the one that is affected. Where the graph has no circle, units are placed in its order, and one that replaces another
//! displaces it. If a displacement could, through any chain of arrows, take away the unit that displaces, the two would take turns
//! forever. They are in a circle then, and exclude each other instead: whichever is placed stays, and the other one waits. Hence moves
//! come to an end: nothing ever displaces the first unit of the order, so it is placed once; then the same holds for the next one.

use std::collections::BTreeMap;

use super::components::components;
use super::site::{Named, Site};
use crate::UnitName;

/// The relations of the units that want a machine of their own.
#[derive(Debug)]
pub(super) struct Relations<'a> {
    order: Vec<Named<'a>>,
    followers: BTreeMap<&'a UnitName, Vec<Named<'a>>>,
    replaced: BTreeMap<&'a UnitName, Vec<Named<'a>>>,
    replacers: BTreeMap<&'a UnitName, Vec<&'a UnitName>>,
    opponents: BTreeMap<&'a UnitName, Vec<&'a UnitName>>,
}

impl<'a> Relations<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        let nodes: Vec<Named<'a>> = site.named_units().filter(|named| named.is_placeable()).collect();
        let numbers: BTreeMap<&UnitName, usize> =
            nodes.iter().enumerate().map(|(number, named)| (named.name, number)).collect();
        let mut arrows = vec![Vec::new(); nodes.len()];
        let mut replacements = Vec::new();
        let mut followers = BTreeMap::<&UnitName, Vec<Named<'a>>>::new();
        for (number, named) in nodes.iter().enumerate() {
            for peer in &named.unit.requirements.machine_of {
                followers.entry(peer).or_default().push(*named);
                if let Some(&peer) = numbers.get(peer) {
                    arrows[peer].push(number);
                }
            }
            if named.unit.requirements.replaces.is_empty() {
                continue;
            }
            for (other, _) in nodes.iter().enumerate().filter(|(_, other)| named.replaces(other.name)) {
                arrows[number].push(other);
                replacements.push((number, other));
            }
        }
        let ranks = components(&arrows);
        let mut ranked: Vec<(usize, Named<'a>)> = ranks.iter().copied().zip(nodes.iter().copied()).collect();
        ranked.sort_by_key(|(rank, named)| (*rank, named.name));
        let mut relations = Self {
            order: ranked.into_iter().map(|(_, named)| named).collect(),
            followers,
            replaced: BTreeMap::new(),
            replacers: BTreeMap::new(),
            opponents: BTreeMap::new(),
        };
        for (by, other) in replacements {
            relations.add_replacement(nodes[by], nodes[other], ranks[by] == ranks[other]);
        }
        relations
    }

    fn add_replacement(&mut self, by: Named<'a>, other: Named<'a>, is_circle: bool) {
        if is_circle {
            self.opponents.entry(by.name).or_default().push(other.name);
            self.opponents.entry(other.name).or_default().push(by.name);
        } else {
            self.replaced.entry(by.name).or_default().push(other);
            self.replacers.entry(other.name).or_default().push(by.name);
        }
    }

    /// All units that want a machine of their own, in the order in which they are placed.
    pub(super) fn order(&self) -> &[Named<'a>] {
        &self.order
    }

    /// The units that have to be where this one is.
    pub(super) fn followers(&self, unit: &UnitName) -> &[Named<'a>] {
        self.followers.get(unit).map(Vec::as_slice).unwrap_or_default()
    }

    /// The units that this one displaces.
    pub(super) fn replaced(&self, unit: &UnitName) -> &[Named<'a>] {
        self.replaced.get(unit).map(Vec::as_slice).unwrap_or_default()
    }

    /// The units that displace this one.
    pub(super) fn replacers(&self, unit: &UnitName) -> &[&'a UnitName] {
        self.replacers.get(unit).map(Vec::as_slice).unwrap_or_default()
    }

    /// The units of which only this one or the other may run.
    pub(super) fn opponents(&self, unit: &UnitName) -> &[&'a UnitName] {
        self.opponents.get(unit).map(Vec::as_slice).unwrap_or_default()
    }
}
