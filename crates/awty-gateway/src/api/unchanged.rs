//! A field keeps its stored value if the client sends back the value that GET showed. GET hides secrets and shows a
//! month as 30 days, so the shown value may differ from the stored one.

use super::fields::{HIDDEN, interval};
use super::problem::{Fault, MAX_FAULTS};
use crate::db::schedules::Row;
use crate::db::{Argument, Arguments};
use crate::duration::Length;
use serde_json::Value;

pub(super) fn restore(arguments: &mut Arguments, before: Option<&Row>) -> Result<(), Vec<Fault>> {
    let mut faults = Vec::new();
    for (name, argument) in arguments {
        match argument {
            Argument::Json(Value::Object(headers)) if *name == "headers" => {
                for (header, value) in headers.iter_mut().filter(|(_, value)| *value == HIDDEN) {
                    match before.and_then(|row| row.fields["headers"].get(header)).filter(|stored| *stored != HIDDEN) {
                        Some(stored) => *value = stored.clone(),
                        None if faults.len() < MAX_FAULTS => faults.push(no_value(header)),
                        None => {}
                    }
                }
            }
            // Keeps the stored length of time if the client sends back the length that GET showed. GET shows a month as
            // 30 days.
            Argument::Interval(length) => {
                let stored = before.and_then(|row| row.lengths[*name].as_str().zip(row.fields[*name].as_i64()));
                if let Some((stored, shown)) = stored
                    && *length == interval(Length::millis(shown))
                {
                    *length = stored.to_owned();
                }
            }
            _ => {}
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn no_value(header: &str) -> Fault {
    let reason = format!(
        "has {header:?} with {HIDDEN}, which keeps a stored value, and none is stored; write its value or {{{{secret:NAME}}}}"
    );
    Fault { pointer: "/headers".into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row() -> Row {
        let fields = json!({"every": 2_592_000_000_i64, "after": null, "headers": {"X-Key": "s3cret"}});
        let lengths = json!({"every": "1 mon"});
        let (id, version) = ("s_1".into(), 7);
        Row { id, version, deleted: false, own: true, new: false, fields, lengths, body: None, last: None }
    }

    #[test]
    fn a_hidden_value_and_a_length_as_shown_are_the_stored_ones() {
        let shown = || {
            vec![
                ("every", Argument::Interval("2592000000 milliseconds".into())),
                ("headers", Argument::Json(json!({"X-Key": "•••", "X-Other": "b"}))),
            ]
        };
        let mut arguments = shown();
        restore(&mut arguments, Some(&row())).unwrap();
        let stored = vec![
            ("every", Argument::Interval("1 mon".into())),
            ("headers", Argument::Json(json!({"X-Key": "s3cret", "X-Other": "b"}))),
        ];
        assert_eq!(arguments, stored);
        let faults = restore(&mut shown(), None).unwrap_err();
        assert!(faults.len() == 1 && faults[0].reason.contains("none is stored"), "{faults:?}");
        let mut other = vec![("every", Argument::Interval("1000 milliseconds".into()))];
        restore(&mut other, Some(&row())).unwrap();
        assert_eq!(other, [("every", Argument::Interval("1000 milliseconds".into()))]);
    }
}
