//! Creates and drops the functions and triggers of a rule.
//!
//! Invariant: the functions belong to the table's owner. Their arguments are single columns, so that the table can be
//! altered. awty creates the triggers with its own rights, because only awty has EXECUTE on the trigger function.

use super::by_oid;
use super::dynamic_sql::{call, command, query};
use super::rule;
use super::rule_function::{self, StoredFunction};
use super::rule_trigger::{EVENTS, events, trigger_name, triggers};
use super::watched::{NEW_ROWS, RowFunction, Source};
use crate::error::{Error, Result, WatchError, log, quote};
use crate::pg::column::Column;
use crate::pg::deletion;
use crate::pg::expression::Expression;
use crate::pg::owner::{as_owner, set_local};
use crate::pg::procedure::{self, Procedure};
use crate::pg::random;
use crate::pg::role::as_role;
use crate::pg::sql_function::{self, NewFunction};
use crate::pg::subtransaction::{undone_or_raised, unless_duplicate};
use crate::pg::table::{Described, Kind, quoted};
use crate::pg::table_lock;
use crate::pg::text::Text;
use crate::store::patience;
use crate::store::typed::{is_true, statement};
use awty_core::watch::object_name;
use pgrx::pg_sys;

pub fn function_name(rule: &Text, argument: &str) -> String {
    let suffix = if argument == "until" { String::new() } else { format!("_{argument}") };
    object_name(&rule.utf8(), &suffix)
}

pub fn result_type(argument: &str) -> pg_sys::Oid {
    if ["until", "stopped"].contains(&argument) { pg_sys::BOOLOID } else { pg_sys::TIMESTAMPTZOID }
}

/// Returns the SQL comment by which awty recognises the functions of an ended rule, even in a restored dump.
fn comment(rule: &Text) -> String {
    format!("awty: judges the rows of rule \"{}\"", rule.utf8())
}

statement! {
    fn has_comment(function: pg_sys::Oid, comment: Text) -> bool = query(is_true),
    c"SELECT EXISTS (SELECT FROM pg_catalog.pg_description AS d
                     WHERE d.classoid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objoid = $1 AND d.objsubid = 0 AND d.description = $2)"
}

fn is_awtys(rule: &Text, function: &Procedure) -> bool {
    has_comment(function.oid, Text::of_utf8(&comment(rule)))
}

pub fn name_taken(rule: &Text, table: &Described, expressions: &[(&str, &Expression)]) -> Option<String> {
    let function = expressions
        .iter()
        .find_map(|(argument, expression)| beside(table, &function_name(rule, argument), &expression.columns));
    if let Some(function) = function {
        return Some(format!("function {}", function.label()));
    }
    let taken = |event: &str| has_trigger(table, &trigger_name(rule, event));
    let event = EVENTS.into_iter().find(|event| taken(event))?;
    Some(format!("trigger {} on table {}", trigger_name(rule, event), table.qualified()))
}

fn beside(table: &Described, name: &str, columns: &[Column]) -> Option<Procedure> {
    procedure::by_name(name).into_iter().find(|function| {
        function.namespace == table.namespace && function.args.iter().eq(columns.iter().map(|column| &column.kind))
    })
}

fn new_function(rule: &Text, table: &Described, argument: &str, expression: &Expression) -> pg_sys::Oid {
    let new = NewFunction {
        name: &function_name(rule, argument),
        namespace: table.namespace,
        owner: table.owner,
        result: result_type(argument),
        columns: &expression.columns,
        body: expression.body,
    };
    // SAFETY: the body was read for these columns in this call of awty.watch().
    as_role(table.owner, || unsafe { sql_function::create(&new) })
}

pub fn create_function(rule: &Text, table: &Described, argument: &str, expression: &Expression) -> RowFunction {
    let columns = expression.columns.clone();
    let oid = new_function(rule, table, argument, expression);
    as_role(table.owner, || {
        // The schema has another name if it was renamed while this transaction waited.
        let function = procedure::by_oid(oid).filter(|function| function.schema == table.schema);
        let Some(function) = function else { raise_renamed(table) };
        let on = format!("FUNCTION {}", function.signature());
        command(&format!("GRANT EXECUTE ON {on} TO PUBLIC"));
        command(&format!("COMMENT ON {on} IS {}", quote(&comment(rule))));
    });
    let name = format!("{}.{}", quoted(&table.schema), quoted(&function_name(rule, argument)));
    let function = RowFunction { argument: Text::from(argument), oid, name, columns };
    rule_function::put(rule, &function.stored());
    go_with_table(&function, table);
    function
}

statement! {
    fn has_dependency(function: pg_sys::Oid, table: pg_sys::Oid) -> bool = query(is_true),
    c"SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                     WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = $1
                         AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $2 AND d.deptype = 'a')"
}

/// Makes the function depend on the table. After a restore, awty does this again, because a dump lacks the dependency.
pub fn go_with_table(function: &RowFunction, table: &Described) {
    if has_dependency(function.oid, table.oid) {
        return;
    }
    let address = |class, object| pg_sys::ObjectAddress { classId: class, objectId: object, objectSubId: 0 };
    let function = address(pg_sys::ProcedureRelationId, function.oid);
    let relation = address(pg_sys::RelationRelationId, table.oid);
    // SAFETY: both objects exist, and a transaction is open.
    unsafe { pg_sys::recordDependencyOn(&function, &relation, pg_sys::DependencyType::DEPENDENCY_AUTO) };
}

pub fn create_triggers(rule: &Text, source: &Source) {
    let Source { table, key, until, start, stopped, .. } = source;
    let on = table.qualified();
    let row =
        |row: &str| key.iter().map(|part| format!("{row}.{}", part.column.quoted())).collect::<Vec<_>>().join(", ");
    let mut changes = vec![
        format!("({} IS TRUE) OPERATOR(pg_catalog.<>) ({} IS TRUE)", until.over("OLD"), until.over("NEW")),
        record_ne(&row("OLD"), &row("NEW")),
    ];
    if let Some(start) = start.as_ref().filter(|start| !start.columns.is_empty()) {
        // Compares the columns of the expression `due` instead of its value, because a role that writes a row may have
        // no right to read the calendars.
        let differs = match start.argument.as_bytes() {
            b"due" => record_ne(&start.columns_of("OLD"), &start.columns_of("NEW")),
            _ => format!("{} IS DISTINCT FROM {}", start.over("OLD"), start.over("NEW")),
        };
        changes.push(format!("{} IS NOT TRUE AND {differs}", until.over("NEW")));
    }
    // An INSERT into a partition does not fire the statement triggers of the partitioned table, so a partitioned table
    // gets a row trigger.
    let inserted = match table.kind {
        Kind::Plain => format!("REFERENCING NEW TABLE AS {NEW_ROWS} FOR EACH STATEMENT"),
        _ => "FOR EACH ROW".into(),
    };
    let argument = quote(&rule.utf8());
    let changes = changes.join(" OR ");
    let create = |name: &str, event: &str, how: &str, arguments: &str| {
        let name = quoted(&trigger_name(rule, name));
        as_owner(|| {
            command(&format!(
                "CREATE TRIGGER {name} AFTER {event} ON {on} {how} EXECUTE FUNCTION awty_internal.row_changed({arguments})"
            ));
        });
    };
    create("INSERT", "INSERT", &inserted, &argument);
    create("UPDATE", "UPDATE", &format!("FOR EACH ROW WHEN ({changes})"), &argument);
    // If the rule has the expression `stopped`, any deleted row may have an entry in `awty_internal.stop`. The DELETE
    // trigger therefore fires for every row, so that awty deletes the entry.
    let deleted = match stopped {
        Some(_) => String::new(),
        None => format!("WHEN ({} IS NOT TRUE)", until.over("OLD")),
    };
    create("DELETE", "DELETE", &format!("FOR EACH ROW {deleted}"), &argument);
    create("TRUNCATE", "TRUNCATE", "FOR EACH STATEMENT", &argument);
    if let Some(stopped) = stopped {
        let (old, new) = (stopped.over("OLD"), stopped.over("NEW"));
        let differs = format!("({old} IS TRUE) OPERATOR(pg_catalog.<>) ({new} IS TRUE)");
        let how = format!("FOR EACH ROW WHEN ({differs} AND NOT ({changes}))");
        create("STOPPED", "UPDATE", &how, &format!("{argument}, 'stopped'"));
    }
    check_triggers(rule, table, events(stopped.is_some()).len());
    let names: Vec<Text> = EVENTS.iter().map(|event| Text::of_utf8(&trigger_name(rule, event))).collect();
    if calls_another_function(rule, table.oid, &names) {
        raise_renamed(table);
    }
}

statement! {
    /// Returns whether the condition of one of the triggers calls a function that is not the rule's. Functions of
    /// PostgreSQL have no row in pg_depend.
    fn calls_another_function(rule: &Text, table: pg_sys::Oid, triggers: &[Text]) -> bool = query(is_true),
    c"SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
                     JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid = t.oid
                     WHERE t.tgrelid = $2 AND t.tgname = ANY ($3::pg_catalog.name[])
                         AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid <> t.tgfoid
                         AND NOT EXISTS (SELECT FROM awty_internal.rule_function AS f WHERE f.rule = $1 AND f.function = d.refobjid))"
}

/// Raises an error if the table has another number of the rule's triggers.
///
/// awty's owner may change the triggers of any table. The commands name the table, and the name means another role's
/// table if schemas were renamed while this transaction waited. The error undoes what the commands did there.
fn check_triggers(rule: &Text, table: &Described, wanted: usize) {
    if triggers(rule, table.oid).len() != wanted {
        raise_renamed(table);
    }
}

fn raise_renamed(table: &Described) -> ! {
    Error::from(WatchError::Renamed { relation: table.qualified() }).raise()
}

/// Compares two rows as a whole. Calls a function, because PostgreSQL would turn an operator between rows into
/// comparisons of single columns.
fn record_ne(one: &str, other: &str) -> String {
    format!("pg_catalog.record_image_ne(ROW({one}), ROW({other}))")
}

statement! {
    fn is_used(function: pg_sys::Oid) -> bool = query_latest(is_true),
    c"SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                     WHERE d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid = $1)"
}

fn busy(rule: &Text) -> Error {
    WatchError::Busy { rule: rule.to_string() }.into()
}

/// Waits for other transactions that have locked the rule's functions, or that have created a function in the place of
/// one that the rule needs. PostgreSQL looks at uncommitted functions only when it creates one.
pub fn wait(rule: &Text, table: &Described, expressions: &[(&str, &Expression)]) {
    for function in functions_of(rule, table) {
        undone_or_raised(|| patience::wait(|| busy(rule), || deletion::lock_function(function.oid)));
    }
    for (argument, expression) in expressions {
        if beside(table, &function_name(rule, argument), &expression.columns).is_none() {
            let create = || unless_duplicate(|| _ = new_function(rule, table, argument, expression));
            undone_or_raised(|| patience::wait(|| busy(rule), create));
        }
    }
}

/// Locks the rule's functions for a moment only, and then the table if it has triggers of the rule. Returns the
/// functions.
pub fn lock(rule: &Text, table: &Described) -> Result<Vec<Procedure>> {
    let functions = patience::for_a_moment(
        || busy(rule),
        || {
            let mut functions = functions_of(rule, table);
            as_owner(|| {
                functions.retain(|function| {
                    deletion::lock_function(function.oid);
                    deletion::leave_extension(function.oid); // the former owner of the table may have added the function
                    procedure::by_oid(function.oid).is_some()
                });
            });
            Ok(functions)
        },
    )?;
    if !triggers(rule, table.oid).is_empty() {
        // Locks the table before the rule's rows, because a run locks them in the same order. The opposite order could
        // deadlock.
        table_lock::exclusively(table.oid);
    }
    Ok(functions)
}

/// Drops what [`lock`] has locked. Keeps each function that a view or another object uses, and tells so.
///
/// Any role with USAGE on the schema can make such a view and lock it. So awty neither drops the view nor waits for it.
pub fn drop_all(rule: &Text, table: &Described, functions: Vec<Procedure>) {
    rule_function::remove(rule);
    rule::remove(rule);
    // By OID, because another role may have renamed schemas during the wait.
    triggers(rule, table.oid).iter().for_each(|trigger| deletion::drop_trigger(trigger.oid));
    for function in functions {
        if is_used(function.oid) {
            set_free(rule, &function, table);
        } else {
            deletion::drop_function(function.oid);
        }
    }
}

/// Gives the function another name, because the next rule of this name needs the old one. The function keeps its owner,
/// because the objects that use it would run the code of a new owner.
fn set_free(rule: &Text, function: &Procedure, table: &Described) {
    // Another role could take a name that it can guess.
    let name = format!("awty_left_{}", random::number());
    as_owner(|| command(&format!("ALTER FUNCTION {} RENAME TO {name}", function.signature())));
    let Some(free) = procedure::by_oid(function.oid).filter(|function| function.name == name) else {
        raise_renamed(table) // the command has altered another function
    };
    let left = quote(&format!("awty: left by rule \"{}\"", rule.utf8()));
    as_owner(|| command(&format!("COMMENT ON FUNCTION {} IS {left}", free.signature())));
    deletion::stay_without_table(free.oid);
    log::notice(format!("function {} is now {}, because other objects use it", function.label(), free.qualified()));
}

/// Returns the functions that awty has created for the rule, also for an earlier one of the same name. Any role that may
/// create functions in the schema can give its own function the comment, so the owner counts too, unless the rule has
/// lost its functions in a restore.
fn functions_of(rule: &Text, table: &Described) -> Vec<Procedure> {
    let stored: Vec<StoredFunction> = rule_function::of(rule);
    let is_stored = |function: &Procedure| stored.iter().any(|stored| stored.function == function.oid);
    let is_restored = stored.iter().any(|stored| procedure::by_oid(stored.function).is_none());
    ["since", "due", "stopped", "until"]
        .iter()
        .flat_map(|argument| procedure::by_name(&function_name(rule, argument)))
        .filter(|function| {
            let may_be = function.schema == table.schema && (function.owner == table.owner || is_restored);
            is_stored(function) || may_be && is_awtys(rule, function)
        })
        .collect()
}

fn has_trigger(table: &Described, name: &str) -> bool {
    const SQL: &str = "SELECT 1 FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid OPERATOR(pg_catalog.=) $1 AND t.tgname OPERATOR(pg_catalog.=) $2";
    let args = [crate::store::arg(table.oid), Some(Text::of_utf8(name).datum())];
    query(SQL, &[pg_sys::OIDOID, pg_sys::TEXTOID], &args, |rows| rows.len() > 0)
}

pub fn call_with(function: pg_sys::Oid, alerts: pg_sys::Datum, array_type: pg_sys::Oid) {
    let told = by_oid::call(function, "r", std::iter::once("alert".into()));
    let sql = format!("SELECT {told} FROM (SELECT a AS alert FROM pg_catalog.unnest($1) AS a) AS r");
    // SAFETY: AtEOXact_GUC() below, or the abort after an ERROR, ends the new level of settings.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    set_local(c"row_security", c"off");
    call(&sql, &[array_type], &[Some(alerts)]);
    // SAFETY: `nest` is the level of settings that `NewGUCNestLevel` has opened above.
    unsafe { pg_sys::AtEOXact_GUC(true, nest) };
}
