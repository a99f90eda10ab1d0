//! The error of a text that is not the URI of an endpoint.
//!
//! Does not: decide when to raise it (see `awty_core::uri`).

use super::phrase::{Words, quote, say};
use awty_core::uri::UriError;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

/// Maximum characters of the URI in the message.
const SHOWN: usize = 200;

/// A URI that is refused.
#[derive(Debug)]
pub struct UriRefused {
    pub uri: String,
    pub why: UriError,
}

impl UriRefused {
    pub(super) fn words(&self) -> Words {
        let code = match self.why {
            UriError::TooLong { .. } => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            _ => Code::ERRCODE_INVALID_PARAMETER_VALUE,
        };
        let shown: String = self.uri.chars().take(SHOWN).collect();
        let why = self.why.to_string();
        let (reason, _) = why.split_once(';').unwrap_or((&why, ""));
        let hint = match &self.why {
            UriError::OtherSpelling(normal) => quote(normal.as_str()),
            _ => quote("https://api.example.com/tick"),
        };
        say(code, format!("invalid URI \"{shown}\""), format!("Write it as {hint}."))
            .detail(format!("The URI {reason}."))
    }
}
