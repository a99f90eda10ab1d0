//! Reads what the start page shows, and the number of late rows for the title of each page.

use super::all;
use crate::db::schedules::ms;
use crate::db::{Request, Trouble};
use serde_json::Value;

pub const MANY: i64 = 1_000;

pub const LATE_COUNT: &str = "SELECT pg_catalog.count(*) FROM (
    SELECT FROM awty.rule AS r CROSS JOIN LATERAL (
        SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.cleared_at IS NULL AND a.level >= 1 LIMIT $1) AS a
    LIMIT $1) AS l";
const SOON: &str = "SELECT pg_catalog.jsonb_build_object('rule', r.rule, 'name', f.entity_name, 'key', f.entity_key, 'at', f.next_check_at,
        'reminds', pg_catalog.cardinality(r.remind) > 0)
    FROM awty.rule AS r CROSS JOIN LATERAL (
        SELECT c.entity_name, c.entity_key, c.next_check_at FROM awty.future_job AS c
        WHERE c.job = r.rule AND NOT c.held AND c.next_check_at < pg_catalog.now() + '1 hour'::interval AND c.entity_name = r.entity_name
          AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.entity_key = c.entity_key AND a.cleared_at IS NULL AND a.level >= 1)
        ORDER BY c.next_check_at, c.id LIMIT $1) AS f
    ORDER BY f.next_check_at LIMIT $1";
const FAILING: &str = "SELECT pg_catalog.jsonb_build_object('job', f.job, 'name', f.entity_name, 'key', f.entity_key, 'attempt', f.attempt,
        'max', f.max_attempts, 'next', f.next_check_at, 'sqlstate', f.sqlstate, 'message', f.message, 'at', f.failed_at)
    FROM (SELECT * FROM awty.failing LIMIT 1000) AS f
    WHERE NOT EXISTS (SELECT FROM awty_http.tenant AS t WHERE t.job = f.job) ORDER BY f.failed_at DESC LIMIT $1";
const ENDPOINTS: &str = "SELECT pg_catalog.jsonb_build_object('id', e.id, 'uri', e.uri, 'since', e.failing_since)
    FROM awty_http.tenant AS t CROSS JOIN LATERAL (
        SELECT w.id, w.uri, w.failing_since FROM awty_http.endpoint AS w
        WHERE w.job = t.job AND w.failing_since IS NOT NULL AND w.deleted_at IS NULL ORDER BY w.id LIMIT 1000) AS e
    ORDER BY e.failing_since LIMIT $1";
/// Finds repeating jobs whose last success is longer ago than the period of the job plus two slots (`awty.slot`).
const BEHIND: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('job', s.job, 'every', ", ms!("r.every"), ", 'last', s.last_success_at, 'next', r.next_check_at)
    FROM awty.job_status AS s CROSS JOIN LATERAL (
        SELECT p.every, p.next_check_at FROM awty.repetition AS p WHERE p.job = s.job AND p.every IS NOT NULL ORDER BY p.every DESC LIMIT 1) AS r
    WHERE NOT EXISTS (SELECT FROM awty_http.tenant AS t WHERE t.job = s.job)
      AND s.last_success_at < pg_catalog.clock_timestamp() - r.every - 2 * pg_catalog.current_setting('awty.slot')::interval
    ORDER BY s.last_success_at LIMIT $1"
);
const AHEAD: &str = "SELECT pg_catalog.jsonb_build_object('slot', f.slot, 'job', f.job, 'checks', f.checks)
    FROM awty.forecast($1::text::interval, $2::text::interval) AS f";
const TARGETS: &str = "SELECT pg_catalog.jsonb_build_object('job', t.job, 'target', t.target, 'state', t.state, 'until', t.blocked_until, 'why', t.why)
    FROM (SELECT * FROM awty.target LIMIT 5000) AS t WHERE t.state IN ('blocked', 'open') ORDER BY t.job, t.target LIMIT $1";

pub async fn late_count(request: &Request) -> Result<i64, Trouble> {
    let row = request.maybe(LATE_COUNT, &[&(MANY + 1)]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
}

pub async fn soon(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, SOON, &[&limit]).await
}

pub async fn failing(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, FAILING, &[&limit]).await
}

pub async fn failing_endpoints(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, ENDPOINTS, &[&limit]).await
}

pub async fn behind(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, BEHIND, &[&limit]).await
}

pub async fn ahead(request: &Request, ahead: &str, step: &str) -> Result<Vec<Value>, Trouble> {
    all(request, AHEAD, &[&ahead, &step]).await
}

pub async fn closed_targets(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, TARGETS, &[&limit]).await
}
