//! Judges JSON that the gateway passes on as text.
//!
//! Does not: parse the text into values, because small values take more than a hundred times the memory of their text.

const LONGEST: i64 = 1_000;
const DEEPEST: usize = 128;
const TOO_DEEP: &str =
    "has more than 128 levels of arrays and objects; write it as a text, or call awty_http.schedule() in the database";

/// Returns why a well-formed JSON text is refused. jsonb writes out all digits of a number with a large exponent: the
/// number `1e131000` has 131,001 digits.
pub fn refusal(json: &str) -> Option<&'static str> {
    let (mut rest, mut depth) = (json, 0_usize);
    while let Some(at) = rest.find(|char| matches!(char, '"' | '[' | '{' | ']' | '}' | '-' | '0'..='9')) {
        rest = &rest[at..];
        let length = match rest.as_bytes()[0] {
            b'"' => length_of_string(rest),
            b'[' | b'{' if depth == DEEPEST => return Some(TOO_DEEP),
            b'[' | b'{' => {
                depth += 1;
                1
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => {
                let end = rest.find(|char| !matches!(char, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
                let number = &rest[..end.unwrap_or(rest.len())];
                if spelled(number) > LONGEST {
                    return Some("has a number of more than 1000 characters without its exponent; write it as a text");
                }
                number.len()
            }
        };
        rest = &rest[length..];
    }
    None
}

fn length_of_string(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = !is_escaped && byte == b'"';
        is_escaped = !is_escaped && byte == b'\\';
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

fn spelled(number: &str) -> i64 {
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let Ok(exponent) = exponent.parse::<i64>() else { return i64::MAX }; // an exponent beyond i64 is too long in any case
    let whole = length(whole).saturating_add(exponent).max(2); // one character for the sign
    let fraction = length(fraction).saturating_sub(exponent).max(0);
    whole.saturating_add(fraction).saturating_add(i64::from(fraction > 0)) // one character for the point
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_are_without_an_exponent() {
        for json in ["0", "-1.5", "1e400", "1E+999", "-2.5e-990", "12345678901234567890.50", "0.00e3", "{\"a\": [1e9]}"]
        {
            assert_eq!(refusal(json), None, "{json}");
        }
        let digits = "9".repeat(1_001);
        for json in
            ["1e1000", "-1.5E+1000", "1e-1000", "0e-1000", "[{\"a\": [1e131000]}]", "1e99999999999999999999", &digits]
        {
            assert!(refusal(json).is_some_and(|why| why.contains("more than 1000 characters")), "{json}");
        }
    }

    #[test]
    fn texts_are_not_read() {
        for json in ["[\"1e131000\", null, true]", "[\"\\\"1e131000\", \"\\\\\", \"[\"]", "{\"é-1e131000\": false}"] {
            assert_eq!(refusal(json), None, "{json}");
        }
        assert!(refusal("[\"\\\\\", 1e131000]").is_some(), "the number stands after a text of one backslash");
    }

    #[test]
    fn a_text_of_many_levels_is_refused() {
        let nested = |levels: usize| format!("{}{}", "[{\"a\":".repeat(levels / 2), "}]".repeat(levels / 2));
        assert_eq!((refusal(&nested(DEEPEST)), refusal(&"[],".repeat(DEEPEST * 2))), (None, None));
        assert!(refusal(&nested(DEEPEST + 2)).is_some_and(|why| why.contains("levels")));
    }
}
