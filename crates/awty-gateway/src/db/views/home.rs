//! Reads the figures of the start page, and the number of late rows for each page's title.

use super::{all, all_by_index};
use crate::db::requests::in_ms;
use crate::db::schedules::ms;
use crate::db::{Request, Trouble};
use serde_json::Value;
use std::time::Duration;
use tokio_postgres::types::ToSql;

pub const MANY: i64 = 1_000;
pub const MOST_AHEAD: i64 = 20_000;

/// Time limits of two queries of the start page that also read other roles' jobs. Together the limits are below one
/// second, because the gateway allows a role fewer concurrent requests after a longer one.
pub const SEARCH_FOR: Duration = Duration::from_millis(200);
pub const COUNT_FOR: Duration = Duration::from_millis(400);

pub const LATE_COUNT: &str = "SELECT pg_catalog.count(*) FROM (
    SELECT FROM awty.rule AS r CROSS JOIN LATERAL (
        SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.cleared_at IS NULL AND a.level >= 1 ORDER BY a.due_at LIMIT $1) AS a
    LIMIT $1) AS l";
/// Reads the next 10,000 checks of each rule. Leaves out the checks of rows that are late already.
pub const SOON: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('rule', f.rule, 'name', f.entity_name, 'key', f.entity_key, 'at', f.next_check_at,
        'reminds', pg_catalog.cardinality(f.remind) > 0)
    FROM (SELECT r.rule, r.remind, s.*, ", own_first!("r.role", "s.next_check_at"), "FROM awty.rule AS r CROSS JOIN LATERAL (
        SELECT c.entity_name, c.entity_key, c.next_check_at FROM (
            SELECT p.entity_name, p.entity_key, p.next_check_at FROM awty.future_job AS p
            WHERE p.job = r.rule AND NOT p.held AND p.next_check_at < pg_catalog.now() + '1 hour'::interval ORDER BY p.next_check_at, p.id LIMIT 10000) AS c
        WHERE c.entity_name = r.entity_name
          AND NOT EXISTS (SELECT FROM awty.alert AS a WHERE a.rule = r.rule AND a.entity_key = c.entity_key AND a.cleared_at IS NULL AND a.level >= 1 OFFSET 0)
        LIMIT $1) AS s
    ORDER BY own DESC, turn, s.next_check_at LIMIT $1) AS f ORDER BY f.own DESC, f.next_check_at"
);
/// Reads failing checks, including the calls that `awty_http.send()` ordered. Leaves out the checks of HTTP schedules,
/// because [`ENDPOINTS`] reads those.
pub const FAILING: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('job', f.job, 'name', f.entity_name, 'key', f.entity_key, 'attempt', f.attempt,
        'max', f.max_attempts, 'next', f.next_check_at, 'sqlstate', f.sqlstate, 'message', f.message, 'at', f.failed_at)
    FROM (SELECT w.*, ", own_first!("j.role", "w.failed_at DESC"), "FROM awty_http_internal.failing AS w JOIN awty.job AS j ON j.job = w.job
        ORDER BY own DESC, turn, w.failed_at DESC LIMIT $1) AS f ORDER BY f.own DESC, f.failed_at DESC"
);
/// Reads failing endpoints, and endpoints whose next call is late by more than one period. With a cron expression, the
/// period is the time from the late call to the next planned time.
///
/// `least` caps the period, because an old endpoint may have a longer period than a new endpoint may have.
pub const ENDPOINTS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('id', e.id, 'uri', e.uri, 'since', e.since, 'waits', e.waits)
    FROM (SELECT s.*, ", own_first!("t.role", "s.since"), "FROM awty_http.tenant AS t CROSS JOIN LATERAL (
        (SELECT w.id, w.uri, w.failing_since AS since, false AS waits FROM awty_http.endpoint AS w
         WHERE w.job = t.job AND w.failing_since IS NOT NULL AND w.deleted_at IS NULL ORDER BY w.id LIMIT 1000)
        UNION ALL
        SELECT w.id, w.uri, f.next_check_at, true FROM (
            SELECT c.entity_name, c.entity_key, c.job, c.next_check_at FROM awty.future_job AS c
            WHERE c.job = t.job AND NOT c.held AND c.next_check_at < pg_catalog.now() - '10 s'::interval ORDER BY c.next_check_at, c.id LIMIT 1000) AS f
        JOIN awty_http.endpoint AS w ON w.entity_name = f.entity_name AND w.entity_key = f.entity_key AND w.job = f.job
        WHERE NOT w.paused AND w.failing_since IS NULL AND CASE WHEN w.cron IS NULL THEN f.next_check_at < pg_catalog.now() - least(w.every, '36525 days')
            ELSE EXISTS (SELECT FROM awty_http_internal.coming(NULL, w.cron, coalesce(w.zone, pg_catalog.current_setting('TimeZone')),
                f.next_check_at, 1, w.starts) AS o (at) WHERE o.at < pg_catalog.now()) END) AS s
    ORDER BY own DESC, turn, s.since LIMIT $1) AS e ORDER BY e.own DESC, e.since"
);
pub const LAST_HOUR: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('from', max(s.bucket), 'count', sum(s.count), 'ok', sum(s.ok), 'dropped', sum(s.dropped), 'caught_up', sum(s.caught_up),
        'caught_up_max', ", ms!("max(s.caught_up_max)"), ",
        'half', ", ms!("awty_http_internal.percentile(awty_http_internal.all_steps(s.lateness_steps), 0.5, min(s.lateness_min), max(s.lateness_max))"), ",
        'most', ", ms!("awty_http_internal.percentile(awty_http_internal.all_steps(s.lateness_steps), 0.95, min(s.lateness_min), max(s.lateness_max))"), ",
        'longest', ", ms!("max(s.lateness_max)"), ")
    FROM awty_http.tenant AS t JOIN awty_http.stat AS s ON s.id = t.job
    WHERE s.width = '1 hour' AND s.bucket = pg_catalog.date_trunc('hour', pg_catalog.now()) - '1 hour'::interval HAVING sum(s.count) > 0"
);
/// Counts the checks that ended with a problem in the last hour. Does not count the checks of HTTP schedules.
pub const ENDED: &str = "SELECT pg_catalog.count(*) FROM (
    SELECT FROM awty.job AS j CROSS JOIN LATERAL (
        SELECT p.entity_name, p.entity_key FROM awty.future_job_history AS p
        WHERE p.job = j.job AND p.outcome <> ALL ('{done,met,cancelled,replaced}') AND p.finished_at > pg_catalog.now() - '1 hour'::interval
        ORDER BY p.finished_at DESC LIMIT 1000) AS h
    WHERE NOT EXISTS (SELECT FROM awty_http.endpoint AS e WHERE e.entity_name = h.entity_name AND e.entity_key = h.entity_key AND e.job = j.job OFFSET 0)
    LIMIT $1) AS ended";
/// Finds repeating jobs whose last run failed, or whose last success is longer ago than one period. With a cron
/// expression or a calendar, the period lasts from the last success to the next planned time. `least` limits the period
/// as in [`ENDPOINTS`]. The visitor's own jobs come first, and the search for planned times ends after
/// [`SEARCH_FOR`], because another role can have thousands of jobs, and one search can take milliseconds.
pub const BEHIND: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('job', b.job, 'every', ", ms!("b.every"), ", 'cron', b.cron, 'last', b.last_success_at)
    FROM (SELECT j.job, r.every, r.cron, s.last_success_at, ", own_first!("j.role", "s.last_success_at NULLS FIRST"), "
    FROM (SELECT a.job, a.role, a.function_name FROM awty.job AS a ORDER BY ", own!("a.role"), " DESC OFFSET 0) AS j
    CROSS JOIN LATERAL (
        SELECT c.entity_name, c.entity_key FROM awty.future_job AS c
        WHERE c.job = j.job AND NOT c.held ORDER BY c.next_check_at, c.id LIMIT 1) AS f
    JOIN awty.repetition AS r ON r.entity_name = f.entity_name AND r.entity_key = f.entity_key AND r.job = j.job
    JOIN awty.job_status AS s ON s.job = j.job
    WHERE j.function_name IS NOT NULL AND NOT s.paused
      AND NOT EXISTS (SELECT FROM awty.future_job AS c WHERE c.job = j.job AND c.attempt > 0)
      AND (CASE WHEN r.cron IS NULL AND r.calendar IS NULL THEN s.last_success_at + least(r.every, '36525 days')
              WHEN pg_catalog.clock_timestamp() > pg_catalog.statement_timestamp() + $2::text::interval THEN NULL
              ELSE (SELECT o.at + r.jitter FROM awty_http_internal.next_repetition(r.job, r.entity_name, r.entity_key, s.last_success_at) AS o (at)) END
          < pg_catalog.clock_timestamp() - 2 * pg_catalog.current_setting('awty.slot')::interval
        OR coalesce(s.last_failure_at > s.last_success_at, s.last_failure_at IS NOT NULL))
    ORDER BY own DESC, turn, s.last_success_at NULLS FIRST LIMIT $1) AS b ORDER BY b.own DESC, b.last_success_at NULLS FIRST"
);
pub const DUE_AHEAD: &str = "SELECT pg_catalog.count(*) FROM (
        SELECT FROM awty.job AS j CROSS JOIN LATERAL (
            SELECT FROM awty.future_job AS c
            WHERE c.job = j.job AND NOT c.held AND c.next_check_at <= pg_catalog.now() + $1::text::interval ORDER BY c.next_check_at LIMIT $2) AS f
        LIMIT $2) AS due";
const BRIEFLY: &str = "SELECT pg_catalog.set_config('statement_timeout', $1, true)";
pub const AHEAD: &str = "SELECT pg_catalog.jsonb_build_object('slot', f.slot, 'job', f.job, 'checks', f.checks)
    FROM awty.forecast($1::text::interval, $2::text::interval) AS f";
pub const NEXT_DUE: &str = "SELECT pg_catalog.to_jsonb(pg_catalog.min(f.next_check_at)) FROM awty.job AS j CROSS JOIN LATERAL (
        SELECT c.next_check_at FROM awty.future_job AS c WHERE c.job = j.job AND NOT c.held ORDER BY c.next_check_at, c.id LIMIT 1) AS f
    WHERE NOT j.paused";
/// The slot is null if the server has not loaded awty's library.
pub const CLOCK: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('now', pg_catalog.clock_timestamp(), 'slot', ",
    ms!("nullif(pg_catalog.current_setting('awty.slot', true), '')::interval"),
    ")"
);
/// Finds the parts of a time range in which a calendar is open. Leaves out calendars that no rule or repetition uses, and
/// calendars that the visitor may see but not use.
pub const OPEN_HOURS: &str = "SELECT pg_catalog.jsonb_build_object('calendar', c.calendar, 'part', p.part)
    FROM (SELECT k.calendar FROM awty.calendar AS k
          WHERE (pg_catalog.pg_has_role(k.role::oid,
                  CASE WHEN pg_catalog.current_setting('server_version_num')::int4 >= 160000 THEN 'SET' ELSE 'MEMBER' END)
              OR k.role::oid = (SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()))
            AND (EXISTS (SELECT FROM awty.rule AS r WHERE r.calendar = k.calendar)
              OR EXISTS (SELECT FROM awty.repetition AS r WHERE r.calendar = k.calendar)) ORDER BY k.calendar LIMIT 3) AS c
    CROSS JOIN (SELECT n AS part, pg_catalog.to_timestamp($1::float8 + $2::float8 * n) AS at FROM pg_catalog.generate_series(0::bigint, $3::bigint - 1) AS n) AS p
    WHERE awty.open_time(p.at, p.at + pg_catalog.make_interval(secs => $2::float8), c.calendar) > '0'
    ORDER BY c.calendar, p.part";
/// Selects up to 1,000 targets of the visitor's own jobs, and up to 1,000 targets of any jobs. The numbers are limited,
/// because reading the state of a target costs several lookups.
macro_rules! some_targets {
    () => {
        concat!(
            "((SELECT o.* FROM awty.target AS o
            WHERE o.job = ANY (ARRAY(SELECT j.job FROM awty.job AS j WHERE j.function_name IS NULL AND ",
            own!("j.role"),
            "))
            LIMIT 1000)
          UNION (SELECT a.* FROM awty.target AS a LIMIT 1000))"
        )
    };
}
/// Returns the visitor's own targets first, and then one target of each other role in turn.
pub const TARGETS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('job', t.job, 'target', t.target, 'state', t.state, 'until', t.blocked_until, 'why', t.why),
        ", own_first!("j.role", "t.job, t.target"), "FROM ", some_targets!(), " AS t JOIN awty.job AS j ON j.job = t.job
    WHERE t.state IN ('blocked', 'open') ORDER BY own DESC, turn, t.job, t.target LIMIT $1"
);
/// Finds one example each, of the visitor if there is one: a paused job, a target that is blocked or has an open
/// breaker, a full target, and a pending check.
pub const STOPS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('standby', pg_catalog.pg_is_in_recovery(),
        'paused', (SELECT j.job FROM awty.job AS j WHERE j.paused ORDER BY ", own!("j.role"), " DESC, j.job LIMIT 1),
        'pending', EXISTS (SELECT FROM awty.job AS j CROSS JOIN LATERAL (
            (SELECT FROM awty.future_job AS c WHERE c.job = j.job AND NOT c.held LIMIT 1)
            UNION ALL (SELECT FROM awty.future_job AS c WHERE c.job = j.job AND c.held LIMIT 1)) AS f), 'closed', t.closed, 'full', t.full)
    FROM (SELECT (pg_catalog.array_agg(w.what ORDER BY w.own DESC, w.what) FILTER (WHERE w.state IN ('blocked', 'open')))[1] AS closed,
            (pg_catalog.array_agg(w.what ORDER BY w.own DESC, w.what) FILTER (WHERE w.state = 'full'))[1] AS full
        FROM (SELECT t.state, ", own!("j.role"), " AS own, pg_catalog.concat(coalesce(t.target, 'each target'), ' of job \"', t.job, '\": ', t.why) AS what
            FROM ", some_targets!(), " AS t JOIN awty.job AS j ON j.job = t.job WHERE t.state IN ('blocked', 'open', 'full')) AS w) AS t"
);

async fn number(request: &Request, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<i64, Trouble> {
    let row = request.rows_by_index(sql, values).await?.pop();
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
}

pub async fn late_count(request: &Request) -> Result<i64, Trouble> {
    number(request, LATE_COUNT, &[&(MANY + 1)]).await
}

pub async fn ended_with_problems(request: &Request, limit: i64) -> Result<i64, Trouble> {
    number(request, ENDED, &[&limit]).await
}

pub async fn soon(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all_by_index(request, SOON, &[&limit]).await
}

pub async fn failing(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all_by_index(request, FAILING, &[&limit]).await
}

pub async fn failing_endpoints(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, ENDPOINTS, &[&limit]).await
}

/// Returns null if no call ended in the last full hour, or if the statistics lack this hour.
pub async fn last_hour(request: &Request) -> Result<Value, Trouble> {
    Ok(all(request, LAST_HOUR, &[]).await?.pop().unwrap_or_default())
}

pub async fn behind(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, BEHIND, &[&limit, &in_ms(SEARCH_FOR)]).await
}

/// Returns the number of checks by job and step. Returns `None` if more than [`MOST_AHEAD`] checks will be due, or if
/// counting takes longer than [`COUNT_FOR`].
pub async fn ahead(request: &Request, ahead: &str, step: &str) -> Result<Option<Vec<Value>>, Trouble> {
    if number(request, DUE_AHEAD, &[&ahead, &(MOST_AHEAD + 1)]).await? > MOST_AHEAD {
        return Ok(None);
    }
    request.maybe("SAVEPOINT counting", &[]).await?;
    request.maybe(BRIEFLY, &[&in_ms(COUNT_FOR)]).await?;
    let counted = match all(request, AHEAD, &[&ahead, &step]).await {
        Ok(rows) => Some(rows),
        Err(trouble) if trouble.is("57014") => None,
        Err(trouble) => return Err(trouble),
    };
    request.maybe("ROLLBACK TO SAVEPOINT counting", &[]).await?; // also ends the time limit
    Ok(counted)
}

/// Leaves out paused jobs.
pub async fn next_due(request: &Request) -> Result<Value, Trouble> {
    let row = request.maybe(NEXT_DUE, &[]).await?;
    Ok(row.map(|row| row.try_get::<_, Option<Value>>(0)).transpose()?.flatten().unwrap_or_default())
}

pub async fn clock(request: &Request) -> Result<Value, Trouble> {
    Ok(all(request, CLOCK, &[]).await?.pop().unwrap_or_default())
}

/// `from` and `step` are in seconds.
pub async fn open_hours(request: &Request, from: i64, step: i64, parts: i64) -> Result<Vec<Value>, Trouble> {
    #[allow(clippy::cast_precision_loss)] // an `f64` holds each second of this century exactly
    let (from, step) = (from as f64, step as f64);
    all(request, OPEN_HOURS, &[&from, &step, &parts]).await
}

pub async fn closed_targets(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all_by_index(request, TARGETS, &[&limit]).await
}

pub async fn stops(request: &Request) -> Result<Value, Trouble> {
    Ok(all_by_index(request, STOPS, &[]).await?.pop().unwrap_or_default())
}
