//! Invariant: awty_http and the gateway validate a call with the same code, so the gateway can make every call that
//! awty_http accepts.

use crate::call::args::{Args, calls};
use crate::error::{Error, Result, UriRefused};
use crate::pg::text::Text;
use awty_core::http::{HeaderError, Method, Statuses, check_header};
use awty_core::uri::{self, Uri};
use std::borrow::Cow;

calls! {
    fn normal_uri -> Text = normal;
    fn schedule_id -> Text = id;
    fn is_http_method -> bool = |args| Ok(utf8(&text(args, 0, "method")?).parse::<Method>().is_ok());
    fn is_status_list -> bool = |args| Ok(utf8(&text(args, 0, "statuses")?).parse::<Statuses>().is_ok());
    fn header_refusal -> Option<Text> = header;
}

fn text(args: &Args, index: usize, argument: &'static str) -> Result<Text> {
    args.get(index).ok_or(Error::Null { argument })
}

/// Replaces invalid UTF-8 by a character outside ASCII, so that the caller's validation still refuses the text.
fn utf8(text: &Text) -> Cow<'_, str> {
    String::from_utf8_lossy(text.as_bytes())
}

fn normal(args: &Args) -> Result<Text> {
    let given = text(args, 0, "uri")?;
    let uri = Uri::parse_normal(&utf8(&given)).map_err(|why| UriRefused { uri: given.to_string(), why })?;
    Ok(Text::from(uri.as_str()))
}

fn id(args: &Args) -> Result<Text> {
    let uri = text(args, 1, "uri")?;
    let tenant = args.get(0).ok_or(Error::Null { argument: "number" })?;
    Ok(Text::from(uri::id(tenant, uri.as_bytes()).as_str()))
}

fn header(args: &Args) -> Result<Option<Text>> {
    let refusal = match check_header(&utf8(&text(args, 0, "name")?)) {
        Ok(()) => return Ok(None),
        Err(HeaderError::Invalid) => "which is not a valid header name",
        Err(HeaderError::Reserved) => "which the gateway sets",
    };
    Ok(Some(Text::from(refusal)))
}
