//! A rule watches a table. A rule has a check for each row that does not meet its condition yet, and an alert for each
//! late row.
//!
//! - [`api`] has `awty.watch()` and `awty.unwatch()`; [`triggers`] has the trigger functions and the job function.
//! - [`written`] handles written rows, for triggers.
//! - [`judge`] handles due rows, for runs; [`untold`] raises the alert if the run that reports it fails.
//! - [`call`] calls the functions of a rule; [`cleared`] clears alerts.
//! - [`walk`] adds the rows that existed before the rule; [`sweep`] compares open alerts with their rows.
//! - [`silence`] silences rows; [`stops`] has the stopped clocks of rows.
//! - [`condition`] validates a rule's expressions, [`functions`] finds their functions, and [`fault`] describes missing
//!   parts.
//! - [`upkeep`] maintains rules for the maintainer; [`end_rule`] ends a rule.
//!
//! Invariant: a row is read in the same transaction, after its check was locked. A session that ends or moves a check
//! also locks the check, so a run that has read the row earlier is rolled back.

mod api;
mod call;
mod cleared;
mod condition;
pub mod end_rule;
mod fault;
mod functions;
pub mod hold;
mod judge;
pub mod silence;
pub mod statements;
mod status;
pub mod stops;
pub mod sweep;
mod triggers;
pub mod untold;
pub mod upkeep;
mod walk;
mod written;

use self::fault::Fault;
use self::statements::rule::{self, Rule};
use self::statements::rule_check;
use self::statements::watched::Source;
use crate::calendar;
use crate::call::rights;
use crate::pg::table::{self, Described, Kind};
use crate::pg::text::Text;
use crate::pg::zone::Local;
use crate::pg::{changes, clock};
use crate::shmem::wakeup;
use crate::store::job::{self, Job};
use awty_core::Time;
use awty_core::watch::{Levels, Stops};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

pub const FUNCTION: (&str, &str) = ("awty_internal", "check_rows");
/// `entity_name` of the check that adds the rows that existed before the rule.
pub const BACKFILL: &str = "awty.backfill";
/// `entity_name` of the check that compares open alerts with their rows.
pub const SWEEP: &str = "awty.sweep";
pub const CLEARED: &str = "awty.cleared";

const MOST_NAMED: usize = 20;

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
    /// Returns the rule and its calendar as they are now. A transaction that changes them is visible some moments before
    /// it tells other sessions to renew their caches, and schedules the walk and the sweep that call this function.
    fn find_again(name: &Text) -> Result<Self, Missing> {
        KNOWN.with_borrow_mut(|known| known.remove(name));
        calendar::forget();
        Self::find(name)
    }

    /// Returns the rule from a cache, which is valid until a system catalog, a job or a rule changes.
    pub fn find(name: &Text) -> Result<Self, Missing> {
        // `job::find` comes before the counts of changes are read. It receives pending invalidations, which raise these
        // counts.
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

    fn since(&self, start: Time) -> Option<Time> {
        self.rule.terms.due.is_none().then_some(start)
    }

    fn due_at(&self, start: Time, stops: &Stops) -> Time {
        self.levels.moved(self.levels.due(start), stops, Time::MIN_UTC)
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
        let source = Rc::new(Source::new(table, key, found));
        Ok(Self { rule, job, source, levels })
    }
}

pub fn users(calendar: &Text) -> (Vec<String>, usize) {
    let all = rule::of_calendar(calendar);
    let is_visible = |name: &&Text| job::find(name).and_then(Result::ok).is_some_and(|job| rights::may_read(&job));
    let named: Vec<String> =
        all.iter().filter(is_visible).take(MOST_NAMED).map(|name| format!("rule \"{name}\"")).collect();
    let others = all.len() - named.len();
    (named, others)
}

/// Schedules a run for each rule that uses the calendar. The run moves the pending checks of the rule.
pub fn follow_calendar(name: &Text, now: Time) {
    let mut names = rule::of_calendar(name);
    if let Some(known) = calendar::find(name) {
        let may_use = |(_, role): &(Text, _)| known.is_usable_by(*role);
        names.extend(rule::of_due().into_iter().filter(may_use).map(|(rule, _)| rule));
    }
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    names.dedup();
    rule::walk_moved(&names);
    for rule in &names {
        let Some(Ok(job)) = job::find(rule) else { continue };
        rule_check::restart_special(rule, BACKFILL, now, job.role);
        wakeup::at_commit(job.runner(), clock::to_timestamp(now));
    }
}

pub fn is_rules(job: &Job) -> bool {
    (job.schema.as_bytes(), job.function.as_bytes()) == (FUNCTION.0.as_bytes(), FUNCTION.1.as_bytes())
}
