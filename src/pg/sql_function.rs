//! Creates an SQL function that computes an expression over a table's columns.
//!
//! Invariant: the names in an expression are looked up once, by [`body`]. The command CREATE FUNCTION would look up the
//! names in its text after a lock wait. Another role that owns a named schema could give the name to its own type
//! meanwhile.

use super::catch::{Raised, catch_raised};
use super::column::Column;
use super::table::quoted;
use super::text::{self, Text, utf8};
use super::unbound;
use pgrx::{IntoDatum, PgList, pg_guard, pg_sys};
use std::ffi::{CStr, CString, c_void};

/// Names that the expression may use for the table and its columns.
struct Row<'a> {
    schema: CString,
    table: CString,
    columns: &'a [Column],
}

pub struct NewFunction<'a> {
    pub name: &'a str,
    pub namespace: pg_sys::Oid,
    pub owner: pg_sys::Oid,
    pub result: pg_sys::Oid,
    pub columns: &'a [Column],
    pub body: *mut pg_sys::Query,
}

/// Returns the body of a function whose parameters are the columns.
///
/// A function's parameter has the default collation of its type. Therefore, the body names each column's own collation.
///
/// # Safety
///
/// `expression` must be the parser's node of an expression over the table, and `source` its text. The table must be
/// locked.
pub unsafe fn body(
    expression: *mut pg_sys::Node,
    source: &CStr,
    relation: pg_sys::Oid,
    columns: &[Column],
) -> Result<*mut pg_sys::Query, Raised> {
    // SAFETY: the table exists, and the casts match the texts that are parsed. `row` outlives the analysis, and the
    // closures only call C functions.
    unsafe {
        let table = pg_sys::get_rel_name(relation);
        let is_collated = columns.iter().any(|column| column.own_collation().is_some());
        let around = if is_collated {
            let read: Vec<String> = columns.iter().map(collated).collect();
            format!("SELECT (SELECT NULL FROM (SELECT {}) AS {})", read.join(", "), quoted(&utf8(table)))
        } else {
            "SELECT NULL".into()
        };
        let around = text::server(&around);
        let statement = catch_raised(|| unbound::raw_parser(around.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT))?;
        let statement = (*(*statement).elements).ptr_value.cast::<pg_sys::RawStmt>();
        let mut place = target((*statement).stmt);
        if is_collated {
            place = target((*(*place).val.cast::<pg_sys::SubLink>()).subselect);
        }
        (*place).val = expression;
        let schema = CStr::from_ptr(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation))).to_owned();
        let row = Row { schema, table: CStr::from_ptr(table).to_owned(), columns };
        let row = std::ptr::from_ref(&row).cast_mut().cast();
        let query = catch_raised(|| unbound::parse_analyze(statement, source.as_ptr(), Some(set_up), row))?;
        (*query).isReturn = true;
        // A RETURN has no column name, as in transformReturnStmt().
        (*(*(*(*query).targetList).elements).ptr_value.cast::<pg_sys::TargetEntry>()).resname = std::ptr::null_mut();
        Ok(query)
    }
}

fn collated(column: &Column) -> String {
    match (column.quoted(), column.own_collation()) {
        (name, Some(collation)) => format!("{name} COLLATE {collation} AS {name}"),
        (name, None) => format!("{name} AS {name}"),
    }
}

unsafe fn target(select: *mut pg_sys::Node) -> *mut pg_sys::ResTarget {
    // SAFETY: the caller passes a SELECT with a target.
    unsafe { (*(*(*select.cast::<pg_sys::SelectStmt>()).targetList).elements).ptr_value.cast() }
}

/// # Safety
///
/// Only PostgreSQL's parser may call this function. The argument must be a [`Row`].
#[pg_guard]
unsafe extern "C-unwind" fn set_up(state: *mut pg_sys::ParseState, row: *mut c_void) {
    // SAFETY: the parser passes its state.
    unsafe {
        (*state).p_ref_hook_state = row;
        (*state).p_post_columnref_hook = Some(parameter);
    }
}

/// Returns the parameter for a reference to a column of the table, and null for any other reference.
///
/// # Safety
///
/// Only PostgreSQL's parser may call this function.
#[pg_guard]
unsafe extern "C-unwind" fn parameter(
    state: *mut pg_sys::ParseState,
    reference: *mut pg_sys::ColumnRef,
    found: *mut pg_sys::Node,
) -> *mut pg_sys::Node {
    if !found.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: `set_up` has stored the row, and the parser passes a valid reference.
    unsafe {
        let row = &*(*state).p_ref_hook_state.cast::<Row>();
        let fields = PgList::<pg_sys::Node>::from_pg((*reference).fields);
        let Some(words) = fields.iter_ptr().map(|node| word(node)).collect::<Option<Vec<&CStr>>>() else {
            return std::ptr::null_mut();
        };
        let name = match words[..] {
            [name] => name,
            [table, name] if table == &*row.table => name,
            [schema, table, name] if schema == &*row.schema && table == &*row.table => name,
            _ => return std::ptr::null_mut(),
        };
        let is_named = |column: &Column| *text::server(&column.name) == *name;
        let Some(place) = row.columns.iter().position(is_named) else { return std::ptr::null_mut() };
        new_param(place as i32 + 1, row.columns[place].kind, (*reference).location)
    }
}

/// Returns the text of a string node, and nothing for another node.
///
/// # Safety
///
/// The node must be the parser's, and must live as long as the text.
pub unsafe fn word<'a>(node: *mut pg_sys::Node) -> Option<&'a CStr> {
    // SAFETY: only nodes with the tag `T_String` are read as strings.
    unsafe {
        ((*node).type_ == pg_sys::NodeTag::T_String).then(|| CStr::from_ptr((*node.cast::<pg_sys::String>()).sval))
    }
}

/// Returns the parser's node for a parameter of a function or a statement.
pub fn new_param(number: i32, kind: pg_sys::Oid, location: i32) -> *mut pg_sys::Node {
    // SAFETY: the new node has the size and the tag of a parameter.
    unsafe {
        let param = pg_sys::palloc0(size_of::<pg_sys::Param>()).cast::<pg_sys::Param>();
        (*param).xpr.type_ = pg_sys::NodeTag::T_Param;
        (*param).paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        (*param).paramid = number;
        (*param).paramtype = kind;
        (*param).paramtypmod = -1;
        (*param).paramcollid = pg_sys::get_typcollation(kind);
        (*param).location = location;
        param.cast()
    }
}

/// Creates the function as CREATE FUNCTION does.
///
/// # Safety
///
/// `body` must be a query that [`body`] has returned for these columns.
pub unsafe fn create(new: &NewFunction) -> pg_sys::Oid {
    let types: Vec<pg_sys::Oid> = new.columns.iter().map(|column| column.kind).collect();
    let names: Vec<Text> = new.columns.iter().map(Column::text).collect();
    let none = pg_sys::Datum::from(0);
    let names = if names.is_empty() { none } else { names.into_datum().unwrap_or(none) };
    let name = text::server(new.name);
    // SAFETY: the strings outlive the call, and PostgreSQL copies them.
    let address = unsafe {
        pg_sys::ProcedureCreate(
            name.as_ptr(),
            new.namespace,
            false,
            false,
            new.result,
            new.owner,
            pg_sys::get_language_oid(c"sql".as_ptr(), false),
            pg_sys::F_FMGR_SQL_VALIDATOR.into(),
            c"".as_ptr(),
            std::ptr::null(),
            new.body.cast(),
            pg_sys::PROKIND_FUNCTION as _,
            false,
            false,
            false,
            pg_sys::PROVOLATILE_STABLE as _,
            pg_sys::PROPARALLEL_UNSAFE as _,
            pg_sys::buildoidvector(types.as_ptr(), types.len() as i32),
            none,
            none,
            names,
            std::ptr::null_mut(),
            none,
            #[cfg(feature = "pg18")]
            std::ptr::null_mut(),
            none,
            pg_sys::InvalidOid,
            100.0,
            0.0,
        )
    };
    address.objectId
}
