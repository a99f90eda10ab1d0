//! URIs of HTTP endpoints, for awty_http.
//!
//! Invariant: the gateway uses the same functions, so both give a URI the same spelling and the same id.
//! Does not: read a table.

use crate::call::args::{Args, calls};
use crate::error::{Error, Result, UriRefused};
use crate::pg::text::Text;
use awty_core::uri::{self, Uri};

calls! {
    fn normal_uri -> Text = normal;
    fn schedule_id -> Text = id;
}

fn normal(args: &Args) -> Result<Text> {
    let text: Text = args.get(0).ok_or(Error::Null { argument: "uri" })?;
    // Bytes that are not UTF-8 are outside ASCII, so the URI is refused in each encoding.
    let given = String::from_utf8_lossy(text.as_bytes());
    let uri = Uri::parse_normal(&given).map_err(|why| UriRefused { uri: text.to_string(), why })?;
    Ok(Text::from(uri.as_str()))
}

fn id(args: &Args) -> Result<Text> {
    let (tenant, uri): (Option<i64>, Option<Text>) = (args.get(0), args.get(1));
    let uri = uri.ok_or(Error::Null { argument: "uri" })?;
    let tenant = tenant.ok_or(Error::Null { argument: "number" })?;
    Ok(Text::from(uri::id(tenant, uri.as_bytes()).as_str()))
}
