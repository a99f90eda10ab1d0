//! Watching: a rule has a check for each row of its table that is not there yet, and an alert for each that is late.
//!
//! - [`written`] is what a trigger does with rows that were written;
//! - [`judge`] is what a run does with rows that are due;
//! - [`walk`] takes in the rows that were there before the rule, [`sweep`] compares open alerts with their rows;
//! - [`expression`] judges what a rule may ask, [`functions`] finds the function of each expression,
//!   and [`fault`] says what is missing;
//! - [`upkeep`] is what the maintainer does for rules; [`end`] ends one.
//!
//! Invariant (P12): whatever is written of a row is read from the row itself, in the same transaction, after its check has been locked.
//! Who ends or moves a check has its row locked, so a run that had read the row before is undone.
//! Does not: decide when a row is late (see `awty_core::watch`), or hold SQL.

pub mod end;
pub mod expression;
pub mod fault;
pub mod functions;
pub mod judge;
pub mod sweep;
pub mod upkeep;
pub mod walk;
pub mod written;

use crate::pg::changes;
use crate::pg::table::{self, Described, Kind};
use crate::pg::text::Text;
use crate::store::job::{self, Job};
use crate::store::rule::{self, Rule};
use crate::store::watched::Source;
use awty_core::watch::Levels;
use fault::Fault;
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
pub enum Missing {
    /// There is no rule of that name, or no job.
    Rule,
    /// The table is gone.
    Table,
    /// The table is there, and something else that the rule needs is not.
    Part(Rc<Rule>, Box<Described>, Fault),
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
        let found = Self::of(rule, job, table)?;
        KNOWN.with_borrow_mut(|known| known.insert(name.clone(), (now, found.clone())));
        Ok(found)
    }

    fn of(rule: Rule, job: Job, table: Described) -> Result<Self, Missing> {
        if matches!(table.kind, Kind::Other(_)) {
            return Err(Missing::Table);
        }
        let rule = Rc::new(rule);
        let part = |fault| Missing::Part(Rc::clone(&rule), Box::new(table.clone()), fault);
        let key = table::primary_key(table.oid).ok_or_else(|| part(Fault::NoKey))?;
        let found = functions::find(&rule, &table).map_err(part)?;
        let levels = Rc::new(rule.levels().ok_or(Missing::Rule)?);
        let source = Rc::new(Source::new(table, key, found.until, found.since));
        Ok(Self { rule, job, source, levels })
    }
}

/// Is this the job of a rule?
pub fn is_rules(job: &Job) -> bool {
    (job.schema.as_bytes(), job.function.as_bytes()) == (FUNCTION.0.as_bytes(), FUNCTION.1.as_bytes())
}
