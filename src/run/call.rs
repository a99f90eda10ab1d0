//! Invariant: after [`ask`] returns, the commit executes no code of the job's function. The settings and the current
//! user are restored.

pub use crate::call::caller::Caller;
use crate::call::{caller, own_checks};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::function::{Function, Signature};
use crate::pg::catch::{Failure, catch};
use crate::pg::{relations, role, unbound};
use crate::store::check_row;
use crate::store::job::Job;
use awty_core::Answer;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{FromDatum, pg_sys};

pub fn ask(job: &Job, function: Function, rows: &[pg_sys::Datum], caller: Caller) -> Result<Vec<Answer>, Failure> {
    let ask = || match function.takes {
        Signature::Set => ask_set(job, function, rows, caller),
        Signature::Check => rows.iter().map(|row| ask_one(function, Some(*row), caller)).collect(),
        Signature::Nothing => rows.iter().map(|_| ask_one(function, None, caller)).collect(),
    };
    caller::during(caller, || if caller == Caller::Confined { role::confined(ask) } else { ask() })
}

fn ask_one(function: Function, argument: Option<pg_sys::Datum>, caller: Caller) -> Result<Answer, Failure> {
    // SAFETY: the lookup has checked the function's argument and result types.
    let (datum, null) = unsafe { call(function.oid, argument, caller) }?;
    Ok(check_row::answer((function.answers && !null).then(|| datum.value() as i64)))
}

fn ask_set(job: &Job, function: Function, rows: &[pg_sys::Datum], caller: Caller) -> Result<Vec<Answer>, Failure> {
    let argument = check_row::array(rows.iter().copied(), relations::row_type());
    // SAFETY: the lookup has checked the function's argument and result types.
    let (datum, null) = unsafe { call(function.oid, Some(argument), caller) }?;
    if !function.answers {
        return Ok(vec![Answer::Done; rows.len()]);
    }
    // SAFETY: the lookup has checked that the function returns an array of timestamptz.
    let times = unsafe { pgrx::Array::<TimestampWithTimeZone>::from_datum(datum, null) };
    // The function of a rule's job returns `-infinity` for a watched row that meets the rule's condition.
    let is_rule = own_checks::is_rules(job);
    let answer = |time: Option<TimestampWithTimeZone>| match time.map(i64::from) {
        Some(i64::MIN) if is_rule => Answer::Met,
        raw => check_row::answer(raw),
    };
    let answers: Vec<Answer> = times.iter().flat_map(pgrx::Array::iter).map(answer).collect();
    if answers.len() != rows.len() {
        let (job, checks) = (job.name.to_string(), rows.len());
        return Err(Error::AnswerCount { job, checks, answers: answers.len() }.into());
    }
    Ok(answers)
}

/// Calls the function, and executes the work that the function has deferred to the commit. An ERROR in this work counts
/// as an ERROR of the function.
///
/// # Safety
///
/// The function must take `argument`, and a transaction with a snapshot must be open.
unsafe fn call(
    function: pg_sys::Oid,
    argument: Option<pg_sys::Datum>,
    caller: Caller,
) -> Result<(pg_sys::Datum, bool), Failure> {
    // SAFETY: the code below, or an abort, closes this level of settings.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    failpoint!("call.before");
    // SAFETY: `frame` has room for one argument, and the closures only call C.
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
        check_deferred(caller)?;
        failpoint!("call.deferred");
        (result, null)
    };
    // `false` (no commit) undoes all settings that the function has changed, including those of SET without LOCAL.
    // SAFETY: `NewGUCNestLevel` has returned `nest` above, and only the next line ends this nesting of settings.
    unsafe { pg_sys::AtEOXact_GUC(false, nest) };
    Ok(result)
}

/// Fires deferred triggers now, while the role's settings and limits apply, and before the check's row is locked.
///
/// Closes all cursors, because a commit executes the queries of cursors WITH HOLD. A client's cursors stay open,
/// because the client's transaction does not commit here.
fn check_deferred(caller: Caller) -> Result<(), Failure> {
    let mut statement = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: std::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: `statement` means SET CONSTRAINTS ALL, because its list of constraints is empty. No cursor is active.
    unsafe {
        catch(|| {
            unbound::after_trigger_set_state(&mut statement);
            if caller == Caller::Worker {
                unbound::after_trigger_fire_deferred();
            }
        })?;
        if caller == Caller::Worker {
            pg_sys::PortalHashTableDeleteAll();
        }
    }
    Ok(())
}
