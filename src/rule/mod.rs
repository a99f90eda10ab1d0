//! A rule says when a row of its table is late. This module loads a rule and checks its functions and triggers, and
//! [`watch`](crate::watch) handles the rows.

pub mod condition;
pub mod fault;
pub mod functions;
pub mod statements;

use self::fault::Fault;
use self::statements::rule::{self, Rule};
use self::statements::watched::Source;
use crate::calendar;
use crate::pg::changes;
use crate::pg::primary_key;
use crate::pg::table::{self, Described, Kind};
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::store::job::{self, Job};
use awty_core::Time;
use awty_core::watch::{Levels, Stops};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

thread_local! {
    static KNOWN: RefCell<HashMap<Text, ([u64; 3], Watched)>> = RefCell::default();
}

#[derive(Clone)]
pub struct Watched {
    pub rule: Rc<Rule>,
    pub job: Job,
    pub source: Rc<Source>,
    pub levels: Rc<Levels<Local>>,
}

pub enum Missing {
    Rule,
    Table,
    Part(Rc<Rule>, Box<Described>, Fault),
}

impl Watched {
    /// Reads a rule from its table instead of the cache, because the cache may be outdated right after another session
    /// has changed the rule.
    pub fn find_again(name: &Text) -> Result<Self, Missing> {
        KNOWN.with_borrow_mut(|known| known.remove(name));
        calendar::forget();
        Self::find(name)
    }

    /// Finds a rule, and caches it until a system catalog, a job or a rule changes.
    pub fn find(name: &Text) -> Result<Self, Missing> {
        // Calls `job::find` first, because it processes invalidations, which raise the counters that are read below.
        let Some(Ok(job)) = job::find(name) else { return Err(Missing::Rule) };
        let now = [changes::of_rows(), changes::of_relations(), changes::of_functions()];
        if let Some((rule, source, levels)) = KNOWN.with_borrow(|known| {
            let (then, Watched { rule, source, levels, .. }) = known.get(name)?;
            (*then == now).then(|| (Rc::clone(rule), Rc::clone(source), Rc::clone(levels)))
        }) {
            return Ok(Self { rule, job, source, levels });
        }
        let rule = rule::find(name).ok_or(Missing::Rule)?;
        let table = table::describe(rule.relation).ok_or(Missing::Table)?;
        let found = Self::of(rule, job, table)?;
        KNOWN.with_borrow_mut(|known| known.insert(name.clone(), (now, found.clone())));
        Ok(found)
    }

    /// Looks for rows in one partition only. `table` is the watched table or a partition of it.
    pub fn of_partition(self, table: pg_sys::Oid) -> Self {
        match table == self.rule.relation {
            true => self,
            false => Self { source: Rc::new(self.source.of_partition(table)), ..self },
        }
    }

    pub fn since(&self, start: Time) -> Option<Time> {
        self.rule.terms.due.is_none().then_some(start)
    }

    pub fn due_at(&self, start: Time, stops: &Stops) -> Time {
        self.levels.moved(self.levels.due(start), stops, Time::MIN_UTC)
    }

    fn of(rule: Rule, job: Job, table: Described) -> Result<Self, Missing> {
        if matches!(table.kind, Kind::Other(_)) {
            return Err(Missing::Table);
        }
        let rule = Rc::new(rule);
        let part = |fault| Missing::Part(Rc::clone(&rule), Box::new(table.clone()), fault);
        let key = primary_key::columns_of(table.oid).ok_or_else(|| part(Fault::NoKey))?;
        let numbers: Vec<i16> = key.iter().map(|part| part.column.number).collect();
        let found = functions::find(&rule, &table, &numbers).map_err(part)?;
        let levels = Rc::new(rule.levels().ok_or(Missing::Rule)?);
        let source = Rc::new(Source::new(table, key, found));
        Ok(Self { rule, job, source, levels })
    }
}
