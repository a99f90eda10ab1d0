//! Watching: a rule has a check for each row of its table that is not there yet, and an alert for each that is late.
//!
//! - [`written`] is what a trigger does with rows that were written;
//! - [`judge`] is what a run does with rows that are due;
//! - [`walk`] takes in the rows that were there before the rule, [`sweep`] compares open alerts with their rows;
//! - [`expression`] judges what a rule may ask;
//! - [`upkeep`] is what the maintainer does for rules; [`end`] ends one.
//!
//! Invariant (P12): whatever is written of a row is read from the row itself, in the same transaction, after its check has been locked.
//! Who ends or moves a check has its row locked, so a run that had read the row before is undone.
//! Does not: decide when a row is late (see `awty_core::watch`), or hold SQL.

pub mod end;
pub mod expression;
pub mod judge;
pub mod sweep;
pub mod upkeep;
pub mod walk;
pub mod written;

use crate::pg::changes;
use crate::pg::role::as_role;
use crate::pg::table::{self, Described, Kind};
use crate::pg::text::Text;
use crate::store::job::{self, Job};
use crate::store::rule::{self, Rule};
use crate::store::rule_objects;
use crate::store::watched::Source;
use awty_core::watch::Levels;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The schema and name of the function of the jobs of rules.
pub const FUNCTION: (&str, &str) = ("awty_internal", "check_rows");
/// The `entity_name` of the check that walks through the rows that were there before the rule.
pub const BACKFILL: &str = "awty.backfill";
/// The `entity_name` of the check that compares open alerts with their rows.
pub const SWEEP: &str = "awty.sweep";

thread_local! {
    /// The rules that this session has met, each with the counts of changes when it was read.
    static KNOWN: RefCell<HashMap<Text, ([u64; 3], Watched)>> = RefCell::default();
}

/// A rule whose table is there.
#[derive(Clone)]
pub struct Watched {
    pub rule: Rc<Rule>,
    pub job: Job,
    pub source: Rc<Source>,
    pub levels: Rc<Levels>,
}

/// Why a rule watches nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// There is no rule of that name, or no job.
    Rule,
    /// Its table is gone, or has lost its primary key or the rule's functions.
    Table,
}

impl Watched {
    /// The rule of that name. One that was found is remembered until something changes in the catalogs, or in what is registered.
    pub fn find(name: &Text) -> Result<Self, Missing> {
        // This listens, too.
        let Some(Ok(job)) = job::find(name) else { return Err(Missing::Rule) };
        let now = [changes::of_rules(), changes::of_relations(), changes::of_functions()];
        if let Some((rule, source, levels)) = KNOWN.with_borrow(|known| {
            let (then, Watched { rule, source, levels, .. }) = known.get(name)?;
            (*then == now).then(|| (Rc::clone(rule), Rc::clone(source), Rc::clone(levels)))
        }) {
            return Ok(Self { rule, job, source, levels });
        }
        let rule = rule::find(name).ok_or(Missing::Rule)?;
        let table = table::describe(rule.relation).ok_or(Missing::Table)?;
        let found = Self::of(rule, job, table).ok_or(Missing::Table)?;
        KNOWN.with_borrow_mut(|known| known.insert(name.clone(), (now, found.clone())));
        Ok(found)
    }

    fn of(rule: Rule, job: Job, table: Described) -> Option<Self> {
        if matches!(table.kind, Kind::Other(_)) {
            return None;
        }
        let key = table::primary_key(table.oid)?;
        let until = rule_objects::function(&rule.name, "", &table)?;
        let since = match rule.terms.since {
            Some(_) => Some(rule_objects::function(&rule.name, "_since", &table)?),
            None => None,
        };
        let levels = rule.levels()?;
        let (rule, source) = (Rc::new(rule), Rc::new(Source::new(table, key, until, since)));
        Some(Self { rule, job, source, levels: Rc::new(levels) })
    }
}

/// Is there any row in the table of a rule, which that role reads?
pub fn has_rows(source: &Source, role: pg_sys::Oid) -> bool {
    as_role(role, || source.has_rows())
}

/// Is this the job of a rule?
pub fn is_rules(job: &Job) -> bool {
    (job.schema.as_bytes(), job.function.as_bytes()) == (FUNCTION.0.as_bytes(), FUNCTION.1.as_bytes())
}
