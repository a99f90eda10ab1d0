use super::calls::{Item, bounded, item};
use super::{Request, Trouble};
use serde_json::Value;

macro_rules! columns {
    () => {
        "SELECT pg_catalog.jsonb_build_object('id', p.id, 'uri', p.uri, 'schedule', p.schedule, 'key', p.key, 'slot', p.first_check_at, 'finished_at', p.finished_at, 'attempts', p.attempts, 'outcome', p.outcome, 'message', p.message),
            ARRAY[p.finished_at::text, p.id::text] "
    };
}

/// Reads the newest problems of each job by an index, and then sorts the problems of all jobs by time.
pub const LIST: &str = bounded!(
    columns!(),
    "FROM awty_http.tenant AS t CROSS JOIN LATERAL (
        SELECT p.* FROM awty_http_internal.problem AS p
        WHERE p.job = t.job AND ($1::text IS NULL OR p.entity_name = $1) AND ($2::text IS NULL OR p.entity_key = $2 OR p.entity_key ^@ ($2 || '#'))
          AND (p.finished_at, p.id) < (coalesce($3::text::timestamptz, 'infinity'), coalesce($4::bigint, 0))
        ORDER BY p.finished_at DESC, p.id DESC LIMIT $5
    ) AS p
    ORDER BY p.finished_at DESC, p.id DESC LIMIT $5"
);
const ONE: &str =
    concat!(columns!(), "FROM awty_http_internal.problem AS p WHERE p.id = $1 ORDER BY p.finished_at DESC LIMIT 1");
const KEY: &str = "SELECT s.key FROM awty_http_internal.problem AS p
    JOIN awty_http_internal.sent AS s ON s.job = p.job AND s.key = p.key AND s.entity_name = p.entity_name AND s.entity_key = p.entity_key
    WHERE p.id = $1 AND s.job = awty_http_internal.job() AND s.sent_by::oid = awty_http_internal.me() LIMIT 1";
const RETRY: &str = "SELECT awty_http_internal.retry($1)";

pub async fn list(
    request: &Request,
    of: Option<(&str, &str)>,
    before: Option<&str>,
    id: Option<i64>,
    limit: i64,
) -> Result<Vec<Item>, Trouble> {
    let (name, key) = (of.map(|of| of.0), of.map(|of| of.1));
    request.rows(LIST, &[&name, &key, &before, &id, &limit]).await?.iter().map(item).collect()
}

pub async fn one(request: &Request, id: i64) -> Result<Option<Value>, Trouble> {
    Ok(request.maybe(ONE, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn key(request: &Request, id: i64) -> Result<Option<String>, Trouble> {
    Ok(request.maybe(KEY, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn retry(request: &Request, id: i64) -> Result<(), Trouble> {
    request.maybe(RETRY, &[&id]).await.map(drop)
}
