use crate::error::{Error, Result};
use crate::pg::zone;
use awty_core::nearest;

pub fn known(name: String) -> Result<String> {
    zone::canonical(&name).ok_or_else(|| unknown(&name))
}

pub fn unknown(name: &str) -> Error {
    let hint = match shift(name) {
        Some(hours) => format!("POSIX signs are the other way round: use Etc/GMT{:+}.", -hours),
        None => {
            let names = zone::names();
            match nearest(name, names.iter().map(String::as_str)) {
                Some(nearest) => format!("zone => '{nearest}'"),
                None => "SELECT name FROM pg_timezone_names; lists the time zones.".to_owned(),
            }
        }
    };
    Error::UnknownZone { zone: name.to_owned(), hint }
}

/// Reads `UTC+2` as two hours east of Greenwich, as most users expect.
fn shift(name: &str) -> Option<i32> {
    let at = name.find(['+', '-'])?;
    let (word, number) = name.split_at(at);
    let hours = number
        .trim_end_matches(":00")
        .strip_suffix("00")
        .filter(|rest| rest.len() == 3)
        .unwrap_or(number.trim_end_matches(":00"));
    let is_word = word.trim().chars().all(|c| c.is_ascii_alphabetic());
    hours.parse().ok().filter(|hours: &i32| is_word && *hours != 0 && (-14..=12).contains(&-hours))
}
