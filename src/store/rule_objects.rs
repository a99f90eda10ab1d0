//! What a rule puts beside its table: functions that judge a row, and triggers.
//!
//! Invariant: the functions belong to the table's owner, and the triggers are made with awty's rights, which may fire its function.
//! DROP TABLE takes both along.
//! Does not: decide what they are for (see `crate::watch`).

use super::by_text::{call, command, query};
use super::statement::statement;
use super::watched::{NEW_ROWS, Source};
use crate::pg::owner::{as_owner, set_local};
use crate::pg::role::as_role;
use crate::pg::table::{self, Described, Kind, quoted};
use crate::pg::text::Text;
use awty_core::watch::object_name;
use pgrx::pg_sys;

statement!(
    select_used,
    [OIDOID, TEXTOID, OIDARRAYOID],
    c"SELECT d.refobjid FROM pg_catalog.pg_trigger AS t
      JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid = t.oid
      WHERE t.tgrelid = $1 AND t.tgname = $2::pg_catalog.name
        AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid = ANY ($3)"
);

/// A rule's name for SQL: of its functions and triggers.
fn named(rule: &Text, suffix: &str) -> String {
    object_name(&rule.to_string(), suffix)
}

/// The function of a rule, with its OID: `suffix` is empty for the one that says whether a row is there, or `_since`.
pub fn function(rule: &Text, suffix: &str, table: &Described) -> Option<(pg_sys::Oid, String)> {
    let mut found = table::functions(&named(rule, suffix), table.row_type);
    if found.len() != 1 || found[0].1 != table.owner {
        // Somebody else has one of that name, too, or the table another owner. The one that the rule's trigger calls is the rule's.
        let oids: Vec<pg_sys::Oid> = found.iter().map(|(oid, ..)| *oid).collect();
        let trigger = Text::from(named(rule, "_update").as_str());
        let args = [super::arg(table.oid), Some(trigger.datum()), super::arg(oids)];
        let used: Option<pg_sys::Oid> = as_owner(|| select_used(|s| s.query(&args, |rows| rows.first(1))));
        // Before there is a trigger, the one that has just been made.
        let made = format!("{}.{}", quoted(&table.schema), quoted(&named(rule, suffix)));
        found.retain(|(oid, owner, name)| match used {
            Some(used) => *oid == used,
            None => *owner == table.owner && *name == made,
        });
    }
    found.into_iter().next().map(|(oid, _, name)| (oid, name))
}

/// Writes the functions of a rule, as the table's owner.
pub fn create_functions(rule: &Text, table: &Described, until: &str, since: Option<&str>) {
    let row = table.qualified();
    let one = |suffix: &str, result: &str, body: &str| {
        let name = format!("{}.{}", quoted(&table.schema), quoted(&named(rule, suffix)));
        as_role(table.owner, || {
            command(&format!("CREATE FUNCTION {name}(t {row}) RETURNS {result} LANGUAGE sql STABLE RETURN {body}"));
            command(&format!("GRANT EXECUTE ON FUNCTION {name}({row}) TO PUBLIC"));
        });
    };
    one("", "pg_catalog.bool", until);
    if let Some(since) = since {
        one("_since", "pg_catalog.timestamptz", since);
    }
    go_with_table(rule, table);
}

statement!(
    has_dependency,
    [OIDOID, OIDOID],
    c"SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                     WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = $1
                         AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $2 AND d.deptype = 'a')"
);

/// Has PostgreSQL drop the functions together with the table. A dump does not carry that along.
pub fn go_with_table(rule: &Text, table: &Described) {
    for (function, _) in ["", "_since"].iter().filter_map(|suffix| function(rule, suffix, table)) {
        let recorded = [super::arg(function), super::arg(table.oid)];
        if as_owner(|| has_dependency(|s| s.query(&recorded, |rows| rows.first(1)))).unwrap_or(false) {
            continue;
        }
        let address = |class, object| pg_sys::ObjectAddress { classId: class, objectId: object, objectSubId: 0 };
        let function = address(pg_sys::ProcedureRelationId, function);
        let relation = address(pg_sys::RelationRelationId, table.oid);
        // SAFETY: two objects that exist, in a transaction.
        unsafe { pg_sys::recordDependencyOn(&function, &relation, pg_sys::DependencyType::DEPENDENCY_AUTO) };
    }
}

/// Puts the triggers of a rule on its table.
pub fn create_triggers(rule: &Text, source: &Source) {
    let Source { table, key, until, since, .. } = source;
    let on = table.qualified();
    let row = |row: &str| key.iter().map(|column| format!("{row}.{}", column.name)).collect::<Vec<_>>().join(", ");
    let mut changes = vec![
        format!("({until}(OLD.*) IS TRUE) OPERATOR(pg_catalog.<>) ({until}(NEW.*) IS TRUE)"),
        // As a function: the operator between two rows would be read as one between their columns.
        format!("pg_catalog.record_image_ne(ROW({}), ROW({}))", row("OLD"), row("NEW")),
    ];
    if let Some(since) = since {
        changes.push(format!("{until}(NEW.*) IS NOT TRUE AND {since}(OLD.*) IS DISTINCT FROM {since}(NEW.*)"));
    }
    // An INSERT into a partition fires no statement trigger of the table that is watched.
    let inserted = match table.kind {
        Kind::Plain => format!("REFERENCING NEW TABLE AS {NEW_ROWS} FOR EACH STATEMENT"),
        _ => "FOR EACH ROW".into(),
    };
    let argument = format!("'{}'", rule.to_string().replace('\'', "''"));
    for (suffix, event, how) in [
        ("_insert", "INSERT", inserted),
        ("_update", "UPDATE", format!("FOR EACH ROW WHEN ({})", changes.join(" OR "))),
        ("_delete", "DELETE", format!("FOR EACH ROW WHEN ({until}(OLD.*) IS NOT TRUE)")),
        ("_truncate", "TRUNCATE", "FOR EACH STATEMENT".into()),
    ] {
        let name = quoted(&named(rule, suffix));
        as_owner(|| {
            command(&format!(
                "CREATE TRIGGER {name} AFTER {event} ON {on} {how} EXECUTE FUNCTION awty_internal.row_changed({argument})"
            ));
        });
    }
}

/// Takes a rule's triggers and functions away.
pub fn drop_all(rule: &Text, table: &Described) {
    let functions: Vec<String> =
        ["_since", ""].iter().filter_map(|suffix| function(rule, suffix, table)).map(|(_, name)| name).collect();
    let on = table.qualified();
    as_owner(|| {
        for suffix in ["_insert", "_update", "_delete", "_truncate"] {
            let name = named(rule, suffix);
            if has_trigger(table, &name) {
                command(&format!("DROP TRIGGER {} ON {on}", quoted(&name)));
            }
        }
        for function in functions {
            command(&format!("DROP FUNCTION {function}({on})"));
        }
    });
}

fn has_trigger(table: &Described, name: &str) -> bool {
    const SQL: &str = "SELECT 1 FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid OPERATOR(pg_catalog.=) $1 AND t.tgname OPERATOR(pg_catalog.=) $2";
    let args = [super::arg(table.oid), Some(Text::from(name).datum())];
    query(SQL, &[pg_sys::OIDOID, pg_sys::TEXTOID], &args, None, |rows| rows.len() > 0)
}

/// Calls a function with each of these alerts, as the role that the session is. A policy that would hide rows is an error.
pub fn call_with(schema: &Text, name: &Text, alerts: pg_sys::Datum, array_type: pg_sys::Oid) {
    let function = format!("{}.{}", quoted(&schema.to_string()), quoted(&name.to_string()));
    let sql = format!("SELECT {function}(a) FROM pg_catalog.unnest($1) AS a");
    // SAFETY: the level is closed below, or by the abort.
    let nest = unsafe { pg_sys::NewGUCNestLevel() };
    set_local(c"row_security", c"off");
    call(&sql, &[array_type], &[Some(alerts)]);
    // SAFETY: the level that was opened above.
    unsafe { pg_sys::AtEOXact_GUC(true, nest) };
}
