//! Prepares and executes queries that call functions by OID, because another role's function with default arguments
//! could make a call by name ambiguous.
//!
//! In the query's text, a marked column reference takes the place of each call (see [`call`]). A parser hook then
//! inserts the call.

use crate::pg::{text, unbound};
use pgrx::{PgList, pg_guard, pg_sys};
use std::ffi::{CStr, c_int, c_void};

const MARK: &CStr = c"awty function";

/// A plan and its parameters' types. `InvalidOid` ends the list of types. The types live as long as the plan, because
/// PostgreSQL reads them whenever it parses the query again.
pub struct Plan {
    pub plan: pg_sys::SPIPlanPtr,
    types: Vec<pg_sys::Oid>,
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
    pub unsafe fn new(sql: &str, types: &[pg_sys::Oid]) -> Self {
        let (source, types) = (text::server(sql), [types, &[pg_sys::InvalidOid]].concat());
        let argument = types.as_ptr().cast_mut().cast::<c_void>();
        let options = pg_sys::CURSOR_OPT_GENERIC_PLAN as c_int;
        // SAFETY: SPI is connected, and moving the vector `types` into the plan does not move the elements of the
        // vector.
        let plan = unsafe { pg_sys::SPI_prepare_params(source.as_ptr(), Some(set_up), argument, options) };
        assert!(!plan.is_null(), "a statement of awty cannot be prepared");
        Self { plan, types }
    }

    /// # Safety
    ///
    /// SPI must be connected.
    pub unsafe fn execute(&self, values: pg_sys::ParamListInfo) -> c_int {
        // SAFETY: the caller has connected SPI, and the plan has not been freed.
        unsafe { unbound::spi_execute_plan(self.plan, values) }
    }

    pub fn parameters(&self, args: &[Option<pg_sys::Datum>]) -> pg_sys::ParamListInfo {
        assert_eq!(args.len() + 1, self.types.len(), "wrong number of parameters");
        // Returns a null pointer if there are no parameters, because Citus cannot copy an empty list.
        if args.is_empty() {
            return std::ptr::null_mut();
        }
        // SAFETY: `makeParamList` allocates one element for each parameter.
        unsafe {
            let list = pg_sys::makeParamList(args.len() as c_int);
            let elements = (*list).params.as_mut_slice(args.len());
            for ((element, arg), kind) in elements.iter_mut().zip(args).zip(&self.types) {
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
/// Only PostgreSQL's parser may call this function. The argument must be the types of a [`Plan`].
#[pg_guard]
unsafe extern "C-unwind" fn set_up(state: *mut pg_sys::ParseState, types: *mut c_void) {
    // SAFETY: the parser passes its state and the list of types, which ends with `InvalidOid`.
    unsafe {
        let types = types.cast::<pg_sys::Oid>();
        let count = (0..).take_while(|place| *types.add(*place) != pg_sys::InvalidOid).count();
        unbound::setup_parse_fixed_parameters(state, types, count as c_int);
        (*state).p_pre_columnref_hook = Some(function_for);
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
    // SAFETY: the parser passes a valid column reference, and only nodes with the tag `T_String` are read as strings.
    unsafe {
        let fields = PgList::<pg_sys::Node>::from_pg((*reference).fields);
        let word = |place| {
            let node = fields.get_ptr(place).filter(|node| (**node).type_ == pg_sys::NodeTag::T_String)?;
            Some(CStr::from_ptr((*node.cast::<pg_sys::String>()).sval))
        };
        let number = || word(1)?.to_str().ok()?.parse::<u32>().ok();
        let (Some(_), Some(number), Some(row)) = (word(0).filter(|mark| *mark == MARK), number(), fields.get_ptr(2))
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
