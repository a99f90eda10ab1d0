//! Parses a user's expression over the row of a table.
//!
//! Invariant: this module never executes the expression. The parser sees the expression alone, so its text cannot end a
//! surrounding statement.

use super::catch::{Raised, catch_raised};
use super::column::Column;
use super::text::{Text, utf8};
use super::{catalog, sql_function, unbound};
use pgrx::{pg_guard, pg_sys};
use std::ffi::c_void;

pub struct Expression {
    /// Body of an SQL function whose parameters are `columns`.
    pub body: *mut pg_sys::Query,
    pub columns: Vec<Column>,
    /// Type of the expression, or the base type if that type is a domain.
    pub kind: pg_sys::Oid,
    pub is_volatile: bool,
    pub clock: Option<String>,
    pub calendar: Option<String>,
}

pub enum Unreadable {
    Raised(Raised),
    NotOne,
    SetReturning,
    WholeRow,
    SystemColumn,
}

pub fn read(text: &Text, relation: pg_sys::Oid) -> Result<Expression, Unreadable> {
    let source = catalog::c_name(text.as_bytes());
    // SAFETY: `source` is a C string, the table is locked, and the closures passed to `catch_raised` only call C
    // functions.
    unsafe {
        let raw = catch_raised(|| unbound::raw_parser(source.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_PLPGSQL_EXPR))
            .map_err(Unreadable::Raised)?;
        let raw = only_target(raw).ok_or(Unreadable::NotOne)?;
        // Copies the node, because the analysis may change it. The body gets the copy instead of the text, because code
        // of a literal's type may change how the text would be read.
        let copy = pg_sys::copyObjectImpl(raw.cast()).cast::<pg_sys::Node>();
        let table = pg_sys::relation_open(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        let state = pg_sys::make_parsestate(std::ptr::null_mut());
        (*state).p_sourcetext = source.as_ptr();
        let item = pg_sys::addRangeTableEntryForRelation(
            state,
            table,
            pg_sys::AccessShareLock as i32,
            std::ptr::null_mut(),
            false,
            true,
        );
        pg_sys::addNSItemToQuery(state, item, false, true, true);
        const KIND: pg_sys::ParseExprKind::Type = pg_sys::ParseExprKind::EXPR_KIND_CHECK_CONSTRAINT;
        let node = catch_raised(|| unbound::transform_expr(state, raw, KIND));
        let read = node.map_err(Unreadable::Raised).and_then(|node| {
            if pg_sys::expression_returns_set(node) {
                return Err(Unreadable::SetReturning);
            }
            let columns = columns(node);
            if columns.contains(&0) {
                return Err(Unreadable::WholeRow);
            }
            if columns.iter().any(|number| *number < 0) {
                return Err(Unreadable::SystemColumn);
            }
            let columns: Vec<Column> =
                columns.into_iter().filter_map(|number| Column::by_number(relation, number)).collect();
            let (mut clock, mut calendar): (Option<String>, Option<String>) = (None, None);
            unbound::walk(find_clock, node, std::ptr::from_mut(&mut clock).cast());
            unbound::walk(find_calendar, node, std::ptr::from_mut(&mut calendar).cast());
            let body = sql_function::body(copy, &source, relation, &columns).map_err(Unreadable::Raised)?;
            Ok(Expression {
                body,
                columns,
                kind: pg_sys::getBaseType(pg_sys::exprType(node)),
                is_volatile: pg_sys::contain_volatile_functions(node),
                clock,
                calendar,
            })
        });
        pg_sys::free_parsestate(state);
        pg_sys::relation_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        read
    }
}

unsafe fn only_target(list: *mut pg_sys::List) -> Option<*mut pg_sys::Node> {
    // SAFETY: for a PL/pgSQL expression, the parser returns one SELECT with a target list.
    unsafe {
        let statement = (*first(list)?.cast::<pg_sys::RawStmt>()).stmt.cast::<pg_sys::SelectStmt>();
        let select = &*statement;
        let besides = [
            select.distinctClause,
            select.fromClause,
            select.groupClause,
            select.windowClause,
            select.sortClause,
            select.lockingClause,
        ];
        let is_alone = besides.iter().all(|list| list.is_null())
            && [select.whereClause, select.havingClause, select.limitOffset, select.limitCount]
                .iter()
                .all(|n| n.is_null());
        let targets = select.targetList;
        if !is_alone || targets.is_null() || (*targets).length != 1 {
            return None;
        }
        let target = &*first(targets)?.cast::<pg_sys::ResTarget>();
        (target.name.is_null() && target.indirection.is_null()).then_some(target.val)
    }
}

unsafe fn first(list: *mut pg_sys::List) -> Option<*mut c_void> {
    // SAFETY: the list has at least one element, and its elements are pointers.
    unsafe { (!list.is_null() && (*list).length > 0).then(|| (*(*list).elements).ptr_value) }
}

/// Returns the numbers of the columns that the expression reads: 0 means the whole row, and negative numbers mean
/// system columns.
unsafe fn columns(node: *mut pg_sys::Node) -> Vec<i16> {
    let mut found = std::ptr::null_mut();
    let mut columns = Vec::new();
    // SAFETY: `node` reads one table, which is number 1 of the range table.
    unsafe {
        pg_sys::pull_varattnos(node, 1, &mut found);
        let mut member = pg_sys::bms_next_member(found, -1);
        while member >= 0 {
            columns.extend(i16::try_from(member + pg_sys::FirstLowInvalidHeapAttributeNumber));
            member = pg_sys::bms_next_member(found, member);
        }
    }
    columns
}

const CLOCK: [u32; 8] = [
    pg_sys::F_NOW,
    pg_sys::F_TRANSACTION_TIMESTAMP,
    pg_sys::F_STATEMENT_TIMESTAMP,
    pg_sys::F_CLOCK_TIMESTAMP,
    pg_sys::F_TIMEOFDAY,
    pg_sys::F_AGE_TIMESTAMPTZ,
    pg_sys::F_AGE_TIMESTAMP,
    pg_sys::F_AGE_XID,
];

#[pg_guard]
unsafe extern "C-unwind" fn find_clock(node: *mut pg_sys::Node, found: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: each cast matches the node's tag.
    unsafe {
        let named = match (*node).type_ {
            pg_sys::NodeTag::T_FuncExpr => {
                let function = (*node.cast::<pg_sys::FuncExpr>()).funcid;
                if CLOCK.contains(&function.to_u32()) {
                    Some(format!("{}()", utf8(pg_sys::get_func_name(function))))
                } else if awtys(function).is_some_and(|name| name == "now") {
                    Some("awty.now()".into())
                } else {
                    None
                }
            }
            pg_sys::NodeTag::T_SQLValueFunction => {
                use pg_sys::SQLValueFunctionOp as Op;
                match (*node.cast::<pg_sys::SQLValueFunction>()).op {
                    Op::SVFOP_CURRENT_DATE => Some("CURRENT_DATE".into()),
                    Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => Some("CURRENT_TIME".into()),
                    Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => Some("CURRENT_TIMESTAMP".into()),
                    Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => Some("LOCALTIME".into()),
                    Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => Some("LOCALTIMESTAMP".into()),
                    _ => None,
                }
            }
            _ => None,
        };
        if named.is_some() {
            *found.cast::<Option<String>>() = named;
            return true;
        }
        pg_sys::expression_tree_walker(node, Some(find_clock), found)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn find_calendar(node: *mut pg_sys::Node, found: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: the cast matches the node's tag.
    unsafe {
        if (*node).type_ == pg_sys::NodeTag::T_FuncExpr {
            let name = awtys((*node.cast::<pg_sys::FuncExpr>()).funcid);
            if let Some(name) = name.filter(|name| ["due", "open_time"].contains(&name.as_str())) {
                *found.cast::<Option<String>>() = Some(format!("awty.{name}()"));
                return true;
            }
        }
        pg_sys::expression_tree_walker(node, Some(find_calendar), found)
    }
}

fn awtys(function: pg_sys::Oid) -> Option<String> {
    // SAFETY: a transaction is open, and the name is copied.
    unsafe {
        let is_awtys = pg_sys::get_func_namespace(function) == pg_sys::get_namespace_oid(c"awty".as_ptr(), true);
        is_awtys.then(|| utf8(pg_sys::get_func_name(function)))
    }
}

/// Returns `false` if the function's body uses only PostgreSQL's own immutable functions.
pub fn depends_on_settings(function: pg_sys::Oid) -> bool {
    // SAFETY: `body` is a node tree that PostgreSQL's parser has written.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::PROCOID as i32, pg_sys::Datum::from(function));
        if tuple.is_null() {
            return true;
        }
        let mut is_null = false;
        let body = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::PROCOID as i32,
            tuple,
            pg_sys::Anum_pg_proc_prosqlbody as i16,
            &mut is_null,
        );
        let depends = is_null
            || unbound::walk(
                is_of_settings,
                pg_sys::stringToNode(pg_sys::text_to_cstring(body.cast_mut_ptr())).cast(),
                std::ptr::null_mut(),
            );
        pg_sys::ReleaseSysCache(tuple);
        depends
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_of_settings(node: *mut pg_sys::Node, nothing: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: each cast matches the node's tag.
    unsafe {
        match (*node).type_ {
            // Reports every cast to text, because many depend on settings, although PostgreSQL marks them as immutable.
            // Reports every cast to a domain, because the domain's constraint may be any expression.
            pg_sys::NodeTag::T_CoerceViaIO
            | pg_sys::NodeTag::T_CoerceToDomain
            | pg_sys::NodeTag::T_SQLValueFunction
            | pg_sys::NodeTag::T_XmlExpr => true,
            pg_sys::NodeTag::T_Query => pg_sys::query_tree_walker(node.cast(), Some(is_of_settings), nothing, 0),
            _ => {
                pg_sys::check_functions_in_node(node, Some(is_foreign_or_mutable), nothing)
                    || pg_sys::expression_tree_walker(node, Some(is_of_settings), nothing)
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_foreign_or_mutable(function: pg_sys::Oid, _nothing: *mut c_void) -> bool {
    // SAFETY: a transaction is open.
    let (volatility, result) = unsafe { (pg_sys::func_volatile(function), pg_sys::get_func_rettype(function)) };
    // A direct call of an output function such as float8out() is also a cast to text.
    function.to_u32() >= pg_sys::FirstNormalObjectId
        || volatility as u8 != pg_sys::PROVOLATILE_IMMUTABLE
        || result == pg_sys::CSTRINGOID
}
