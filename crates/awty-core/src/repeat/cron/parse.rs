//! Reads cron expressions: a word such as `@daily`, 5 fields, or 6 fields that begin with the second.
//!
//! Invariant: ambiguous text is refused. The work is proportional to the length of the text.

use super::fault::{Fault, MOST_SHOWN};
use super::field::{DAY, Field, HOUR, MINUTE, MONTH, SECOND, WEEKDAY};
use crate::repeat::steps::step;

/// Bit 0 means the last day of the month. This bit is free, because days count from 1.
pub(super) const LAST_DAY: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) bits: u64,
    pub(super) star: bool,
}

pub(super) type Fields = [Values; 6];

const WORDS: [(&str, &str); 5] = [
    ("@yearly", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

pub(super) fn fields(text: &str) -> Result<Fields, Fault> {
    if text.len() > MOST_SHOWN {
        return Err(Fault::TooLong);
    }
    let text = text.trim_ascii();
    if text.starts_with('@') {
        let known = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        return known.map_or_else(|| Err(unknown_word(text)), |(_, meaning)| fields(meaning));
    }
    let mut written = [""; 6];
    let mut count = 0;
    for field in text.split_ascii_whitespace() {
        step();
        if let Some(place) = written.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    match count {
        5 => written.rotate_right(1),
        6 => {}
        _ => return Err(Fault::Fields(count)),
    }
    let [second, minute, hour, day, month, weekday] = written;
    let second = if second.is_empty() { Values { bits: 1, star: false } } else { values(&SECOND, second)? };
    let mut weekday = values(&WEEKDAY, weekday)?;
    weekday.bits = (weekday.bits | weekday.bits >> 7) & WEEKDAY.all();
    Ok([second, values(&MINUTE, minute)?, values(&HOUR, hour)?, values(&DAY, day)?, values(&MONTH, month)?, weekday])
}

fn values(field: &'static Field, text: &str) -> Result<Values, Fault> {
    let mut bits = 0;
    for item in text.split(',') {
        step();
        if item.is_empty() {
            return Err(Fault::Gap(field, text.to_owned()));
        }
        bits |= item_bits(field, item)?;
    }
    Ok(Values { bits, star: text.starts_with('*') })
}

fn item_bits(field: &'static Field, item: &str) -> Result<u64, Fault> {
    let (range, every) = match item.split_once('/') {
        Some((range, every)) => (range, Some(every)),
        None => (item, None),
    };
    if range.is_empty() || every == Some("") {
        return Err(Fault::Gap(field, item.to_owned()));
    }
    if field == &DAY && range.split('-').any(is_last) {
        return if item.len() == 1 { Ok(LAST_DAY) } else { Err(foreign(item, "write the days by number")) };
    }
    let (from, to) = match range.split_once('-') {
        _ if range == "*" => (field.low, field.last),
        Some((from, to)) if from.is_empty() || to.is_empty() => return Err(Fault::Gap(field, item.to_owned())),
        Some((from, to)) => (number(field, from)?, number(field, to)?),
        None => {
            let value = number(field, range)?;
            if every.is_some() {
                // Refuses a step after a single number, such as `5/15`, because cron programs disagree on its meaning.
                return Err(Fault::NoRange(field, item.to_owned()));
            }
            (value, value)
        }
    };
    if from > to {
        return Err(wraps(field, from, to, every.is_some(), item));
    }
    let every = every.map_or(Ok(1), |every| step_of(field, every))?;
    let mut bits = 0;
    for value in (from..=to).step_by(every) {
        step();
        bits |= 1 << value;
    }
    Ok(bits)
}

fn is_last(text: &str) -> bool {
    matches!(text, "L" | "l" | "$")
}

fn number(field: &'static Field, text: &str) -> Result<u32, Fault> {
    if let Some(index) = field.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(field.low + index as u32);
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unknown(field, text));
    }
    match text.parse() {
        Ok(value) if (field.low..=field.high).contains(&value) => Ok(value),
        Ok(1970..2200) if field == &WEEKDAY => Err(foreign(&format!("year {text}"), "use starts and ends")),
        _ => Err(Fault::OutOfRange(field, text.to_owned())),
    }
}

fn step_of(field: &'static Field, text: &str) -> Result<usize, Fault> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(step) if digits && (1..=field.most_step()).contains(&step) => Ok(step as usize),
        _ => Err(Fault::Step(field, text.to_owned())),
    }
}

/// For the weekdays `5-2`, suggests `5-7,1-2`, because 7 already means Sunday.
fn wraps(field: &Field, from: u32, to: u32, has_step: bool, item: &str) -> Fault {
    let range = |from: u32, to: u32| if from == to { from.to_string() } else { format!("{from}-{to}") };
    let begin = if field == &WEEKDAY { 1 } else { field.low };
    let instead = match (has_step, to < begin) {
        (true, _) => "its values one by one".to_owned(),
        (false, true) => range(from, field.high),
        (false, false) => format!("{},{}", range(from, field.high), range(begin, to)),
    };
    Fault::Wraps { range: item.to_owned(), instead }
}

fn foreign(found: &str, instead: &'static str) -> Fault {
    Fault::Foreign { found: found.to_owned(), instead }
}

fn unknown(field: &'static Field, text: &str) -> Fault {
    let instead = match text.as_bytes() {
        [.., b'?'] | [b'?', ..] => "write *",
        [b'H' | b'h'] | [b'H' | b'h', b'(', ..] => "write a number, and spread by jitter",
        [b'L' | b'l'] if field == &WEEKDAY => "write sat",
        [b'L' | b'l'] | [b'$'] => "only the day of month has a last one",
        [.., b'W' | b'w'] if field == &DAY => "write a range of days, and let the job choose among them",
        [.., b'L' | b'l'] if field == &WEEKDAY => "write the weekday, and let the job look whether it is the last one",
        _ if text.contains('#') => "write the weekday, and let the job look at the day of the month",
        _ => return Fault::Unknown(field, text.to_owned()),
    };
    foreign(text, instead)
}

fn unknown_word(text: &str) -> Fault {
    let instead = match text.to_ascii_lowercase().as_str() {
        "@annually" => "write @yearly",
        "@midnight" => "write @daily",
        "@reboot" => "schedule a check where the application starts",
        word if word.starts_with("@every") => "use every in place of cron",
        _ => "write @yearly, @monthly, @weekly, @daily or @hourly",
    };
    foreign(text, instead)
}
