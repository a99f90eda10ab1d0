//! The parts of a refusal's words.
//!
//! Invariant: what comes from a user is quoted, so that a hint can be pasted.
//! Does not: know what is refused (see `words`).

use crate::takes::Takes;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

/// What PostgreSQL reports of an error.
pub struct Words {
    pub code: Code,
    pub message: String,
    pub detail: Option<String>,
    pub hint: String,
}

/// Words without a DETAIL.
pub fn say(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Words {
    Words { code, message: message.into(), detail: None, hint: hint.into() }
}

impl Words {
    /// With a DETAIL.
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

/// The head of a job function, for hints.
pub fn head(function: &str, takes: Takes) -> String {
    format!("CREATE FUNCTION {function}({}) RETURNS timestamptz{} …", takes.signature(), array(takes == Takes::Set))
}

/// What a type has after it if it stands for many.
pub fn array(set_based: bool) -> &'static str {
    if set_based { "[]" } else { "" }
}

/// As a string constant, for hints.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// As a quoted identifier, for hints.
pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A call of a function with these texts, for hints.
pub fn call(function: &str, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
    format!("SELECT {function}({});", args.join(", "))
}
