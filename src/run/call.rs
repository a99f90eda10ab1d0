//! Calls a job function with the rights and settings of its role, within its limits.
//!
//! Invariant: when [`ask`] returns, nothing of the run is left to be executed at the commit, and settings and current user are
//! what they were; after an error, the abort of the transaction restores them.
//! Does not: begin or end the transaction, or decide what the answers mean.

use crate::error::Error;
use crate::failpoint::failpoint;
use crate::function::{Function, Takes};
use crate::pg::catch::{Failure, catch};
use crate::pg::{relations, unbound};
use crate::store::check_row;
use crate::store::job::Job;
use awty_core::Answer;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{FromDatum, pg_sys};

/// Where a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a transaction of a worker, which holds nothing else.
    Worker,
    /// In a subtransaction of a client, beside its own cursors and queries.
    Client,
}

/// Calls the function of a job for these rows and reads its answers, one for each.
pub fn ask(job: &Job, function: Function, rows: &[pg_sys::Datum], place: Place) -> Result<Vec<Answer>, Failure> {
    match function.takes {
        Takes::Set => ask_set(job, function, rows, place),
        Takes::Check => rows.iter().map(|row| ask_one(function, Some(*row), place)).collect(),
        Takes::Nothing => rows.iter().map(|_| ask_one(function, None, place)).collect(),
    }
}

fn ask_one(function: Function, argument: Option<pg_sys::Datum>, place: Place) -> Result<Answer, Failure> {
    // SAFETY: the function was just found to take a check or nothing, and to return a timestamptz or void.
    let (datum, null) = unsafe { call(function.oid, argument, place) }?;
    Ok(check_row::answer((function.answers && !null).then(|| datum.value() as i64)))
}

fn ask_set(job: &Job, function: Function, rows: &[pg_sys::Datum], place: Place) -> Result<Vec<Answer>, Failure> {
    let argument = check_row::array(rows.iter().copied(), relations::row_type());
    // SAFETY: the function was just found to take an array of checks and to return one of timestamptz, or void.
    let (datum, null) = unsafe { call(function.oid, Some(argument), place) }?;
    if !function.answers {
        return Ok(vec![Answer::Done; rows.len()]);
    }
    // SAFETY: as above.
    let times = unsafe { pgrx::Array::<TimestampWithTimeZone>::from_datum(datum, null) };
    let answers: Vec<Answer> =
        times.iter().flat_map(pgrx::Array::iter).map(|time| check_row::answer(time.map(i64::from))).collect();
    if answers.len() != rows.len() {
        let (job, checks) = (job.name.to_string(), rows.len());
        return Err(Error::AnswerCount { job, checks, answers: answers.len() }.into());
    }
    Ok(answers)
}

/// Calls a function with one argument or none, and with everything checked that it has deferred. An error is the function's.
///
/// # Safety
/// The function must take as many arguments, of the argument's type; a transaction must be open with a snapshot.
unsafe fn call(
    function: pg_sys::Oid,
    argument: Option<pg_sys::Datum>,
    place: Place,
) -> Result<(pg_sys::Datum, bool), Failure> {
    // SAFETY: opens a level of settings that is closed below, or by the abort.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    failpoint!("call.before");
    // SAFETY: as the caller says. FmgrInfo and the frame live in the transaction's memory, and the frame has room for one argument.
    // What is caught here calls C only.
    let result = unsafe {
        catch(|| unbound::invoke_function_execute_hook(function))?;
        let info = pg_sys::palloc0(size_of::<pg_sys::FmgrInfo>()).cast::<pg_sys::FmgrInfo>();
        catch(|| unbound::fmgr_info(function, info))?;
        let frame = pg_sys::palloc0(size_of::<pg_sys::FunctionCallInfoBaseData>() + size_of::<pg_sys::NullableDatum>())
            .cast::<pg_sys::FunctionCallInfoBaseData>();
        (*frame).flinfo = info;
        (*frame).fncollation = pg_sys::InvalidOid;
        if let Some(value) = argument {
            (*frame).nargs = 1;
            *(*frame).args.as_mut_ptr() = pg_sys::NullableDatum { value, isnull: false };
        }
        let result = match (*info).fn_addr {
            Some(address) => catch(|| unbound::call(address, frame))?,
            None => pg_sys::Datum::from(0),
        };
        let null = (*frame).isnull;
        failpoint!("call.after");
        check_deferred(place)?;
        failpoint!("call.deferred");
        (result, null)
    };
    // SAFETY: the level opened above; `false` undoes what was set inside, also by a plain SET.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    Ok(result)
}

/// SET CONSTRAINTS ALL IMMEDIATE: a deferred violation is an error of this run, here and now, and deferred triggers run
/// while the role's settings and limits are in force. Then those that were deferred once more. At the commit itself they would run while
/// the check's row is locked. So would the queries of cursors WITH HOLD, whose rows nobody would read: all cursors are closed. For a
/// client there is no commit, and its own cursors stay.
fn check_deferred(place: Place) -> Result<(), Failure> {
    let mut statement = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: std::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: a statement without a list of names stands for ALL; a transaction is open. No cursor is active, because the function was
    // not called through one.
    unsafe {
        catch(|| {
            unbound::after_trigger_set_state(&mut statement);
            if place == Place::Worker {
                unbound::after_trigger_fire_deferred();
            }
        })?;
        if place == Place::Worker {
            pg_sys::PortalHashTableDeleteAll();
        }
    }
    Ok(())
}
