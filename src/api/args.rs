//! The arguments of a call, as PostgreSQL passes them.
//!
//! Invariant: text is taken as bytes in the database's encoding; what is too long or empty is refused here, before
//! anything else happens.

use crate::error::{Error, Result};
use crate::pg::text::Text;
use crate::pg::{clock, jsonb, scalar};
pub use crate::store::future_job::MAX_ENTITY_KEY;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{FromDatum, pg_sys};
use std::str::FromStr;

/// The longest name of a job, in bytes; as for any name in PostgreSQL.
pub const MAX_JOB: usize = 63;
/// The longest name of an entity: a table's, with its schema and quotes.
pub const MAX_ENTITY_NAME: usize = 255;
/// The longest note that a person gives.
pub const MAX_NOTE: usize = 1024;
/// The largest `args` of a check.
pub const MAX_ARGS: usize = 1024 * 1024;
/// In so many bytes there are no more than five numbers, each with 147,500 digits at most.
const HARMLESS: usize = 64;

/// The longest name of a function: a schema and a function, each in quotes with every character doubled.
pub const MAX_FUNCTION: usize = 260;
/// The longest text that is taken for a command where a function is wanted.
pub const MAX_COMMAND: usize = 10_000;
/// The longest word that stands for a choice. There is none that long.
const MAX_CHOICE: usize = 64;

/// The arguments of one call.
pub struct Args(pg_sys::FunctionCallInfo);

impl Args {
    pub fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Self(fcinfo)
    }

    /// An argument, `None` for NULL. `T` must be the type that the function is declared with.
    pub fn get<T: FromDatum>(&self, index: usize) -> Option<T> {
        // SAFETY: PostgreSQL passes as many arguments as the function is declared with, of those types.
        unsafe { pgrx::pg_getarg(self.0, index) }
    }

    /// An argument as it came.
    pub fn datum(&self, index: usize) -> Option<pg_sys::Datum> {
        // SAFETY: as above.
        unsafe { pgrx::pg_getarg_datum(self.0, index) }
    }

    /// A text of no more than `max` bytes, `None` for NULL. A longer one is refused before it is copied.
    pub fn text(&self, index: usize, argument: &'static str, max: usize) -> Result<Option<Text>> {
        let Some(datum) = self.datum(index) else { return Ok(None) };
        if size(datum) > max {
            return Err(Error::TooLong { argument, max });
        }
        Ok(self.get(index))
    }

    /// A name that must be given.
    pub fn name(&self, index: usize, argument: &'static str, max: usize) -> Result<Text> {
        self.optional_name(index, argument, max)?.ok_or(Error::Null { argument })
    }

    /// A name that may be NULL.
    pub fn optional_name(&self, index: usize, argument: &'static str, max: usize) -> Result<Option<Text>> {
        match self.text(index, argument, max)? {
            Some(text) if text.len() == 0 => Err(Error::Empty { argument }),
            text => Ok(text),
        }
    }

    /// The key of an entity: a text, or the text of a value of another scalar type.
    pub fn key(&self, index: usize, argument: &'static str) -> Result<Text> {
        let kind = self.kind(index);
        if kind == pg_sys::TEXTOID {
            return self.name(index, argument, MAX_ENTITY_KEY);
        }
        scalar::check(kind).map_err(|kind| Error::KeyType { argument, kind })?;
        let text = scalar::text(self.datum(index).ok_or(Error::Null { argument })?, kind);
        match text.len() {
            0 => Err(Error::Empty { argument }),
            1..=MAX_ENTITY_KEY => Ok(text),
            _ => Err(Error::TooLong { argument, max: MAX_ENTITY_KEY }),
        }
    }

    /// The type of an argument: of the call, or where that is not known, as the function is declared.
    fn kind(&self, index: usize) -> pg_sys::Oid {
        let (mut types, mut count) = (std::ptr::null_mut(), 0);
        // SAFETY: PostgreSQL's own call information. The list that it allocates has as many elements as it says.
        unsafe {
            let function = (*self.0).flinfo;
            let kind = pg_sys::get_fn_expr_argtype(function, index as i32);
            if kind != pg_sys::InvalidOid {
                return kind;
            }
            pg_sys::get_func_signature((*function).fn_oid, &mut types, &mut count);
            if index < count as usize { *types.add(index) } else { pg_sys::InvalidOid }
        }
    }

    /// The values and types of a call of a function with VARIADIC "any"; `None` for VARIADIC NULL.
    pub fn variadic(&self) -> Option<Vec<(Option<pg_sys::Datum>, pg_sys::Oid)>> {
        let (mut values, mut types, mut nulls) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the function takes nothing else. PostgreSQL allocates three arrays of as many elements as it says.
        unsafe {
            let count = pg_sys::extract_variadic_args(self.0, 0, true, &mut values, &mut types, &mut nulls);
            let count = usize::try_from(count).ok()?;
            Some((0..count).map(|n| ((!*nulls.add(n)).then(|| *values.add(n)), *types.add(n))).collect())
        }
    }

    /// The name of a role that must exist.
    pub fn role(&self, index: usize, argument: &'static str) -> Result<pg_sys::Oid> {
        self.optional_role(index)?.ok_or(Error::Null { argument })
    }

    /// The name of a role, which must exist if it is not NULL.
    pub fn optional_role(&self, index: usize) -> Result<Option<pg_sys::Oid>> {
        let Some(name) = self.get::<&std::ffi::CStr>(index) else { return Ok(None) };
        crate::pg::catalog::role(name)
            .map(Some)
            .ok_or_else(|| Error::UnknownRole { role: name.to_string_lossy().into_owned() })
    }

    /// One of a few words, `None` for NULL.
    pub fn choice<T: FromStr>(&self, index: usize, argument: &'static str, choices: &'static str) -> Result<Option<T>> {
        let Some(text) = self.text(index, argument, MAX_CHOICE)? else { return Ok(None) };
        let value = text.to_string();
        value.parse().map(Some).map_err(|_| Error::Choice { argument, value, choices })
    }

    /// A duration, `None` for NULL; years count 365.25 days, months 30.
    pub fn duration(&self, index: usize, argument: &'static str) -> Result<Option<chrono::TimeDelta>> {
        match self.get::<Interval>(index) {
            Some(interval) => clock::delta(&interval).map(Some).ok_or(Error::DurationOutOfRange { argument }),
            None => Ok(None),
        }
    }

    /// A finite time, `None` for NULL.
    pub fn time(&self, index: usize, argument: &'static str) -> Result<Option<awty_core::Time>> {
        match self.get::<TimestampWithTimeZone>(index) {
            Some(value) => clock::from_timestamp(value.into()).map(Some).ok_or(Error::OutOfRange { argument }),
            None => Ok(None),
        }
    }

    /// Arguments for a job that are not too large, `None` for NULL.
    pub fn jsonb(&self, index: usize) -> Result<Option<pg_sys::Datum>> {
        let Some(datum) = self.datum(index) else { return Ok(None) };
        // SAFETY: each call here is for an argument that is declared as jsonb.
        if unsafe { is_too_large(datum) } {
            return Err(Error::ArgsTooLarge { max: MAX_ARGS });
        }
        Ok(Some(datum))
    }
}

/// Are these `args` larger than they may be? Their numbers count as they are written out, because a claim gives them as text.
///
/// # Safety
///
/// The value is a jsonb.
pub unsafe fn is_too_large(args: pg_sys::Datum) -> bool {
    let size = size(args);
    // SAFETY: the caller says so.
    size > MAX_ARGS || size > HARMLESS && unsafe { jsonb::has_longer_numbers(args, MAX_ARGS) }
}

/// The size in bytes of a text, a jsonb or an array, without its header; looked up without fetching what is toasted.
pub fn size(datum: pg_sys::Datum) -> usize {
    // SAFETY: such values are varlenas, toasted or not.
    unsafe { pg_sys::toast_raw_datum_size(datum) }.saturating_sub(pg_sys::VARHDRSZ)
}
