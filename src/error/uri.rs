use super::phrase::{Words, quote, say};
use awty_core::uri::UriError;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

const SHOWN: usize = 200;

#[derive(Debug)]
pub struct UriRefused {
    pub uri: String,
    pub why: UriError,
}

impl UriRefused {
    pub(super) fn words(&self) -> Words {
        let shown: String = self.uri.chars().take(SHOWN).collect();
        let why = self.why.to_string();
        let (reason, _) = why.split_once(';').unwrap_or((&why, ""));
        let words = match &self.why {
            UriError::TooLong { .. } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("URI \"{shown}\" is too long"),
                "Scheme, host and port have at most 255 bytes, path and query at most 1024.",
            ),
            UriError::OtherSpelling(normal) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid URI \"{shown}\""),
                format!("Write it as {}.", quote(normal.as_str())),
            ),
            UriError::Port(_) => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid URI \"{shown}\""),
                "Use 80, 443, or 1024 and above.",
            ),
            _ => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid URI \"{shown}\""),
                "Write it as 'https://api.example.com/tick'.",
            ),
        };
        words.detail(format!("The URI {reason}."))
    }
}
