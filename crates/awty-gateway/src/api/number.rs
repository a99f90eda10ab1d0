//! Refuses JSON numbers with a large exponent, because jsonb writes out all digits. The number `1e131000` has 131,001
//! digits.

use serde_json::{Number, Value};

const LONGEST: i64 = 1_000;

pub fn are_short(value: &Value) -> bool {
    match value {
        Value::Number(number) => spelled(number) <= LONGEST,
        Value::Array(items) => items.iter().all(are_short),
        Value::Object(members) => members.values().all(are_short),
        _ => true,
    }
}

fn spelled(number: &Number) -> i64 {
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let text = number.as_str();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let Ok(exponent) = exponent.parse::<i64>() else { return i64::MAX }; // an exponent beyond i64 is too long in any case
    let whole = length(whole).saturating_add(exponent).max(2); // one character for the sign
    let fraction = length(fraction).saturating_sub(exponent).max(0);
    whole.saturating_add(fraction).saturating_add(i64::from(fraction > 0)) // one character for the point
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn short(json: &str) -> bool {
        are_short(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn numbers_are_as_long_as_they_are_without_an_exponent() {
        for json in ["0", "-1.5", "1e400", "1E+999", "-2.5e-990", "12345678901234567890.50", "0.00e3", "{\"a\": [1e9]}"]
        {
            assert!(short(json), "{json}");
        }
        let digits = "9".repeat(1_001);
        for json in
            ["1e1000", "-1.5E+1000", "1e-1000", "0e-1000", "[{\"a\": [1e131000]}]", "1e99999999999999999999", &digits]
        {
            assert!(!short(json), "{json}");
        }
        assert!(are_short(&json!(["1e131000", null, true])));
    }
}
