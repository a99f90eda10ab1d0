pub const QUERY_CANCELED: &str = "57014";
/// SQLSTATE of a run whose external worker sent no heartbeat in time.
pub const CONNECTION_FAILURE: &str = "08006";
const RAISE_EXCEPTION: &str = "P0001";
/// SQLSTATE of a check that ended because the job's role no longer exists.
pub const UNDEFINED_OBJECT: &str = "42704";

pub const DEPENDENT_OBJECTS_STILL_EXIST: &str = "2BP01";

pub fn text(code: i32) -> String {
    let character = |place| char::from((((code >> (6 * place)) & 0x3f) as u8).wrapping_add(b'0'));
    let text: String = (0..5).map(character).collect();
    if text == "00000" { RAISE_EXCEPTION.into() } else { text }
}

pub fn code(text: &str) -> i32 {
    let bits = |byte: u8| i32::from(byte.wrapping_sub(b'0') & 0x3f);
    text.bytes().take(5).enumerate().map(|(place, byte)| bits(byte) << (6 * place)).sum()
}
