use super::arguments::{self, Arguments};
use super::attempt::{call, result};
use super::{Request, Trouble};
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Row {
    pub fields: Value,
    pub last: Option<Value>,
    pub new: bool,
    pub over: bool,
    pub cancelled: bool,
}

const ONE: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('key', s.key, 'uri', s.uri, 'state', s.state, 'next_slot', s.next_slot,
        'due_at', s.due_at, 'sent_by', s.sent_by::text, 'sent_at', s.sent_at),
    CASE WHEN s.ended_at IS NOT NULL THEN pg_catalog.jsonb_build_object('slot', s.due_at, 'at', s.leased_at, 'ended_at', s.ended_at,
        'attempt', s.attempt, 'ok', s.ok, 'message', s.message, 'result', ",
    result!("s"),
    ")::text END,
    s.sent_at = pg_catalog.now(), s.state <> ALL ('{pending,in_flight,held}'), s.state = 'cancelled'
    FROM awty_http_internal.send_status AS s
    WHERE s.job = awty_http_internal.job() AND s.sent_by::oid = awty_http_internal.me() AND s.key = $1"
);
const CANCEL: &str = "SELECT awty_http_internal.cancel_send($1)";

pub async fn send(request: &Request, arguments: &Arguments) -> Result<(), Trouble> {
    arguments::call(request, "awty_http.send", arguments).await
}

pub async fn one(request: &Request, key: &str) -> Result<Option<Row>, Trouble> {
    let row = request.maybe(ONE, &[&key]).await?;
    let read = |row: tokio_postgres::Row| {
        let last = row.try_get::<_, Option<&str>>(1)?.and_then(call);
        let (fields, new, over, cancelled) = (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        Ok(Row { fields, last, new, over, cancelled })
    };
    row.map(read).transpose()
}

pub async fn cancel(request: &Request, key: &str) -> Result<bool, Trouble> {
    let row = request.maybe(CANCEL, &[&key]).await?;
    Ok(row.map(|row| row.try_get::<_, Option<bool>>(0)).transpose()?.flatten().unwrap_or(false))
}
