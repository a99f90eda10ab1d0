//! Checks which objects the names in a statement mean. The statement runs as the owner of a watched table, and another
//! role may own a schema that the statement names. This role can rename its schemas while the statement waits for a
//! lock, so that a name means the role's own view, function or type.
//!
//! PostgreSQL calls `post_parse_analyze_hook` each time it has analysed a statement, also when it analyses a cached plan
//! again. Nothing of the statement has been executed by then, and names are not looked up after that. No other way
//! closes the gap: SQL cannot name a table by OID; a lock on the table does not keep its schema from being renamed; and
//! between a comparison of names and the execution, PostgreSQL may analyse the statement again.
//!
//! Invariant: only statements of a [`Plan`](super::by_oid::Plan) are checked. The hook recognises them by the parser's state,
//! so statements of users are not checked, even if a function in the statement executes them.

use crate::error::{Error, WatchError};
use crate::pg::table::{self, Kind};
use crate::pg::{catalog, procedure, scalar};
use pgrx::{PgList, pg_guard, pg_sys};
use std::ffi::{c_int, c_void};

/// Objects that the names in a statement must mean.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Names {
    /// Name of the table, for the message of an error.
    pub relation: String,
    pub table: pg_sys::Oid,
    pub kind: Kind,
    pub owner: pg_sys::Oid,
    /// Types of the columns of the primary key.
    pub key: Vec<pg_sys::Oid>,
    /// Functions of the rule.
    pub functions: Vec<pg_sys::Oid>,
}

/// Raises an error if the names in the query mean other objects.
///
/// # Safety
///
/// The query must be complete.
pub unsafe fn check(query: *mut pg_sys::Query, names: &Names) {
    // SAFETY: the query is complete, and `names` lives until the end of the walk.
    let is_other = unsafe {
        let context = std::ptr::from_ref(names).cast_mut().cast();
        has_other_key(query, names) || walk(query, context)
    };
    if is_other {
        Error::from(WatchError::Renamed { relation: names.relation.clone() }).raise();
    }
}

/// Returns whether the statement reads key columns of other types. Their values would be taken for values of the types
/// in `names`.
unsafe fn has_other_key(query: *mut pg_sys::Query, names: &Names) -> bool {
    // SAFETY: the elements of the target list are target entries.
    unsafe {
        let targets = PgList::<pg_sys::TargetEntry>::from_pg((*query).targetList);
        names.key.iter().enumerate().any(|(place, kind)| {
            targets.get_ptr(place).is_none_or(|target| pg_sys::exprType((*target).expr.cast()) != *kind)
        })
    }
}

unsafe fn walk(query: *mut pg_sys::Query, names: *mut c_void) -> bool {
    // SAFETY: the caller passes a query, and the pointer to `Names` that `is_other` expects.
    unsafe { pg_sys::query_tree_walker(query, Some(is_other), names, pg_sys::QTW_EXAMINE_RTES_BEFORE as c_int) }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_other(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag;
    if node.is_null() {
        return false;
    }
    // SAFETY: each cast matches the node's tag, and `context` points to the `Names` of the statement.
    unsafe {
        let names = &*context.cast::<Names>();
        match (*node).type_ {
            NodeTag::T_Query => return walk(node.cast(), context),
            // The walker goes through the entry's functions by itself.
            NodeTag::T_RangeTblEntry => return is_other_table(&*node.cast(), names),
            NodeTag::T_FuncExpr if has_other_arguments(&*node.cast(), names) => return true,
            NodeTag::T_CoerceToDomain
            | NodeTag::T_CoerceViaIO
            | NodeTag::T_RelabelType
            | NodeTag::T_ArrayCoerceExpr
            | NodeTag::T_ConvertRowtypeExpr
                if is_other_type(pg_sys::exprType(node), names) =>
            {
                return true;
            }
            _ => {}
        }
        pg_sys::check_functions_in_node(node, Some(is_other_function), context)
            || pg_sys::expression_tree_walker(node, Some(is_other), context)
    }
}

/// Also compares owner and kind, because a new owner may have turned the table into a view.
fn is_other_table(entry: &pg_sys::RangeTblEntry, names: &Names) -> bool {
    let is_wanted =
        |table: table::Described| table.oid == names.table && table.owner == names.owner && table.kind == names.kind;
    entry.rtekind == pg_sys::RTEKind::RTE_RELATION && !table::describe(entry.relid).is_some_and(is_wanted)
}

/// Returns whether a function of the rule gets columns of other types, because the columns were renamed or altered.
unsafe fn has_other_arguments(call: &pg_sys::FuncExpr, names: &Names) -> bool {
    if !names.functions.contains(&call.funcid) {
        return false;
    }
    // SAFETY: the elements of the list of arguments are nodes.
    unsafe {
        let args = PgList::<pg_sys::Node>::from_pg(call.args);
        let kinds = args.iter_ptr().map(|arg| pg_sys::exprType(arg));
        procedure::by_oid(call.funcid).is_none_or(|function| !function.args.into_iter().eq(kinds))
    }
}

fn is_other_type(kind: pg_sys::Oid, names: &Names) -> bool {
    // Keys are cast to base types, which run no code of their owners.
    // SAFETY: a transaction is open.
    let is_of_key = |column: &pg_sys::Oid| unsafe { pg_sys::getBaseType(*column) } == kind;
    let is_key = names.key.iter().any(is_of_key) && scalar::check(kind).is_ok();
    !is_key && is_of_other(kind, catalog::owner_of_type, names)
}

#[pg_guard]
unsafe extern "C-unwind" fn is_other_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    // SAFETY: `context` points to the `Names` of the statement.
    let names = unsafe { &*context.cast::<Names>() };
    is_of_other(function, |function| procedure::by_oid(function).map(|found| found.owner), names)
}

fn is_of_other(object: pg_sys::Oid, owner: impl Fn(pg_sys::Oid) -> Option<pg_sys::Oid>, names: &Names) -> bool {
    object.to_u32() >= pg_sys::FirstNormalObjectId
        && !owner(object).is_some_and(|owner| owner == names.owner || catalog::is_superuser(owner))
}
