//! Text in the database's encoding.
//!
//! Invariant: stored text keeps its bytes, because only messages are converted.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, IntoDatum, pg_sys};
use std::ffi::{CStr, CString, c_char};
use std::fmt::{self, Write};

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Text(Vec<u8>);

impl Text {
    pub fn datum(&self) -> pg_sys::Datum {
        // SAFETY: pointer and length are those of `self.0`, and PostgreSQL copies the bytes.
        unsafe { pg_sys::Datum::from(pg_sys::cstring_to_text_with_len(self.0.as_ptr().cast(), self.0.len() as i32)) }
    }

    unsafe fn copy(text: pg_sys::Datum) -> Self {
        // SAFETY: the caller passes a text, whose bytes are copied.
        unsafe { Self(pgrx::varlena_to_byte_slice(pg_sys::pg_detoast_datum_packed(text.cast_mut_ptr())).to_vec()) }
    }

    /// Converts `text` to the database's encoding. Raises 22P05 if the encoding lacks a character.
    pub fn of_utf8(text: &str) -> Self {
        server(text).as_c_str().into()
    }

    /// Converts the text to UTF-8 and keeps all characters. [`fmt::Display`] may print `?` instead of a character.
    pub fn utf8(&self) -> String {
        // SAFETY: the C string lives until the end of the call.
        unsafe { utf8(super::catalog::c_name(&self.0).as_ptr()) }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&std::ffi::CStr> for Text {
    fn from(text: &std::ffi::CStr) -> Self {
        Self(text.to_bytes().to_vec())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_utf8() {
            return f.write_str(&String::from_utf8_lossy(&self.0));
        }
        self.0.iter().try_for_each(|byte| f.write_char(if byte.is_ascii() { char::from(*byte) } else { '?' }))
    }
}

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _type: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the trait guarantees a text.
        (!is_null).then(|| unsafe { Self::copy(datum) })
    }
}

// SAFETY: `unbox` copies the bytes, so that the result has no lifetime.
unsafe impl UnboxDatum for Text {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: the trait guarantees a text.
        unsafe { Self::copy(datum.sans_lifetime()) }
    }
}

impl IntoDatum for Text {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.datum())
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

// SAFETY: `box_into` returns a text from the caller's memory context.
unsafe impl BoxRet for Text {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: `datum()` returns a text, as the SQL declaration says.
        unsafe { fcinfo.return_raw_datum(self.datum()) }
    }
}

// SAFETY: `Text` declares the SQL type of `String`, which is text.
unsafe impl SqlTranslatable for Text {
    const TYPE_IDENT: &'static str = String::TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = String::TYPE_ORIGIN;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = String::ARGUMENT_SQL;
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = String::RETURN_SQL;
}

fn is_utf8() -> bool {
    // SAFETY: the function only reads a variable.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}

pub fn message(message: &str, max: usize) -> Text {
    let mut end = message.len().min(max);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let utf8 = is_utf8();
    let shown: String =
        message[..end].chars().map(|c| if c == '\0' || !(utf8 || c.is_ascii()) { '?' } else { c }).collect();
    Text::from(shown.as_str())
}

pub unsafe fn utf8(text: *const c_char) -> String {
    // SAFETY: the caller passes a C string, and the result is copied.
    unsafe {
        let length = CStr::from_ptr(text).to_bytes().len() as i32;
        let converted = pg_sys::pg_server_to_any(text, length, pg_sys::pg_enc::PG_UTF8 as i32);
        CStr::from_ptr(converted).to_string_lossy().into_owned()
    }
}

pub fn type_name(kind: pg_sys::Oid) -> String {
    // SAFETY: a transaction is open, and the name is copied.
    unsafe { utf8(pg_sys::format_type_be(kind)) }
}

pub fn server(text: &str) -> CString {
    let text = super::catalog::c_name(text.as_bytes());
    // SAFETY: PostgreSQL returns a C string, which is copied.
    unsafe {
        let length = text.to_bytes().len() as i32;
        let converted = pg_sys::pg_any_to_server(text.as_ptr(), length, pg_sys::pg_enc::PG_UTF8 as i32);
        CStr::from_ptr(converted).to_owned()
    }
}
