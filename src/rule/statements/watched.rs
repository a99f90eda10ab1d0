//! Invariant: rows are read with the rights of the table's owner, because the rule's functions are the owner's code.

use super::names::Names;
use super::rule_function::StoredFunction;
use super::{by_oid, dynamic_sql};
use crate::error::{Error, WatchError};
use crate::pg::column::Column;
use crate::pg::primary_key::{KeyColumn, key_text};
use crate::pg::reraise::reported;
use crate::pg::role::{as_role, as_role_of};
use crate::pg::table::{self, Described, Kind, kind_name};
use crate::pg::text::Text;
use crate::pg::trigger::Firing;
use crate::pg::{clock, expression, partition};
use crate::store::statement::{Arg, Rows};
use awty_core::Time;
use awty_core::watch::{RowState, Stops};
use pgrx::{datum::TimestampWithTimeZone, pg_sys};
use std::rc::Rc;

#[derive(Clone)]
pub struct Source {
    pub table: Described,
    pub key: Vec<KeyColumn>,
    pub until: RowFunction,
    pub start: Option<RowFunction>,
    pub stopped: Option<RowFunction>,
    /// Whether session settings can change the results of the rule's functions.
    pub by_settings: bool,
    new_rows: String,
    names: Rc<Names>,
}

#[derive(Clone, Debug)]
pub struct Functions {
    pub until: RowFunction,
    pub start: Option<RowFunction>,
    pub stopped: Option<RowFunction>,
}

impl Functions {
    pub fn all(&self) -> impl Iterator<Item = &RowFunction> {
        std::iter::once(&self.until).chain(&self.start).chain(&self.stopped)
    }
}

#[derive(Clone, Debug)]
pub struct RowFunction {
    pub argument: Text,
    pub oid: pg_sys::Oid,
    pub name: String,
    pub columns: Vec<Column>,
}

impl RowFunction {
    pub fn columns_of(&self, row: &str) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| format!("{row}.{}", column.quoted())).collect();
        columns.join(", ")
    }

    pub fn over(&self, row: &str) -> String {
        format!("{}({})", self.name, self.columns_of(row))
    }

    fn by_oid(&self, row: &str) -> String {
        by_oid::call(self.oid, row, self.columns.iter().map(Column::quoted))
    }

    pub fn stored(&self) -> StoredFunction {
        StoredFunction::new(self.argument.clone(), self.oid, &self.columns)
    }
}

#[derive(Clone)]
pub struct WatchedRow {
    pub key: Text,
    pub state: State,
    pub is_stopped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Met,
    NotStarted,
    Waiting(Time),
    /// The rule has no `since`, so `within` begins when the row appeared.
    WaitingSinceAppearance,
}

impl State {
    /// `appeared` is the time at which awty saw the row's insertion, or the last UPDATE that restarted the row's clock.
    pub fn found(self, appeared: Time, stops: &Stops) -> RowState<'_> {
        match self {
            State::Met => RowState::Met,
            State::NotStarted => RowState::Gone,
            State::Waiting(start) => RowState::Waiting { start, seen: appeared, stops },
            State::WaitingSinceAppearance => RowState::Waiting { start: appeared, seen: appeared, stops },
        }
    }
}

impl Source {
    pub fn new(table: Described, key: Vec<KeyColumn>, functions: Functions) -> Self {
        let by_settings = functions.all().any(|function| expression::depends_on_settings(function.oid));
        let names = Rc::new(Names {
            relation: table.qualified(),
            table: table.oid,
            kind: table.kind,
            owner: table.owner,
            key: key.iter().map(|part| part.column.kind).collect(),
            functions: functions.all().map(|function| function.oid).collect(),
        });
        let Functions { until, start, stopped } = functions;
        let mut source = Self { table, key, until, start, stopped, by_settings, new_rows: String::new(), names };
        source.new_rows = format!("SELECT {} FROM {NEW_ROWS} AS t", source.columns("t"));
        source
    }

    /// Returns the source of one partition's rows. A row is in no other partition, because the primary key contains the
    /// partition key.
    pub fn of_partition(&self, partition: pg_sys::Oid) -> Self {
        let table = table::describe(partition).filter(|table| table.owner == self.table.owner);
        let key = self.key.iter().map(|part| part.of_partition(partition)).collect::<Option<_>>();
        let Some((table, key)) = table.zip(key) else { self.raise_renamed() };
        let (relation, names) = (table.qualified(), &*self.names);
        let names = Names { relation, table: partition, kind: table.kind, ..names.clone() };
        Self { table, key, names: Rc::new(names), ..self.clone() }
    }

    fn raise_renamed(&self) -> ! {
        Error::from(WatchError::Renamed { relation: self.table.qualified() }).raise()
    }

    /// Locks the table's partitions, so that they keep their owners while PostgreSQL plans a query of the table.
    fn lock_partitions(&self) {
        if partition::of_another_role(&self.table, true).is_some() {
            self.raise_renamed();
        }
    }

    fn columns(&self, row: &str) -> String {
        let key: Vec<String> = self.key.iter().map(|part| format!("{row}.{}", part.column.quoted())).collect();
        let start = self.start.as_ref().map_or("NULL::pg_catalog.timestamptz".into(), |f| f.by_oid(row));
        let stopped = self.stopped.as_ref().map_or(String::new(), |f| format!(", {}", f.by_oid(row)));
        format!("{}, {}, {start}{stopped}", key.join(", "), self.until.by_oid(row))
    }

    fn from(&self) -> String {
        let only = if self.table.kind == Kind::Partitioned { "" } else { "ONLY " };
        format!("{only}{}", self.table.qualified())
    }

    fn values(&self, key: &str) -> Vec<String> {
        let part = |(place, column): (usize, &KeyColumn)| match self.key.len() {
            1 => format!("{key}::{}", kind_name(column.cast_to())),
            _ => {
                format!("(({key})::pg_catalog.json OPERATOR(pg_catalog.->>) {place})::{}", kind_name(column.cast_to()))
            }
        };
        self.key.iter().enumerate().map(part).collect()
    }

    pub fn by_keys(&self, keys: &[Text]) -> Vec<(usize, WatchedRow)> {
        let equal: Vec<String> = std::iter::zip(&self.key, self.values("k.key"))
            .map(|(part, value)| format!("t.{} {} {value}", part.column.quoted(), part.equals()))
            .collect();
        let sql = format!(
            "SELECT {}, k.n FROM pg_catalog.unnest($1) WITH ORDINALITY AS k (key, n) JOIN {} AS t ON {}",
            self.columns("t"),
            self.from(),
            equal.join(" AND ")
        );
        let place = self.key.len() as i32 + 3 + i32::from(self.stopped.is_some());
        let read = |rows: &Rows| {
            rows.all(|row| Some((usize::try_from(rows.get::<i64>(row, place)? - 1).ok()?, self.seen(rows, row)?)))
        };
        self.lock_partitions();
        as_role(self.table.owner, || {
            let args = [crate::store::arg(keys.to_vec())];
            dynamic_sql::evaluate(&sql, Some(&self.names), &[pg_sys::TEXTARRAYOID], &args, None, read)
        })
    }

    /// Leaves out rows whose keys have other spellings, such as `1` for `01`. A role that may schedule checks of the rule
    /// chooses their keys.
    pub fn by_exact_keys(&self, keys: &[Text]) -> Vec<(usize, WatchedRow)> {
        let rows = self.by_keys(keys).into_iter();
        rows.filter(|(place, row)| row.key == keys[*place]).collect()
    }

    pub fn after(&self, key: Option<&Text>, limit: i64) -> Vec<WatchedRow> {
        let names: Vec<String> = self.key.iter().map(|part| format!("t.{}", part.column.quoted())).collect();
        let condition = if key.is_some() {
            let greater = self.key[0].equals().replace(".=)", ".>)");
            format!("WHERE ROW({}) {greater} ROW({})", names.join(", "), self.values("$2").join(", "))
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT {} FROM {} AS t {condition} ORDER BY {} LIMIT $1",
            self.columns("t"),
            self.from(),
            names.join(", ")
        );
        let (types, args): (&[pg_sys::Oid], Vec<Arg>) = match key {
            Some(key) => (&[pg_sys::INT8OID, pg_sys::TEXTOID], vec![crate::store::arg(limit), Some(key.datum())]),
            None => (&[pg_sys::INT8OID], vec![crate::store::arg(limit)]),
        };
        self.lock_partitions();
        as_role(self.table.owner, || {
            let read = |rows: &Rows| rows.all(|row| self.seen(rows, row));
            dynamic_sql::evaluate(&sql, Some(&self.names), types, &args, None, read)
        })
    }

    pub fn inserted(&self, firing: Firing, piece: i64, mut read: impl FnMut(Vec<WatchedRow>)) {
        let all = |rows: &Rows| rows.all(|row| self.seen(rows, row));
        let names = Some(&self.names);
        as_role_of(self.table.owner, self.by_settings, || {
            if firing.new_rows() <= piece {
                read(dynamic_sql::evaluate(&self.new_rows, names, &[], &[], Some(firing), all));
            } else {
                dynamic_sql::query_in_pieces(&self.new_rows, names, firing, piece, |rows| read(all(rows)));
            }
        });
    }

    pub fn has_rows(&self) -> bool {
        let names = Some(Rc::new(Names { key: Vec::new(), ..(*self.names).clone() }));
        let sql = format!("SELECT 1 FROM {} AS t LIMIT 1", self.from());
        let is_any = |rows: &Rows| rows.len() > 0;
        self.lock_partitions();
        as_role(self.table.owner, || reported(|| dynamic_sql::evaluate(&sql, names.as_ref(), &[], &[], None, is_any)))
    }

    fn seen(&self, rows: &Rows, row: usize) -> Option<WatchedRow> {
        let width = self.key.len() as i32;
        let values: Vec<pg_sys::Datum> = (1..=width).map(|column| rows.datum(row, column)).collect::<Option<_>>()?;
        let is_there = rows.get(row, width + 1).unwrap_or(false);
        let start = rows.get::<TimestampWithTimeZone>(row, width + 2).map(i64::from);
        let state = match (is_there, &self.start, start) {
            (true, ..) => State::Met,
            (_, Some(_), None | Some(i64::MAX)) => State::NotStarted,
            (_, None, _) => State::WaitingSinceAppearance,
            (_, Some(_), Some(start)) => State::Waiting(clock::clamped(start)),
        };
        let is_stopped = self.stopped.is_some() && rows.get(row, width + 3).unwrap_or(false);
        Some(WatchedRow { key: key_text(&self.key, &values), state, is_stopped })
    }
}

pub const NEW_ROWS: &str = "awty_new";
