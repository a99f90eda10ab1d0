//! Executes SQL statements that name a user's table and columns.
//!
//! Invariant: every name is quoted and qualified, and every value is a parameter.

use super::by_oid::Plan;
use super::names::Names;
use crate::pg::owner::set_local;
use crate::pg::reraise::{carried, reported};
use crate::pg::trigger::Firing;
use crate::pg::{catalog, text, unbound};
use crate::store::statement::{Arg, Rows};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const MAX_PLANS: usize = 500;

type Plans = HashMap<(String, Option<Rc<Names>>), Rc<Plan>>;

thread_local! {
    static PLANS: RefCell<HashMap<pg_sys::Oid, Plans>> = RefCell::default();
}

pub fn command(sql: &str) {
    let source = text::server(sql);
    // SAFETY: `source` is a C string that outlives the call, and the abort closes SPI after an ERROR.
    unsafe {
        pg_sys::SPI_connect();
        let code = pg_sys::SPI_execute(source.as_ptr(), false, 0);
        assert!(code >= 0, "a command of awty failed with SPI code {code}");
        pg_sys::SPI_finish();
    }
}

/// Calls a user's function. The plan depends on the current settings, so it is not cached.
pub fn call(sql: &str, types: &[pg_sys::Oid], args: &[Arg]) {
    // SAFETY: SPI is connected, and the plan lives until SPI_finish.
    unsafe {
        pg_sys::SPI_connect();
        let plan = Plan::new(sql, types, None);
        let values = plan.parameters(args);
        let code = carried(|| plan.execute(values));
        assert!(code >= 0, "a statement of awty failed with SPI code {code}");
        pg_sys::SPI_finish();
    }
}

/// Executes a query and passes the rows to `read`. The result of `read` must not point into the rows, because the rows
/// are freed afterwards.
///
/// If `firing` is given, the query can read the trigger's transition tables. If `names` are given, the query fails if its
/// names mean other objects.
pub fn evaluate<R>(
    sql: &str,
    names: Option<&Rc<Names>>,
    types: &[pg_sys::Oid],
    args: &[Arg],
    firing: Option<Firing>,
    read: impl FnOnce(&Rows) -> R,
) -> R {
    // SAFETY: SPI stays connected for the whole block, and the abort closes SPI after an ERROR.
    unsafe {
        connect(firing);
        let plan = prepared(sql, names, types);
        let values = plan.parameters(args);
        let code = carried(|| plan.execute(values));
        assert!(code >= 0, "a statement of awty failed with SPI code {code}");
        let result = read(&Rows::current());
        pg_sys::SPI_finish();
        result
    }
}

pub fn query<R>(sql: &str, types: &[pg_sys::Oid], args: &[Arg], read: impl FnOnce(&Rows) -> R) -> R {
    reported(|| evaluate(sql, None, types, args, None, read))
}

pub fn query_in_pieces(sql: &str, names: Option<&Rc<Names>>, firing: Firing, piece: i64, mut read: impl FnMut(&Rows)) {
    // SAFETY: SPI stays connected for the whole block, and the cursor is closed before SPI_finish.
    unsafe {
        connect(Some(firing));
        let plan = prepared(sql, names, &[]);
        let cursor =
            pg_sys::SPI_cursor_open(std::ptr::null(), plan.plan, std::ptr::null_mut(), std::ptr::null(), false);
        loop {
            carried(|| unbound::spi_cursor_fetch(cursor, piece));
            let rows = Rows::current();
            let (table, is_last) = (pg_sys::SPI_tuptable, rows.processed < piece.unsigned_abs());
            if rows.processed > 0 {
                read(&rows);
            }
            pg_sys::SPI_freetuptable(table);
            if is_last {
                break;
            }
        }
        pg_sys::SPI_cursor_close(cursor);
        pg_sys::SPI_finish();
    }
}

/// # Safety
/// The caller must call `SPI_finish` afterwards.
unsafe fn connect(firing: Option<Firing>) {
    // SAFETY: the caller calls `SPI_finish`, and the trigger's data live as long as the trigger's call.
    unsafe {
        pg_sys::SPI_connect();
        if let Some(firing) = firing {
            pg_sys::SPI_register_trigger_data(firing.data());
        }
    }
}

/// # Safety
/// SPI must be connected.
unsafe fn prepared(sql: &str, names: Option<&Rc<Names>>, types: &[pg_sys::Oid]) -> Rc<Plan> {
    let (role, key) = (catalog::current_role(), (sql.to_owned(), names.cloned()));
    let known = PLANS.with_borrow(|plans| plans.get(&role)?.get(&key).cloned());
    if let Some(plan) = &known
        // SAFETY: `SPI_keepplan` has made the plan permanent, and only the code below frees the plan.
        && unsafe { pg_sys::SPI_plan_is_valid(plan.plan) }
    {
        return Rc::clone(plan);
    }
    // These settings make the plan find rows by key even while the table is small. The caller restores the settings.
    for (name, value) in
        [(c"enable_seqscan", c"off"), (c"enable_hashjoin", c"off"), (c"enable_mergejoin", c"off"), (c"jit", c"off")]
    {
        set_local(name, value);
    }
    if let Some(plan) = known {
        return plan;
    }
    // SAFETY: SPI is connected, and the plans that are freed here are used by no query, because a query keeps its `Rc`.
    unsafe {
        let plan = Rc::new(Plan::new(sql, types, names.cloned()));
        pg_sys::SPI_keepplan(plan.plan);
        PLANS.with_borrow_mut(|plans| {
            if plans.values().map(HashMap::len).sum::<usize>() >= MAX_PLANS {
                // An evaluation may be nested in another one, whose plan is still at work.
                let is_at_work = |plan: &Rc<Plan>| Rc::strong_count(plan) > 1;
                for (_, plan) in plans.values_mut().flat_map(|plans| plans.extract_if(|_, plan| !is_at_work(plan))) {
                    pg_sys::SPI_freeplan(plan.plan);
                }
            }
            plans.entry(role).or_default().insert(key, Rc::clone(&plan));
        });
        plan
    }
}
