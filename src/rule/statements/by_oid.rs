//! Prepares and executes queries that call functions by OID, because another role's function with default arguments
//! could make a call by name ambiguous.
//!
//! In the query's text, a marked column reference takes the place of each call (see [`call`]). A parser hook then
//! inserts the call.

use super::names::{self, Names};
use crate::pg::sql_function::{new_param, word};
use crate::pg::{text, unbound};
use pgrx::{PgList, pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::rc::Rc;
use std::sync::OnceLock;

const MARK: &CStr = c"awty function";

/// A plan. `parsed` lives as long as the plan, because PostgreSQL reads `parsed` whenever it parses the query again.
pub struct Plan {
    pub plan: pg_sys::SPIPlanPtr,
    parsed: Box<Parsed>,
}

struct Parsed {
    types: Vec<pg_sys::Oid>,
    names: Option<Rc<Names>>,
    /// Whether the hook was called since the parser began.
    is_checked: Cell<bool>,
}

/// Returns SQL text that looks like a column reference. When PostgreSQL parses the text, a parser hook replaces the
/// reference with a call of `function`.
///
/// The names in `columns` must be quoted.
pub fn call(function: pg_sys::Oid, row: &str, columns: impl Iterator<Item = String>) -> String {
    let call = format!("{:?}.\"{}\".{row}", MARK.to_string_lossy(), function.to_u32());
    columns.fold(call, |call, column| format!("{call}.{column}"))
}

impl Plan {
    /// # Safety
    ///
    /// SPI must be connected. If the plan is kept, it must be freed before this value is dropped.
    pub unsafe fn new(sql: &str, types: &[pg_sys::Oid], names: Option<Rc<Names>>) -> Self {
        let source = text::server(sql);
        let parsed = Box::new(Parsed { types: types.to_vec(), names, is_checked: Cell::default() });
        let argument = std::ptr::from_ref(&*parsed).cast_mut().cast::<c_void>();
        let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as c_int;
        // SAFETY: SPI is connected, and moving the box into the plan does not move its content.
        let plan = unsafe { pg_sys::SPI_prepare_params(source.as_ptr(), Some(set_up), argument, options) };
        assert!(!plan.is_null(), "a statement of awty cannot be prepared");
        assert!(parsed.is_checked.get(), "another library has disabled awty's post_parse_analyze_hook");
        Self { plan, parsed }
    }

    /// # Safety
    ///
    /// SPI must be connected.
    pub unsafe fn execute(&self, values: pg_sys::ParamListInfo) -> c_int {
        // SAFETY: the caller has connected SPI, and the plan has not been freed.
        unsafe { unbound::spi_execute_plan(self.plan, values) }
    }

    pub fn parameters(&self, args: &[Option<pg_sys::Datum>]) -> pg_sys::ParamListInfo {
        assert_eq!(args.len(), self.parsed.types.len(), "wrong number of parameters");
        // Returns a null pointer if there are no parameters, because Citus cannot copy an empty list.
        if args.is_empty() {
            return std::ptr::null_mut();
        }
        // SAFETY: `makeParamList` allocates one element for each parameter.
        unsafe {
            let list = pg_sys::makeParamList(args.len() as c_int);
            let elements = (*list).params.as_mut_slice(args.len());
            for ((element, arg), kind) in elements.iter_mut().zip(args).zip(&self.parsed.types) {
                *element = pg_sys::ParamExternData {
                    value: arg.unwrap_or(pg_sys::Datum::from(0)),
                    isnull: arg.is_none(),
                    pflags: pg_sys::PARAM_FLAG_CONST as u16,
                    ptype: *kind,
                };
            }
            list
        }
    }
}

/// # Safety
///
/// Only PostgreSQL's parser may call this function. The argument must be the `Parsed` of a [`Plan`].
#[pg_guard]
unsafe extern "C-unwind" fn set_up(state: *mut pg_sys::ParseState, argument: *mut c_void) {
    // SAFETY: the parser passes its state and the argument of `SPI_prepare_params`.
    unsafe {
        (*argument.cast::<Parsed>()).is_checked.set(false);
        (*state).p_ref_hook_state = argument;
        (*state).p_paramref_hook = Some(parameter);
        (*state).p_pre_columnref_hook = Some(function_for);
    }
}

static PREVIOUS: OnceLock<pg_sys::post_parse_analyze_hook_type> = OnceLock::new();

pub fn register() {
    // SAFETY: PostgreSQL loads a library once per process, and no other thread uses this variable.
    unsafe {
        if PREVIOUS.set(pg_sys::post_parse_analyze_hook).is_ok() {
            pg_sys::post_parse_analyze_hook = Some(analysed);
        }
    }
}

/// Has no guard of its own, so that an ERROR of another library's hook keeps all its fields.
///
/// # Safety
///
/// Only PostgreSQL's parser may call this function.
unsafe extern "C-unwind" fn analysed(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: *mut pg_sys::JumbleState,
) {
    // SAFETY: the parser passes its state and a complete query. This frame has no value with a destructor.
    unsafe {
        unbound::call_analyze_hook(PREVIOUS.get().copied().flatten(), state, query, jumble);
        if is_parsing(state) {
            check(state, query);
        }
    }
}

/// Returns whether the parser analyses the statement of a [`Plan`].
///
/// # Safety
///
/// The state must be the parser's.
unsafe fn is_parsing(state: *mut pg_sys::ParseState) -> bool {
    // SAFETY: the caller passes the state of the parser.
    let hook = unsafe { (*state).p_pre_columnref_hook };
    hook.is_some_and(|hook| hook as usize == function_for as *const () as usize)
}

/// # Safety
///
/// The parser must be analysing the statement of a [`Plan`], and the query must be complete.
#[pg_guard]
unsafe extern "C-unwind" fn check(state: *mut pg_sys::ParseState, query: *mut pg_sys::Query) {
    // SAFETY: `set_up` has stored the pointer, and the caller passes a complete query.
    unsafe {
        let Parsed { names, is_checked, .. } = &*(*state).p_ref_hook_state.cast::<Parsed>();
        is_checked.set(true);
        if let Some(names) = names {
            names::check(query, names);
        }
    }
}

/// # Safety
///
/// Only PostgreSQL's parser may call this function.
#[pg_guard]
unsafe extern "C-unwind" fn parameter(
    state: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ParamRef,
) -> *mut pg_sys::Node {
    // SAFETY: `set_up` has stored the pointer, and the parser passes a valid reference.
    unsafe {
        let Parsed { types, .. } = &*(*state).p_ref_hook_state.cast::<Parsed>();
        let number = (*reference).number;
        let place = usize::try_from(number - 1).ok();
        // For a null pointer, the parser raises an error.
        let Some(&kind) = place.and_then(|place| types.get(place)) else { return std::ptr::null_mut() };
        new_param(number, kind, (*reference).location)
    }
}

/// Returns a function call for a column reference that begins with `MARK`, and null for any other column reference.
///
/// # Safety
///
/// Only PostgreSQL's parser may call this function.
#[pg_guard]
unsafe extern "C-unwind" fn function_for(
    state: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ColumnRef,
) -> *mut pg_sys::Node {
    // SAFETY: the parser passes a valid column reference.
    unsafe {
        let fields = PgList::<pg_sys::Node>::from_pg((*reference).fields);
        let word_at = |place| fields.get_ptr(place).and_then(|node| word(node));
        let number = || word_at(1)?.to_str().ok()?.parse::<u32>().ok();
        let (Some(_), Some(number), Some(row)) = (word_at(0).filter(|mark| *mark == MARK), number(), fields.get_ptr(2))
        else {
            return std::ptr::null_mut();
        };
        let function = pg_sys::Oid::from(number);
        let mut args = PgList::<pg_sys::Node>::new();
        for column in (3..fields.len()).filter_map(|place| fields.get_ptr(place)) {
            let mut name = PgList::<pg_sys::Node>::new();
            name.push(row);
            name.push(column);
            let part = pg_sys::palloc0(size_of::<pg_sys::ColumnRef>()).cast::<pg_sys::ColumnRef>();
            *part = pg_sys::ColumnRef {
                type_: pg_sys::NodeTag::T_ColumnRef,
                fields: name.into_pg(),
                location: (*reference).location,
            };
            args.push(pg_sys::transformExpr(state, part.cast(), (*state).p_expr_kind));
        }
        pg_sys::makeFuncExpr(
            function,
            pg_sys::get_func_rettype(function),
            args.into_pg(),
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
        )
        .cast()
    }
}
