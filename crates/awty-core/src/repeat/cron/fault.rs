//! Errors of cron expressions. A message shows only the beginning of a long expression.

use super::field::Field;
use std::fmt;

/// Maximum length of an expression in bytes.
pub const MOST_SHOWN: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub expression: String,
    pub(super) fault: Fault,
}

impl Unreadable {
    pub(super) fn new(text: &str, fault: Fault) -> Self {
        let end = if text.len() <= MOST_SHOWN { text.len() } else { text.floor_char_boundary(64) };
        let cut = if end < text.len() { "…" } else { "" };
        Self { expression: format!("{}{cut}", &text[..end]), fault }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cron expression \"{}\" cannot be read: {}", self.expression, self.fault)
    }
}

impl std::error::Error for Unreadable {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    TooLong,
    Fields(usize),
    OutOfRange(&'static Field, String),
    Unknown(&'static Field, String),
    Gap(&'static Field, String),
    Step(&'static Field, String),
    NoRange(&'static Field, String),
    Wraps { range: String, instead: String },
    Foreign { found: String, instead: &'static str },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "it is longer than {MOST_SHOWN} bytes"),
            Self::Fields(0) => write!(f, "it is empty"),
            Self::Fields(7) => write!(f, "it has 7 fields, and years cannot be given: use starts and ends"),
            Self::Fields(1) => write!(f, "it has 1 field instead of 5 or 6"),
            Self::Fields(count) => write!(f, "it has {count} fields instead of 5 or 6"),
            Self::OutOfRange(field, value) => {
                write!(f, "{} {value} is not between {} and {}", field.name, field.low, field.high)
            }
            Self::Unknown(field, word) => {
                write!(f, "{} \"{word}\" is not a number from {} to {}", field.name, field.low, field.high)?;
                if field.names.is_empty() { Ok(()) } else { write!(f, " or one of {}", field.names.join(", ")) }
            }
            Self::Gap(field, text) => write!(f, "{} \"{text}\" has a value missing", field.name),
            Self::Step(field, step) => {
                write!(f, "{} step {step} is not between 1 and {}", field.name, field.most_step())
            }
            Self::NoRange(field, text) => {
                let (value, step) = text.split_once('/').unwrap_or((text, ""));
                write!(f, "{} {text} has a step without a range: write {value}-{}/{step}", field.name, field.last)
            }
            Self::Wraps { range, instead } => write!(f, "range {range} wraps around: write {instead}"),
            Self::Foreign { found, instead } => write!(f, "{found} is not supported: {instead}"),
        }
    }
}
