//! One row of a rule has the argument [`KEY`] instead of a function. It keeps the columns of the primary key.

use crate::pg::array::{self, TEXT};
use crate::pg::column::Column;
use crate::pg::text::Text;
use crate::store::arg;
use crate::store::statement::Rows;
use crate::store::typed::{Row, statement};
use pgrx::{FromDatum, pg_sys};

pub const KEY: &str = "key";

#[derive(Clone, Debug, PartialEq)]
pub struct StoredFunction {
    pub argument: Text,
    pub function: pg_sys::Oid,
    pub numbers: Vec<i16>,
    /// Stores names, because a restore from a dump changes OIDs and column numbers.
    pub columns: Vec<Text>,
}

statement! {
    pub fn of(rule: &Text) -> Vec<StoredFunction> = query_latest,
    c"SELECT f.argument, f.function, f.numbers, f.columns FROM awty_internal.rule_function AS f
      WHERE f.rule = $1 AND f.argument <> 'key' ORDER BY f.argument = 'until' DESC, f.argument"
}

statement! {
    pub fn key_of(rule: &Text) -> Option<StoredFunction> = query_latest,
    c"SELECT f.argument, f.function, f.numbers, f.columns FROM awty_internal.rule_function AS f
      WHERE f.rule = $1 AND f.argument = 'key'"
}

statement!(
    insert_one,
    [TEXTOID, TEXTOID, OIDOID, INT2ARRAYOID, TEXTARRAYOID],
    c"INSERT INTO awty_internal.rule_function (rule, argument, function, numbers, columns) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (rule, argument) DO UPDATE SET function = excluded.function, numbers = excluded.numbers, columns = excluded.columns"
);

statement! {
    pub fn remove(rule: &Text) = query,
    c"DELETE FROM awty_internal.rule_function WHERE rule = $1"
}

statement! {
    pub fn forget_oids() = query,
    c"UPDATE awty_internal.rule_function SET function = 0"
}

impl StoredFunction {
    pub fn new(argument: Text, function: pg_sys::Oid, columns: &[Column]) -> Self {
        let numbers = columns.iter().map(|column| column.number).collect();
        Self { argument, function, numbers, columns: columns.iter().map(Column::text).collect() }
    }
}

impl Row for StoredFunction {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some(StoredFunction {
            argument: rows.get(row, 1)?,
            function: rows.get(row, 2)?,
            numbers: rows.get(row, 3)?,
            columns: texts(rows.raw(row, 4)?)?,
        })
    }
}

fn texts(datum: pg_sys::Datum) -> Option<Vec<Text>> {
    // SAFETY: the column is an array of texts, whose elements are copied.
    unsafe { array::elements(datum, TEXT)?.into_iter().map(|text| Text::from_datum(text?, false)).collect() }
}

pub fn put(rule: &Text, stored: &StoredFunction) {
    let args = [
        Some(rule.datum()),
        Some(stored.argument.datum()),
        Some(stored.function.into()), // arg() would turn InvalidOid into NULL
        arg(stored.numbers.clone()),
        arg(stored.columns.clone()),
    ];
    insert_one().execute(&args);
}
