use pgrx::pg_sys;
use std::ffi::c_char;

#[derive(Clone, Copy)]
pub struct Element {
    kind: pg_sys::Oid,
    length: i32,
    by_value: bool,
    align: u8,
}

pub const TEXT: Element = Element { kind: pg_sys::TEXTOID, length: -1, by_value: false, align: pg_sys::TYPALIGN_INT };
pub const JSONB: Element = Element { kind: pg_sys::JSONBOID, length: -1, by_value: false, align: pg_sys::TYPALIGN_INT };
pub const INT8: Element = Element { kind: pg_sys::INT8OID, length: 8, by_value: true, align: pg_sys::TYPALIGN_DOUBLE };
pub const REGROLE: Element =
    Element { kind: pg_sys::REGROLEOID, length: 4, by_value: true, align: pg_sys::TYPALIGN_INT };
pub const DATE: Element = Element { kind: pg_sys::DATEOID, length: 4, by_value: true, align: pg_sys::TYPALIGN_INT };
pub const BOOL: Element = Element { kind: pg_sys::BOOLOID, length: 1, by_value: true, align: pg_sys::TYPALIGN_CHAR };
pub const TIME: Element =
    Element { kind: pg_sys::TIMESTAMPTZOID, length: 8, by_value: true, align: pg_sys::TYPALIGN_DOUBLE };

/// Returns `None` for an array with several dimensions.
///
/// # Safety
///
/// The value must be an array of the type `element`.
pub unsafe fn elements(array: pg_sys::Datum, element: Element) -> Option<Vec<Option<pg_sys::Datum>>> {
    let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
    // SAFETY: deconstruct_array() allocates `values` and `nulls` with `count` elements each.
    unsafe {
        let array = pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        if (*array).ndim > 1 {
            return None;
        }
        let Element { kind, length, by_value, align } = element;
        pg_sys::deconstruct_array(array, kind, length, by_value, align as c_char, &mut values, &mut nulls, &mut count);
        let count = usize::try_from(count).unwrap_or(0);
        Some((0..count).map(|n| (!*nulls.add(n)).then(|| *values.add(n))).collect())
    }
}

/// # Safety
///
/// The values must be of the type `element`.
pub unsafe fn build(values: impl Iterator<Item = Option<pg_sys::Datum>>, element: Element) -> pg_sys::Datum {
    let values: Vec<Option<pg_sys::Datum>> = values.collect();
    let mut nulls: Vec<bool> = values.iter().map(Option::is_none).collect();
    let mut values: Vec<pg_sys::Datum> =
        values.into_iter().map(|value| value.unwrap_or(pg_sys::Datum::from(0))).collect();
    let (mut count, mut first) = (values.len() as i32, 1);
    let Element { kind, length, by_value, align } = element;
    // SAFETY: `values` and `nulls` have `count` elements each, for an array of one dimension.
    unsafe {
        pg_sys::Datum::from(pg_sys::construct_md_array(
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            1,
            &mut count,
            &mut first,
            kind,
            length,
            by_value,
            align as c_char,
        ))
    }
}

pub unsafe fn bytes<'a>(text: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller passes a text that lives for `'a`.
    unsafe { pgrx::varlena_to_byte_slice(pg_sys::pg_detoast_datum_packed(text.cast_mut_ptr())) }
}
