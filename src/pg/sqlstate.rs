//! SQLSTATEs that decide what happens to a failed run, and those that awty gives.

/// The run was cancelled: by its timeout, the watchdog or `pg_cancel_backend()`.
pub const QUERY_CANCELED: &str = "57014";
/// A worker outside gave no sign of life.
pub const CONNECTION_FAILURE: &str = "08006";
/// An error that claims to be a success is archived as this.
const RAISE_EXCEPTION: &str = "P0001";
/// Checks whose job's role is gone are archived with this.
pub const UNDEFINED_OBJECT: &str = "42704";

/// An SQLSTATE in PostgreSQL's own encoding as five characters. An error that calls itself a success becomes a plain exception.
pub fn text(code: i32) -> String {
    let character = |place| char::from((((code >> (6 * place)) & 0x3f) as u8).wrapping_add(b'0'));
    let text: String = (0..5).map(character).collect();
    if text == "00000" { RAISE_EXCEPTION.into() } else { text }
}

/// Five characters as an SQLSTATE in PostgreSQL's own encoding.
pub fn code(text: &str) -> i32 {
    let bits = |byte: u8| i32::from(byte.wrapping_sub(b'0') & 0x3f);
    text.bytes().take(5).enumerate().map(|(place, byte)| bits(byte) << (6 * place)).sum()
}
