use pgrx::pg_sys;
use pgrx::pg_sys::JsonbIteratorToken as Token;
use std::ffi::CStr;

/// Returns whether the numbers in the value have more than `max` characters in total. A dozen bytes can encode 131,072
/// digits, so a small value can become a huge text.
pub unsafe fn has_longer_numbers(value: pg_sys::Datum, max: usize) -> bool {
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
            if matches!(token, Token::WJB_ELEM | Token::WJB_VALUE) && item.type_ == pg_sys::jbvType::jbvNumeric {
                let number = pg_sys::Datum::from(item.val.numeric);
                let text = pgrx::direct_function_call::<&CStr>(pg_sys::numeric_out, &[Some(number)]);
                length += text.map_or(0, CStr::count_bytes);
                if length > max {
                    return true;
                }
            }
        }
    }
}
