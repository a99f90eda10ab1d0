use awty_core::http::{HeaderError, check_header};
use hyper::header::HeaderName;

pub fn user_header(name: &str) -> Result<HeaderName, String> {
    let invalid = || format!("{name:?} is no header name; write for example X-From");
    match check_header(name) {
        Ok(()) => HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid()),
        Err(HeaderError::Invalid) => Err(invalid()),
        Err(HeaderError::Reserved) => Err(format!("the header {name} is set by the gateway; leave it out")),
    }
}
