//! Converts a value to the text of a key, independently of the session's settings, and casts the text back. Refuses
//! arrays and rows, because their text is impractical as a key.

use super::owner::{pin_search_path, set_local};
use super::reraise::carried;
use super::text::Text;
use super::unbound;
use pgrx::{PgList, pg_sys};
use std::ffi::CStr;

pub fn check(kind: pg_sys::Oid) -> Result<(), String> {
    // SAFETY: a transaction is open, and the name is copied.
    unsafe {
        if is_one(pg_sys::getBaseType(kind)) {
            return Ok(());
        }
        Err(CStr::from_ptr(pg_sys::format_type_be(kind)).to_string_lossy().into_owned())
    }
}

/// Also refuses ranges of domains, because a cast to such a range runs the CHECK of the domain.
unsafe fn is_one(kind: pg_sys::Oid) -> bool {
    // SAFETY: a transaction is open.
    unsafe {
        match pg_sys::get_typtype(kind) as u8 {
            pg_sys::TYPTYPE_COMPOSITE | pg_sys::TYPTYPE_PSEUDO | pg_sys::TYPTYPE_DOMAIN => false,
            pg_sys::TYPTYPE_RANGE => is_one(pg_sys::get_range_subtype(kind)),
            pg_sys::TYPTYPE_MULTIRANGE => is_one(pg_sys::get_multirange_range(kind)),
            _ => pg_sys::get_element_type(kind) == pg_sys::InvalidOid,
        }
    }
}

pub fn text(value: pg_sys::Datum, kind: pg_sys::Oid) -> Text {
    // SAFETY: `value` has the type `kind`, and its text is copied.
    unsafe {
        let base = pg_sys::getBaseType(kind);
        match base {
            // A boolean's cast to text gives `true`, but its output function gives `t`.
            pg_sys::BOOLOID => return Text::from(if value.value() != 0 { "true" } else { "false" }),
            pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID | pg_sys::UUIDOID | pg_sys::TEXTOID => {
                return output(value, base);
            }
            _ => {}
        }
        let nest = pg_sys::NewGUCNestLevel();
        pin();
        let text = output(value, base);
        pg_sys::AtEOXact_GUC(true, nest);
        text
    }
}

/// Sets all settings that affect how PostgreSQL prints values to fixed values. The caller restores the settings with
/// AtEOXact_GUC().
pub fn pin() {
    for (name, setting) in [
        (c"DateStyle", c"ISO, YMD"),
        (c"IntervalStyle", c"postgres"),
        (c"TimeZone", c"UTC"),
        (c"extra_float_digits", c"1"),
        (c"bytea_output", c"hex"),
        (c"lc_monetary", c"C"),
    ] {
        set_local(name, setting);
    }
    pin_search_path();
}

unsafe fn output(value: pg_sys::Datum, kind: pg_sys::Oid) -> Text {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: the output function returns a C string, which is copied.
    unsafe {
        pg_sys::getTypeOutputInfo(kind, &mut function, &mut is_varlena);
        CStr::from_ptr(pg_sys::OidOutputFunctionCall(function, value)).into()
    }
}

pub fn json_array(texts: &[Text]) -> Text {
    // SAFETY: the buffer contains a C string, which is copied.
    unsafe {
        let buffer = pg_sys::makeStringInfo();
        for (place, text) in texts.iter().enumerate() {
            let before = if place == 0 { c"[" } else { c", " };
            pg_sys::appendStringInfoString(buffer, before.as_ptr());
            pg_sys::escape_json(buffer, super::catalog::c_name(text.as_bytes()).as_ptr());
        }
        pg_sys::appendStringInfoString(buffer, c"]".as_ptr());
        CStr::from_ptr((*buffer).data).into()
    }
}

/// Casts the text, or the element of the JSON array at `place`, to the type by the type's input function. Finds no cast
/// as a statement does, because the owner of the type can create a cast that runs the owner's code. Names the type by its
/// OID, because another role may rename a type that the text of a statement names.
pub fn cast(text: &Text, place: Option<usize>, kind: pg_sys::Oid) {
    const COLLATION: pg_sys::Oid = pg_sys::DEFAULT_COLLATION_OID;
    // SAFETY: `text` outlives the expression, and a value of the type `text` is a valid argument of the function, which
    // raises an error if it is no JSON.
    unsafe {
        let mut value: *mut pg_sys::Node =
            pg_sys::makeConst(pg_sys::TEXTOID, -1, COLLATION, -1, text.datum(), false, false).cast();
        if let Some(place) = place {
            let place = pg_sys::Datum::from(place as i32);
            let mut args = PgList::<pg_sys::Node>::new();
            args.push(value);
            args.push(pg_sys::makeConst(pg_sys::INT4OID, -1, pg_sys::InvalidOid, 4, place, false, true).cast());
            let function = pg_sys::Oid::from(pg_sys::F_JSON_ARRAY_ELEMENT_TEXT);
            let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
            value =
                pg_sys::makeFuncExpr(function, pg_sys::TEXTOID, args.into_pg(), pg_sys::InvalidOid, COLLATION, form)
                    .cast();
        }
        let cast = pg_sys::palloc0(size_of::<pg_sys::CoerceViaIO>()).cast::<pg_sys::CoerceViaIO>();
        (*cast).xpr.type_ = pg_sys::NodeTag::T_CoerceViaIO;
        ((*cast).arg, (*cast).resulttype, (*cast).location) = (value.cast(), kind, -1);
        (*cast).resultcollid = pg_sys::get_typcollation(kind);
        (*cast).coerceformat = pg_sys::CoercionForm::COERCE_EXPLICIT_CAST;
        carried(|| unbound::evaluate(cast.cast(), kind));
    }
}
