use pgrx::pg_sys;
use pgrx::pg_sys::JsonbIteratorToken as Token;
use std::ffi::CStr;

/// Returns whether the numbers and strings in the value have more than `max` characters as text. A dozen bytes can
/// encode 131,072 digits, and a control character becomes an escape of six characters.
pub unsafe fn is_longer_as_text(value: pg_sys::Datum, max: usize) -> bool {
    let mut length = 0;
    // SAFETY: the caller passes a jsonb, and the code checks an item's type before reading the item as a numeric.
    unsafe {
        let value = pg_sys::pg_detoast_datum(value.cast_mut_ptr()).cast::<pg_sys::Jsonb>();
        let mut iterator = pg_sys::JsonbIteratorInit(&raw mut (*value).root);
        let mut item = pg_sys::JsonbValue::default();
        loop {
            let token = pg_sys::JsonbIteratorNext(&raw mut iterator, &raw mut item, false);
            if token == Token::WJB_DONE {
                return false;
            }
            if matches!(token, Token::WJB_KEY | Token::WJB_ELEM | Token::WJB_VALUE) {
                length += match item.type_ {
                    pg_sys::jbvType::jbvNumeric => {
                        let number = pg_sys::Datum::from(item.val.numeric);
                        let text = pgrx::direct_function_call::<&CStr>(pg_sys::numeric_out, &[Some(number)]);
                        text.map_or(0, CStr::count_bytes)
                    }
                    pg_sys::jbvType::jbvString => {
                        let string = item.val.string;
                        let bytes = std::slice::from_raw_parts(string.val.cast::<u8>(), string.len as usize);
                        bytes.iter().map(|byte| escaped(*byte)).sum()
                    }
                    _ => 0,
                };
                if length > max {
                    return true;
                }
            }
        }
    }
}

/// Returns the number of characters that PostgreSQL's `escape_json()` writes for a byte of a string.
const fn escaped(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    }
}
