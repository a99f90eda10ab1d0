use super::attempt::{attempt, call};
use super::schedules::ms;
use super::{Request, Trouble};
use serde_json::{Map, Value};

/// An item of a page and its cursor. The item is `Null` if the page has no room for it.
pub type Item = (Value, Vec<String>);

/// Selects NULL instead of each item after the first 4 MiB of a list, so that 500 items with long messages fit into memory.
/// The window reads the rows in the order of the list. OFFSET 0 keeps the planner from computing each item twice.
macro_rules! bounded {
    ($($list:tt)*) => {
        concat!(
            "SELECT CASE WHEN coalesce(pg_catalog.sum(pg_catalog.octet_length(l.item::text))
                OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) < 4194304 THEN l.item END, l.cursor
            FROM (", $($list)*, " OFFSET 0) AS l (item, cursor)"
        )
    };
}
pub(super) use bounded;

const ATTEMPTS: &str = bounded!(
    "SELECT ",
    attempt!(),
    "::text, ARRAY[a.ended_at::text, a.lease::text]
    FROM awty_http_internal.attempts($1, coalesce($2::text::timestamptz, 'infinity'), coalesce($3::bigint, 0), $4) AS a"
);
/// Counts other endpoints that should have been called during a late call's delay (`others`), and those that were
/// called (`called`). `near` and `near_called` are the same counts for endpoints of the same target.
///
/// Also returns when the server started, when its settings, the job and the schedule last changed, and which stops the
/// database knows, such as a block of the target that has ended.
pub const MEANWHILE: &str = "SELECT pg_catalog.jsonb_build_object('server', pg_catalog.pg_postmaster_start_time(),
        'settings', awty_http_internal.settings_read(), 'stops', awty_http_internal.stops($1, $2::text::timestamptz))
    || (SELECT pg_catalog.jsonb_build_object('job', j.resumed_at, 'schedule', e.changed_at)
        FROM awty_http.endpoint AS e JOIN awty.job AS j ON j.job = e.job WHERE e.id = $1)
    || pg_catalog.jsonb_build_object('others', pg_catalog.count(*), 'called', pg_catalog.count(*) FILTER (WHERE o.called),
        'near', pg_catalog.count(*) FILTER (WHERE o.near), 'near_called', pg_catalog.count(*) FILTER (WHERE o.near AND o.called))
    FROM (SELECT w.entity_name = e.entity_name AS near, EXISTS (
              SELECT FROM awty_http_internal.attempts(w.id, l.slot + 0.8 * l.late, max => 1) AS a WHERE a.leased_at > l.slot + '1 s'::interval) AS called
          FROM (SELECT $2::text::timestamptz AS slot, $3::text::timestamptz - $2::text::timestamptz AS late) AS l
          CROSS JOIN awty_http.endpoint AS e
          CROSS JOIN LATERAL (
              (SELECT n.id, n.entity_name, n.every, n.created_at, n.deleted_at FROM awty_http.endpoint AS n WHERE n.entity_name = e.entity_name AND n.job = e.job ORDER BY n.id LIMIT 20)
              UNION
              (SELECT n.id, n.entity_name, n.every, n.created_at, n.deleted_at FROM awty_http.endpoint AS n WHERE n.job = e.job ORDER BY n.id LIMIT 40)) AS w
          WHERE e.id = $1 AND w.id <> e.id AND w.every <= l.late / 2 AND w.created_at < l.slot AND w.deleted_at IS NULL) AS o";
const AFTER: &str = concat!(
    "SELECT ",
    attempt!(),
    "::text, ARRAY[a.ended_at::text, a.lease::text]
    FROM awty_http.endpoint AS e CROSS JOIN LATERAL (
        SELECT t.* FROM awty.attempt AS t
        WHERE t.entity_name = e.entity_name AND t.entity_key = e.entity_key AND t.job = e.job AND t.ended_at >= $2::text::timestamptz
        ORDER BY t.ended_at LIMIT $3) AS a
    WHERE e.id = $1 ORDER BY a.ended_at"
);
/// Reads facts that explain why a schedule was not called at a given time, such as the schedule's creation time, its
/// next planned time, and its checks that ended with a problem in the following hour.
pub const FACTS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('created', e.created_at,
        'planned', coalesce(e.at, (SELECT o.at FROM awty_http_internal.coming(e.every, e.cron, coalesce(e.zone, pg_catalog.current_setting('TimeZone')),
            w.at - '1 microsecond'::interval, 1, e.starts) AS o (at))),
        'jitter', ", ms!("coalesce(awty_http_internal.jitter(e), '0')"), ",
        'kept', pg_catalog.clock_timestamp() - nullif(pg_catalog.current_setting('awty.attempt_retention')::interval, '0'),
        'ended', (SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('slot', h.next_check_at, 'at', h.finished_at, 'outcome', h.outcome, 'message', h.message)) FROM (
            SELECT c.next_check_at, c.finished_at, c.outcome, c.message FROM awty.future_job_history AS c
            WHERE c.entity_name = e.entity_name AND c.entity_key = e.entity_key AND c.job = e.job AND c.outcome <> ALL ('{done,met,cancelled,replaced}')
              AND c.finished_at >= w.at AND c.finished_at < w.at + '1 hour'::interval
            ORDER BY c.finished_at LIMIT 20) AS h))
    FROM awty_http_internal.endpoint AS e CROSS JOIN (SELECT $2::text::timestamptz AS at) AS w WHERE e.id = $1"
);
const NEXT: &str = "SELECT pg_catalog.to_jsonb(n) FROM awty_http_internal.next_calls($1, $2) AS n";
const STATS: &str = "SELECT pg_catalog.to_jsonb(s) || pg_catalog.jsonb_build_object(
        'lateness_p50', EXTRACT(epoch FROM s.lateness_p50), 'lateness_p95', EXTRACT(epoch FROM s.lateness_p95),
        'lateness_max', EXTRACT(epoch FROM s.lateness_max), 'duration_p50', EXTRACT(epoch FROM s.duration_p50),
        'duration_p95', EXTRACT(epoch FROM s.duration_p95), 'duration_max', EXTRACT(epoch FROM s.duration_max),
        'caught_up_max', EXTRACT(epoch FROM s.caught_up_max))
    FROM awty_http_internal.stats($1, $2::text::interval, $3::text::timestamptz, $4::text::timestamptz) AS s";
const SLOTS: &str =
    "SELECT pg_catalog.jsonb_build_object('slot', f.slot, 'job', f.job, 'checks', f.checks), ARRAY[f.slot::text, f.job]
    FROM awty.forecast($2::text::timestamptz - pg_catalog.clock_timestamp()) AS f
    WHERE f.slot >= $1::text::timestamptz AND f.slot < $2::text::timestamptz
      AND (f.slot, f.job) > (coalesce($3::text::timestamptz, '-infinity'), coalesce($4, ''))
    ORDER BY f.slot, f.job LIMIT $5";

pub(super) fn item(row: &tokio_postgres::Row) -> Result<Item, Trouble> {
    Ok((row.try_get::<_, Option<Value>>(0)?.unwrap_or_default(), row.try_get(1)?))
}

fn attempt(row: &tokio_postgres::Row) -> Result<Item, Trouble> {
    let json: Option<&str> = row.try_get(0)?;
    let attempt = json.map(|json| call(json).unwrap_or_else(|| Value::Object(Map::new())));
    Ok((attempt.unwrap_or_default(), row.try_get(1)?))
}

pub async fn attempts(
    request: &Request,
    id: &str,
    before: Option<&str>,
    lease: Option<i64>,
    limit: i64,
) -> Result<Vec<Item>, Trouble> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    request.rows(ATTEMPTS, &[&id, &before, &lease, &limit]).await?.iter().map(attempt).collect()
}

pub async fn attempts_after(request: &Request, id: &str, after: &str, limit: i64) -> Result<Vec<Item>, Trouble> {
    request.rows_by_index(AFTER, &[&id, &after, &limit]).await?.iter().map(attempt).collect()
}

pub async fn facts(request: &Request, id: &str, at: &str) -> Result<Value, Trouble> {
    let row = request.rows_by_index(FACTS, &[&id, &at]).await?.pop();
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

pub async fn meanwhile(request: &Request, id: &str, slot: &str, at: &str) -> Result<Value, Trouble> {
    let row = request.rows_by_index(MEANWHILE, &[&id, &slot, &at]).await?.pop();
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}

pub async fn next(request: &Request, id: &str, count: i32) -> Result<Vec<Value>, Trouble> {
    request.rows(NEXT, &[&id, &count]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub async fn stats(request: &Request, id: &str, width: &str, from: &str, to: &str) -> Result<Vec<Value>, Trouble> {
    request.rows(STATS, &[&id, &width, &from, &to]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

pub async fn slots(
    request: &Request,
    from: &str,
    to: &str,
    after: (Option<&str>, Option<&str>),
    limit: i64,
) -> Result<Vec<Item>, Trouble> {
    request.rows(SLOTS, &[&from, &to, &after.0, &after.1, &limit]).await?.iter().map(item).collect()
}
