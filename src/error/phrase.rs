//! Quotes names and values in hints, so that a user can paste a hint as a command.

use crate::signature::Signature;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

pub struct Words {
    pub code: Code,
    pub message: String,
    pub detail: Option<String>,
    pub hint: String,
}

pub fn say(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Words {
    Words { code, message: message.into(), detail: None, hint: hint.into() }
}

pub fn origin_busy() -> Words {
    say(
        Code::ERRCODE_LOCK_NOT_AVAILABLE,
        "another transaction registers this database's first job or calls awty.adopt()",
        "Try again. SELECT * FROM pg_prepared_xacts; shows transactions that wait to be committed.",
    )
}

impl Words {
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

pub fn head(function: &str, takes: Signature) -> String {
    format!("CREATE FUNCTION {function}({}) RETURNS timestamptz{} …", takes.signature(), array(takes == Signature::Set))
}

pub fn array(set_based: bool) -> &'static str {
    if set_based { "[]" } else { "" }
}

/// Returns a string constant that means the same whatever `standard_conforming_strings` says.
pub fn quote(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    format!("{escape}'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

pub fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub fn call(function: &str, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
    format!("SELECT {function}({});", args.join(", "))
}
