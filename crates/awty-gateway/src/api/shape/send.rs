use super::{FieldList, Kind, Last, Length};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use utoipa::ToSchema;

fields! {
    /// One call.
    SendWanted, SEND:
    uri: String = Text,
    body: Option<Value> = Json,
    at: Option<DateTime<Utc>> = Time,
    after: Option<Length> = Length,
    headers: Option<Map<String, Value>> = Headers,
    method: Option<String> = Text,
}

/// A single call with a key, and its state.
#[derive(ToSchema)]
pub struct Send {
    key: String,
    uri: String,
    /// pending, in_flight, held, done, cancelled, or another outcome of awty.
    state: String,
    next_slot: Option<DateTime<Utc>>,
    due_at: DateTime<Utc>,
    sent_by: String,
    sent_at: DateTime<Utc>,
    last: Option<Last>,
}
