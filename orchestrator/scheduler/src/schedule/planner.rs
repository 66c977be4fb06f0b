//! Decides on moves, one after the other, each on the site as the moves before have left it.

use std::collections::VecDeque;

use super::draft::{Draft, Spot};
use super::moves::{Move, Taken};
use super::site::{Named, Site};
use crate::{MachineId, Requirements};

/// The moves decided so far.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    draft: Draft<'a>,
    moves: Vec<Move>,
}

impl<'a> Planner<'a> {
    pub(super) fn new(site: &'a Site) -> Self {
        Self { draft: Draft::new(site), moves: Vec::new() }
    }

    /// Takes and places units until nothing follows. It ends after at most three moves of each unit: whatever is taken from a machine
    /// that is not lost leaves it, which only the caller ends, and nothing is placed on a lost one.
    pub(super) fn moves(mut self) -> Vec<Move> {
        loop {
            let before = self.moves.len();
            self.take_unfit();
            self.place_waiting();
            if self.moves.len() == before {
                return self.moves;
            }
        }
    }

    /// Takes units that want to be evacuated from a machine, if they fit on another one together with those taken before.
    pub(super) fn evacuate(mut self, machine: &'a MachineId) -> Vec<Move> {
        for named in self.draft.relations.order().to_vec() {
            if !named.unit.requirements.evacuates || !self.draft.is_on(named.name, machine) {
                continue;
            }
            let rivals = self.draft.rivals(named);
            if let Some(target) = self.draft.best(named, &rivals, Some(machine)) {
                self.take(named, machine, Taken::Evacuated);
                // Reserves the place, so that the next unit does not count on it.
                self.draft.put(named, Some(Spot::On(target)));
            }
        }
        self.moves
    }

    fn take_unfit(&mut self) {
        // First whatever leaves in any case, so that nothing is driven out by a unit that leaves too.
        for (named, machine) in self.draft.placed() {
            if let Some(why) = self.draft.why_taken(named, machine) {
                self.take(named, machine, why);
            }
        }
        for (named, machine) in self.draft.placed() {
            let why = self.draft.why_taken(named, machine);
            if let Some(why) = why.or_else(|| self.draft.why_ousted(named, machine)) {
                self.take(named, machine, why);
            }
        }
    }

    fn place_waiting(&mut self) {
        // What no machine offers, whatever else is there: who asks for the same waits as well.
        let mut in_vain: Option<&Requirements> = None;
        for named in self.draft.relations.order().to_vec() {
            let requirements: &Requirements = &named.unit.requirements;
            if self.draft.spot(named.name).is_some() || in_vain == Some(requirements) {
                continue;
            }
            let rivals = self.draft.rivals(named);
            match self.draft.best(named, &rivals, None) {
                Some(machine) => self.place(named, machine),
                None if rivals.is_empty() && requirements.machine_of.is_empty() => {
                    in_vain = Some(requirements);
                }
                None => {}
            }
        }
    }

    /// Places a unit. Those that it replaces leave first, and are still in the way only of units that conflict with them.
    fn place(&mut self, named: Named<'a>, machine: &'a MachineId) {
        for replaced in self.draft.relations.replaced(named.name).to_vec() {
            self.take(replaced, machine, Taken::ReplacedBy { unit: named.name.clone() });
        }
        self.draft.put(named, Some(Spot::On(machine)));
        self.moves.push(Move::Place { unit: named.name.clone(), machine: *machine });
    }

    /// Takes a unit from a machine, if it is there, and then the units that have to be where it is.
    fn take(&mut self, named: Named<'a>, machine: &'a MachineId, why: Taken) {
        let mut first = Some(why);
        let mut affected = VecDeque::from([named]);
        while let Some(named) = affected.pop_front() {
            if !self.draft.is_on(named.name, machine) {
                continue;
            }
            if let Some(why) = first.take().or_else(|| self.draft.why_taken(named, machine)) {
                self.draft.leave(named, machine);
                self.moves.push(Move::Take { unit: named.name.clone(), machine: *machine, why });
                affected.extend(self.draft.relations.followers(named.name));
            }
        }
    }
}
