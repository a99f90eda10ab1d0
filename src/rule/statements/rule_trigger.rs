//! Reads the triggers of a rule.

use crate::pg::text::Text;
use crate::store::statement::Rows;
use crate::store::typed::statement;
use awty_core::watch::object_name;
use pgrx::pg_sys;

/// The trigger STOPPED fires for an UPDATE that only stops or continues a row's clock.
pub const EVENTS: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "TRUNCATE", "STOPPED"];

pub fn events(has_stopped: bool) -> &'static [&'static str] {
    if has_stopped { &EVENTS } else { &EVENTS[..4] }
}

pub fn trigger_name(rule: &Text, event: &str) -> String {
    object_name(&rule.utf8(), &format!("_{}", event.to_lowercase()))
}

pub fn is_trigger_name(rule: &Text, name: &Text) -> bool {
    EVENTS.iter().any(|event| Text::of_utf8(&trigger_name(rule, event)) == *name)
}

pub struct Trigger {
    pub oid: pg_sys::Oid,
    pub name: String,
    enabled: i8,
    kind: i16,
}

impl Trigger {
    /// A trigger in the state `R` fires only in sessions that apply the changes of another server.
    fn is_disabled(&self) -> bool {
        matches!(self.enabled as u8, b'D' | b'R')
    }

    pub fn is_insert_statement(&self) -> bool {
        let kind = i32::from(self.kind);
        kind & pg_sys::TRIGGER_TYPE_INSERT as i32 != 0 && kind & pg_sys::TRIGGER_TYPE_ROW as i32 == 0
    }
}

statement!(
    select_triggers,
    [OIDOID, TEXTOID],
    c"SELECT t.oid, t.tgname::pg_catalog.text, t.tgenabled, t.tgtype FROM pg_catalog.pg_trigger AS t
      WHERE t.tgrelid = $1 AND t.tgfoid = 'awty_internal.row_changed()'::pg_catalog.regprocedure AND t.tgparentid = 0
          AND t.tgargs IN (pg_catalog.convert_to($2, pg_catalog.getdatabaseencoding()) || '\\x00'::pg_catalog.bytea,
              pg_catalog.convert_to($2, pg_catalog.getdatabaseencoding()) || '\\x0073746f7070656400'::pg_catalog.bytea)
      ORDER BY t.tgname"
);

statement!(
    select_named_triggers,
    [OIDOID, TEXTOID, TEXTARRAYOID],
    c"SELECT f.oid, f.tgname::pg_catalog.text, f.tgenabled, f.tgtype FROM pg_catalog.unnest($3) AS n (name)
      CROSS JOIN LATERAL (
          SELECT t.oid, t.tgname, t.tgenabled, t.tgtype FROM pg_catalog.pg_trigger AS t
          WHERE t.tgrelid = $1 AND t.tgname = n.name::pg_catalog.name
              AND t.tgfoid = 'awty_internal.row_changed()'::pg_catalog.regprocedure AND t.tgparentid = 0
              AND t.tgargs IN (pg_catalog.convert_to($2, pg_catalog.getdatabaseencoding()) || '\\x00'::pg_catalog.bytea,
                  pg_catalog.convert_to($2, pg_catalog.getdatabaseencoding()) || '\\x0073746f7070656400'::pg_catalog.bytea) LIMIT 1
      ) AS f"
);

fn read(rows: &Rows) -> Vec<Trigger> {
    rows.all(|row| {
        let name = rows.get::<Text>(row, 2)?.utf8();
        Some(Trigger { oid: rows.get(row, 1)?, name, enabled: rows.get(row, 3)?, kind: rows.get(row, 4)? })
    })
}

pub fn triggers(rule: &Text, table: pg_sys::Oid) -> Vec<Trigger> {
    let args = [crate::store::arg(table), Some(rule.datum())];
    select_triggers().query_latest(&args, read)
}

/// Searches triggers by name first, because a table may have thousands of triggers. If a trigger is missing, searches
/// all, because the owner may have renamed it.
pub fn triggers_of_events(rule: &Text, table: pg_sys::Oid, events: &[&str]) -> Vec<Trigger> {
    let names: Vec<Text> = events.iter().map(|event| Text::of_utf8(&trigger_name(rule, event))).collect();
    let args = [crate::store::arg(table), Some(rule.datum()), crate::store::arg(names)];
    let named = select_named_triggers().query(&args, read);
    if named.len() == events.len() { named } else { triggers(rule, table) }
}

statement! {
    /// Returns the names of triggers that are disabled in at least one partition.
    fn select_disabled(partitions: Vec<pg_sys::Oid>, names: Vec<Text>) -> Vec<Text> = query,
    c"SELECT DISTINCT t.tgname::pg_catalog.text FROM pg_catalog.pg_trigger AS t
      WHERE t.tgrelid = ANY ($1) AND t.tgname = ANY ($2::pg_catalog.name[]) AND t.tgparentid <> 0 AND t.tgenabled IN ('D', 'R')
          AND t.tgfoid = 'awty_internal.row_changed()'::pg_catalog.regprocedure"
}

/// Returns the names of the triggers that are disabled in the table or in one of its partitions.
pub fn disabled(triggers: &[Trigger], partitions: Vec<pg_sys::Oid>) -> Vec<String> {
    let names = || triggers.iter().map(|trigger| Text::of_utf8(&trigger.name)).collect();
    let below = if partitions.is_empty() { Vec::new() } else { select_disabled(partitions, names()) };
    let is_below = |trigger: &Trigger| below.iter().any(|name| name.utf8() == trigger.name);
    let disabled = triggers.iter().filter(|trigger| trigger.is_disabled() || is_below(trigger));
    disabled.map(|trigger| trigger.name.clone()).collect()
}
