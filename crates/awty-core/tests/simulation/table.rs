use awty_core::{Check, KeepHistory, Outcome, Time};
use std::collections::{BTreeMap, BTreeSet};

pub type Id = usize;

pub struct Row {
    pub job: usize,
    pub role: usize,
    pub entity: usize,
    pub check: Check,
    pub version: u64,
    pub held: bool,
    pub runs: u32,
    pub locked: bool,
}

#[derive(Default)]
pub struct Table {
    pub rows: BTreeMap<Id, Row>,
    pub history: BTreeMap<Id, Outcome>,
    pub not_kept: usize,
    by_slot: BTreeSet<(usize, Time, Id)>,
    by_entity: BTreeMap<(usize, usize), Id>,
    next_id: Id,
}

impl Table {
    pub fn pending(&self, job: usize, entity: usize) -> Option<Id> {
        self.by_entity.get(&(job, entity)).copied()
    }

    pub fn of_role(&self, role: usize) -> impl Iterator<Item = (Time, Id)> {
        self.by_slot.range((role, Time::MIN_UTC, 0)..(role + 1, Time::MIN_UTC, 0)).map(|(_, slot, id)| (*slot, *id))
    }

    pub fn insert(&mut self, job: usize, role: usize, entity: usize, slot: Time) -> Id {
        let id = self.next_id;
        self.next_id += 1;
        let check = Check { slot, check_count: 0, attempt: 0 };
        let row = Row { job, role, entity, check, version: 0, held: false, runs: 0, locked: false };
        self.rows.insert(id, row);
        self.by_slot.insert((role, slot, id));
        self.by_entity.insert((job, entity), id);
        id
    }

    pub fn update(&mut self, id: Id, check: Check) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        self.by_slot.remove(&(row.role, row.check.slot, id));
        self.by_slot.insert((row.role, check.slot, id));
        row.check = check;
        row.version += 1;
    }

    pub fn end(&mut self, id: Id, outcome: Outcome, keep: KeepHistory) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.by_slot.remove(&(row.role, row.check.slot, id));
        self.by_entity.remove(&(row.job, row.entity));
        if outcome.kept(keep, row.runs) {
            self.history.insert(id, outcome);
        } else {
            self.not_kept += 1;
        }
    }
}
