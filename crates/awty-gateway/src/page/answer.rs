//! Reads answers of the API.
//!
//! Invariant: a request's body stays JSON text, because serde_json cannot read deeply nested bodies, and parsed values
//! need much more memory.

use super::form::Form;
use axum::http::{HeaderMap, header};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Name of the field in which the page keeps an answer's `body` as unparsed JSON text.
pub const BODY: &str = "body_json";

pub struct Called {
    pub headers: HeaderMap,
    pub json: Value,
}

impl Called {
    pub fn of(headers: HeaderMap, bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let json = match bytes {
            [] => Value::Null,
            bytes => Value::Object(serde_json::from_slice::<Object>(bytes)?.0),
        };
        Ok(Called { headers, json })
    }

    pub fn next(&self) -> Option<String> {
        let link = self.header(header::LINK)?;
        let query = link.strip_prefix('<')?.split_once('>')?.0.split_once('?')?.1;
        Form::of(query.as_bytes()).get("after").map(str::to_owned)
    }

    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn items(&self) -> &[Value] {
        self.json["items"].as_array().map_or(&[], Vec::as_slice)
    }
}

struct Object(Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Object;

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
        use serde::de::Error;
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            match name.as_str() {
                "body" => {
                    let body = access.next_value::<&RawValue>()?.get();
                    if body != "null" {
                        fields.insert(BODY.into(), body.into());
                    }
                }
                "items" => {
                    let items = access.next_value::<Vec<&RawValue>>()?;
                    let read = |item: &RawValue| match item.get() {
                        text if text.starts_with('{') => Ok(Value::Object(serde_json::from_str::<Object>(text)?.0)),
                        text => serde_json::from_str(text),
                    };
                    let items = items.into_iter().map(read).collect::<Result<Vec<Value>, _>>();
                    fields.insert(name, items.map_err(A::Error::custom)?.into());
                }
                _ => {
                    fields.insert(name, access.next_value()?);
                }
            }
        }
        Ok(Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_stays_text_however_deep_it_is() {
        let deep = format!("{}1e999{}", "[".repeat(5_000), "]".repeat(5_000));
        let json =
            format!("{{\"items\":[{{\"id\":\"a\",\"body\":{deep}}},{{\"body\":null}},\"x\"],\"body\":{{\"a\": 1}}}}");
        let called = Called::of(HeaderMap::new(), json.as_bytes()).unwrap();
        assert_eq!((&called.items()[0][BODY], &called.items()[0]["id"]), (&deep.into(), &"a".into()));
        assert_eq!((&called.items()[1][BODY], &called.items()[2]), (&Value::Null, &"x".into()));
        assert_eq!(called.json[BODY], "{\"a\": 1}");
        assert!(Called::of(HeaderMap::new(), b"").unwrap().json.is_null());
        let too_deep = format!("{{\"labels\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(Called::of(HeaderMap::new(), too_deep.as_bytes()).is_err());
    }
}
