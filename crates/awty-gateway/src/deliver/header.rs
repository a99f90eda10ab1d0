//! Names of headers that users may set.

use hyper::header::HeaderName;

/// Only the gateway or the connection sets these headers. A name that ends with `-` is a prefix.
pub(super) const RESERVED: &[&str] = &[
    "webhook-",
    "idempotency-key",
    "awty-",
    "user-agent",
    "content-type",
    "host",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-",
];

/// Checks the name of a user's header.
pub fn user_header(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{name:?} is no header name; write for example X-From"))?;
    let reserved = |reserved: &&&str| match reserved.strip_suffix('-') {
        Some(_) => parsed.as_str().starts_with(**reserved),
        None => parsed.as_str() == **reserved,
    };
    match RESERVED.iter().find(reserved) {
        Some(_) => Err(format!("the header {name} is set by the gateway; leave it out")),
        None => Ok(parsed),
    }
}
