use super::statement::{Arg, Rows};
use super::{arg, from_timestamptz, interval, time};
use crate::pg::array;
use crate::pg::text::Text;
use awty_core::Time;
use chrono::TimeDelta;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys::{self, Oid};

/// Declares a function that executes an SQL statement, in the form `pub fn name(parameters) -> Result = query, c"SQL"`.
///
/// `query` is the method of [`super::statement::Prepared`] that executes the statement. If the result is not an
/// [`Outcome`], `query(reader)` names the function that reads the result.
///
/// The form `name, [types], c"SQL"` returns the statement itself.
macro_rules! statement {
    ($name:ident, [$($type:ident),*], $sql:expr) => {
        fn $name() -> crate::store::statement::Prepared {
            thread_local! {
                static STATEMENT: crate::store::statement::Statement =
                    const { crate::store::statement::Statement::new($sql, &[$(pgrx::pg_sys::$type),*]) };
            }
            crate::store::statement::Prepared(&STATEMENT)
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $how:ident, $sql:expr) => {
        statement! {
            $(#[$doc])*
            $vis fn $name($($arg: $type),*) $(-> $result)? = $how(crate::store::typed::Outcome::read), $sql
        }
    };
    (
        $(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $how:ident($read:expr),
        $sql:expr
    ) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $type),*) $(-> $result)? {
            thread_local! {
                static STATEMENT: crate::store::statement::Statement = const {
                    crate::store::statement::Statement::new($sql, &[$(<$type as crate::store::typed::Param>::TYPE),*])
                };
            }
            crate::store::statement::Prepared(&STATEMENT).$how(&[$(crate::store::typed::Param::arg($arg)),*], $read)
        }
    };
}
pub(crate) use statement;

pub trait Param {
    const TYPE: Oid;

    fn arg(self) -> Arg;
}

macro_rules! params {
    ($($rust:ty: $sql:ident, $value:ident => $arg:expr;)*) => {
        $(impl Param for $rust {
            const TYPE: Oid = pg_sys::$sql;

            fn arg(self) -> Arg {
                let $value = self;
                $arg
            }
        })*
    };
}

params! {
    i32: INT4OID, value => arg(value);
    i64: INT8OID, value => arg(value);
    usize: INT8OID, value => arg(i64::try_from(value).unwrap_or(i64::MAX));
    bool: BOOLOID, value => arg(value);
    Oid: OIDOID, value => arg(value);
    Time: TIMESTAMPTZOID, value => time(value);
    TimeDelta: INTERVALOID, value => interval(value);
    Text: TEXTOID, value => Some(value.datum());
    &Text: TEXTOID, value => Some(value.datum());
    &[i64]: INT8ARRAYOID, value => arg(value.to_vec());
    &[Text]: TEXTARRAYOID, value => arg(value.to_vec());
    &[Time]: TIMESTAMPTZARRAYOID, value => times(value);
    Option<i32>: INT4OID, value => value.and_then(arg);
    Option<i64>: INT8OID, value => value.and_then(arg);
    Option<Text>: TEXTOID, value => value.and_then(arg);
    Option<&Text>: TEXTOID, value => value.map(Text::datum);
    Option<Time>: TIMESTAMPTZOID, value => value.and_then(time);
    Vec<i32>: INT4ARRAYOID, value => arg(value);
    Vec<i64>: INT8ARRAYOID, value => arg(value);
    Vec<f64>: FLOAT8ARRAYOID, value => arg(value);
    Vec<Text>: TEXTARRAYOID, value => arg(value);
    Vec<Oid>: OIDARRAYOID, value => arg(value);
}

fn times(values: &[Time]) -> Arg {
    // SAFETY: each datum is a timestamptz, the element type of the array.
    Some(unsafe { array::build(values.iter().map(|value| time(*value)), array::TIME) })
}

pub trait Outcome {
    fn read(rows: &Rows) -> Self;
}

impl Outcome for () {
    fn read(_: &Rows) {}
}

impl Outcome for u64 {
    fn read(rows: &Rows) -> Self {
        rows.processed
    }
}

impl Outcome for bool {
    fn read(rows: &Rows) -> Self {
        rows.processed > 0
    }
}

impl<T: Row> Outcome for Option<T> {
    fn read(rows: &Rows) -> Self {
        if rows.len() == 0 { None } else { T::read(rows, 0) }
    }
}

impl<T: Row> Outcome for Vec<T> {
    fn read(rows: &Rows) -> Self {
        (0..rows.len()).filter_map(|row| T::read(rows, row)).collect()
    }
}

pub trait Row: Sized {
    fn read(rows: &Rows, row: usize) -> Option<Self>;
}

pub trait Column: Sized {
    fn read(rows: &Rows, row: usize, column: i32) -> Option<Self>;
}

macro_rules! columns {
    ($($rust:ty)*) => {
        $(impl Column for $rust {
            fn read(rows: &Rows, row: usize, column: i32) -> Option<Self> {
                rows.get(row, column)
            }
        })*
    };
}

columns! { bool i32 i64 Oid Text TimestampWithTimeZone }

impl Column for u8 {
    fn read(rows: &Rows, row: usize, column: i32) -> Option<Self> {
        rows.get(row, column).map(i8::cast_unsigned)
    }
}

impl Column for Time {
    fn read(rows: &Rows, row: usize, column: i32) -> Option<Self> {
        rows.get(row, column).map(from_timestamptz)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(rows: &Rows, row: usize, column: i32) -> Option<Self> {
        Some(T::read(rows, row, column))
    }
}

impl<T: Column> Row for T {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Column::read(rows, row, 1)
    }
}

impl<A: Column, B: Column> Row for (A, B) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some((A::read(rows, row, 1)?, B::read(rows, row, 2)?))
    }
}

impl<A: Column, B: Column, C: Column> Row for (A, B, C) {
    fn read(rows: &Rows, row: usize) -> Option<Self> {
        Some((A::read(rows, row, 1)?, B::read(rows, row, 2)?, C::read(rows, row, 3)?))
    }
}

macro_rules! row {
    ($name:ident { $($field:ident),* }) => {
        impl crate::store::typed::Row for $name {
            fn read(rows: &crate::store::statement::Rows, row: usize) -> Option<Self> {
                let mut columns = 1..;
                $(let $field = crate::store::typed::Column::read(rows, row, columns.next()?)?;)*
                Some(Self { $($field),* })
            }
        }
    };
}
pub(crate) use row;

pub fn is_true(rows: &Rows) -> bool {
    rows.first(1).unwrap_or(false)
}

pub fn number(rows: &Rows) -> i64 {
    rows.first(1).unwrap_or(0)
}
