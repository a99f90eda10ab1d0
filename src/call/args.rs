//! Invariant: texts are bytes in the database's encoding. Empty or too long texts are refused before any other check.

use super::argument_limits::{MAX_ARGS, MAX_ENTITY_KEY};
use crate::error::{Error, Result};
use crate::pg::text::Text;
use crate::pg::{clock, jsonb, scalar};
use awty_core::{UnknownLabel, Word};
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::{FromDatum, pg_sys};
use std::str::FromStr;

/// Size in bytes up to which a jsonb value needs no count of its characters. Such a value has room for at most five
/// numbers, whose digits together stay below [`MAX_ARGS`].
const HARMLESS: usize = 64;
const MAX_CHOICE: usize = 64;

/// Defines SQL functions. A function that locks jobs, rules or calendars runs in `kept_if_ok`, so that its locks end
/// before the caller gets an error. PostgreSQL keeps the locks of a failed statement until the client has read the
/// error, and the locked row or name may belong to another role by then.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident -> $result:ty = $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[pgrx::pg_extern(sql = false)]
            fn $name(
                fcinfo: pgrx::pg_sys::FunctionCallInfo,
            ) -> std::result::Result<$result, pgrx::pg_sys::panic::ErrorReport> {
                let body: fn(&crate::call::args::Args) -> crate::error::Result<$result> = $body;
                Ok(body(&crate::call::args::Args::new(fcinfo))?)
            }
        )*
    };
}
pub(crate) use calls;

pub struct Args(pg_sys::FunctionCallInfo);

impl Args {
    pub fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Self(fcinfo)
    }

    /// `T` must match the argument's type in SQL.
    pub fn get<T: FromDatum>(&self, index: usize) -> Option<T> {
        // SAFETY: the function's declaration in SQL has an argument of this type at `index`.
        unsafe { pgrx::pg_getarg(self.0, index) }
    }

    pub fn datum(&self, index: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the function's declaration in SQL has an argument at `index`.
        unsafe { pgrx::pg_getarg_datum(self.0, index) }
    }

    pub fn text(&self, index: usize, argument: &'static str, max: usize) -> Result<Option<Text>> {
        let Some(datum) = self.datum(index) else { return Ok(None) };
        if size(datum) > max {
            return Err(Error::TooLong { argument, max });
        }
        Ok(self.get(index))
    }

    pub fn name(&self, index: usize, argument: &'static str, max: usize) -> Result<Text> {
        self.optional_name(index, argument, max)?.ok_or(Error::Null { argument })
    }

    pub fn optional_name(&self, index: usize, argument: &'static str, max: usize) -> Result<Option<Text>> {
        match self.text(index, argument, max)? {
            Some(text) if text.len() == 0 => Err(Error::Empty { argument }),
            text => Ok(text),
        }
    }

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

    fn kind(&self, index: usize) -> pg_sys::Oid {
        let (mut types, mut count) = (std::ptr::null_mut(), 0);
        // SAFETY: `flinfo` is valid during the call, and `types` has `count` elements.
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

    /// Returns `None` for VARIADIC NULL.
    pub fn variadic(&self) -> Option<Vec<(Option<pg_sys::Datum>, pg_sys::Oid)>> {
        let (mut values, mut types, mut nulls) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: PostgreSQL allocates the three arrays with `count` elements each.
        unsafe {
            let count = pg_sys::extract_variadic_args(self.0, 0, true, &mut values, &mut types, &mut nulls);
            let count = usize::try_from(count).ok()?;
            Some((0..count).map(|n| ((!*nulls.add(n)).then(|| *values.add(n)), *types.add(n))).collect())
        }
    }

    pub fn role(&self, index: usize, argument: &'static str) -> Result<pg_sys::Oid> {
        self.optional_role(index)?.ok_or(Error::Null { argument })
    }

    pub fn optional_role(&self, index: usize) -> Result<Option<pg_sys::Oid>> {
        let Some(name) = self.get::<&std::ffi::CStr>(index) else { return Ok(None) };
        crate::pg::catalog::role(name)
            .map(Some)
            .ok_or_else(|| Error::UnknownRole { role: name.to_string_lossy().into_owned() })
    }

    pub fn choice<T: FromStr>(&self, index: usize, argument: &'static str, choices: &'static str) -> Result<Option<T>> {
        let Some(text) = self.text(index, argument, MAX_CHOICE)? else { return Ok(None) };
        let value = text.to_string();
        value.parse().map(Some).map_err(|_| Error::Choice { argument, value, choices: choices.into() })
    }

    pub fn word(&self, index: usize, argument: &'static str, value: &mut dyn Word) -> Result<bool> {
        let Some(text) = self.text(index, argument, MAX_CHOICE)? else { return Ok(false) };
        let refuse = |unknown: UnknownLabel| Error::Choice {
            argument,
            value: unknown.value,
            choices: unknown.allowed.join(", "),
        };
        value.set(&text.to_string()).map_err(refuse)?;
        Ok(true)
    }

    pub fn duration(&self, index: usize, argument: &'static str) -> Result<Option<chrono::TimeDelta>> {
        match self.get::<Interval>(index) {
            Some(interval) => clock::delta(&interval).map(Some).ok_or(Error::DurationOutOfRange { argument }),
            None => Ok(None),
        }
    }

    pub fn time(&self, index: usize, argument: &'static str) -> Result<Option<awty_core::Time>> {
        match self.get::<TimestampWithTimeZone>(index) {
            Some(value) => clock::from_timestamp(value.into()).map(Some).ok_or(Error::OutOfRange { argument }),
            None => Ok(None),
        }
    }

    pub fn jsonb(&self, index: usize) -> Result<Option<pg_sys::Datum>> {
        let Some(datum) = self.datum(index) else { return Ok(None) };
        // SAFETY: SQL declares the argument as jsonb.
        if unsafe { is_too_large(datum, MAX_ARGS) } {
            return Err(Error::ArgsTooLarge { max: MAX_ARGS });
        }
        Ok(Some(datum))
    }
}

/// Returns whether a jsonb value exceeds `max` bytes, in PostgreSQL's format or as text. Clients read the value as
/// text, and a few bytes can become many digits.
pub unsafe fn is_too_large(value: pg_sys::Datum, max: usize) -> bool {
    let size = size(value);
    // SAFETY: the caller passes a jsonb.
    size > max || size > HARMLESS && unsafe { jsonb::is_longer_as_text(value, max) }
}

fn size(datum: pg_sys::Datum) -> usize {
    // SAFETY: every `datum` is a varlena, toasted or not.
    unsafe { pg_sys::toast_raw_datum_size(datum) }.saturating_sub(pg_sys::VARHDRSZ)
}
