use super::{all, all_by_index};
use crate::db::attempt::{attempt, call};
use crate::db::{Request, Trouble};
use serde_json::Value;

macro_rules! alert {
    () => {
        "SELECT pg_catalog.jsonb_build_object('id', a.id, 'rule', a.rule, 'name', a.entity_name, 'key', a.entity_key, 'level', a.level, 'due', a.due_at,
            'raised', a.raised_at, 'cleared', a.cleared_at, 'told', a.told, 'told_at', a.told_at, 'held_by', a.held_by::text, 'held_until', a.held_until,
            'note', a.note) "
    };
}

/// Reads the late rows of each rule by an index, in the order of their due times. A scan of the whole table would check
/// row security for the alerts of all roles.
///
/// If `$1` is 0, also returns rows that are not late yet, but were held or reminded (level 0). For such rows, the query
/// reads only 10,000 alerts of each rule.
pub const OPEN: &str = concat!(
    alert!(),
    "FROM (SELECT s.*, ",
    own_first!("r.role", "s.due_at, s.id"),
    "FROM awty.rule AS r CROSS JOIN LATERAL (
        (SELECT * FROM awty.alert AS l WHERE l.rule = r.rule AND l.cleared_at IS NULL AND l.level >= 1 ORDER BY l.due_at, l.id LIMIT $2)
        UNION ALL
        (SELECT e.* FROM (
            SELECT * FROM awty.alert AS o WHERE o.rule = r.rule AND o.cleared_at IS NULL ORDER BY o.entity_key LIMIT 10000) AS e
         WHERE $1 = 0 AND e.level = 0)) AS s
    ORDER BY own DESC, turn, s.due_at, s.id LIMIT $2) AS a ORDER BY a.own DESC, a.due_at, a.id"
);
pub const CLEARED: &str = concat!(
    alert!(),
    "FROM (SELECT s.*, ",
    own_first!("r.role", "s.cleared_at DESC"),
    "FROM awty.rule AS r CROSS JOIN LATERAL (
        SELECT * FROM awty.alert AS c WHERE c.rule = r.rule AND c.cleared_at IS NOT NULL AND c.level >= 1
        ORDER BY c.cleared_at DESC LIMIT $1) AS s
    ORDER BY own DESC, turn, s.cleared_at DESC LIMIT $1) AS a ORDER BY a.own DESC, a.cleared_at DESC"
);
const ALERTS_OF: &str = concat!(
    alert!(),
    "FROM awty.alert AS a WHERE a.entity_name = $1 AND a.entity_key = $2 AND a.cleared_at IS NULL
    ORDER BY ",
    own!("a.role"),
    " DESC, a.rule LIMIT 50"
);
macro_rules! check {
    () => {
        "SELECT pg_catalog.jsonb_build_object('job', f.job, 'name', f.entity_name, 'key', f.entity_key, 'at', f.next_check_at, 'held', f.held,
            'attempt', f.attempt) "
    };
}
/// `tries` says whether the visitor may try out the job's function, which only the job's own role may do. `tries` is
/// null if the job has no function.
const PENDING: &str = concat!(
    check!(),
    "|| pg_catalog.jsonb_build_object('tries', (SELECT pg_catalog.pg_get_userbyid(j.role) = current_user FROM awty.job AS j
        WHERE j.job = f.job AND j.function_name IS NOT NULL))
    FROM awty.future_job AS f WHERE f.entity_name = $1 AND f.entity_key = $2
    ORDER BY (SELECT ",
    own!("j.role"),
    " FROM awty.job AS j WHERE j.job = f.job) DESC NULLS LAST, f.job LIMIT $3"
);
/// Applies the role's own settings (`ALTER ROLE`, `ALTER DATABASE`), because a worker runs the function with these
/// settings. Calls the function of the view pg_settings, because each role may lock the view.
const OWN_SETTINGS: &str = "SELECT pg_catalog.set_config(s.name, coalesce((
        SELECT pg_catalog.substr(c, pg_catalog.length(s.name) + 2)
        FROM pg_catalog.pg_db_role_setting AS r CROSS JOIN LATERAL pg_catalog.unnest(r.setconfig) AS c
        WHERE r.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()))
          AND r.setrole IN (0, (SELECT o.oid FROM pg_catalog.pg_roles AS o WHERE o.rolname = current_user))
          AND pg_catalog.starts_with(c, s.name || '=')
        ORDER BY r.setrole = 0, r.setdatabase = 0 LIMIT 1), s.reset_val), true)
    FROM pg_catalog.pg_show_all_settings() AS s WHERE s.name IN ('search_path', 'TimeZone')";
/// Uses no operator, because the role's own search path may contain an operator of the same name.
const TRY: &str = "SELECT pg_catalog.to_jsonb(t) FROM awty.dry_run($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text) AS t";
/// Searches each visible job by an index, so that the query skips the checks of other roles with the same name.
pub const NAMED: &str = concat!(
    check!(),
    "FROM (SELECT s.*, ",
    own_first!("j.role", "s.entity_key, s.job"),
    "FROM awty.job AS j CROSS JOIN LATERAL (
        (SELECT p.* FROM awty.future_job AS p WHERE p.job = j.job AND p.entity_name = $1 AND NOT p.held
         ORDER BY p.next_check_at, p.id LIMIT $2)
        UNION ALL
        (SELECT c.* FROM (
            SELECT p.* FROM awty.future_job AS p WHERE p.job = j.job AND p.held ORDER BY p.id LIMIT 10000) AS c
         WHERE c.entity_name = $1 LIMIT $2)) AS s
    ORDER BY own DESC, turn, s.entity_key, s.job LIMIT $2) AS f ORDER BY f.own DESC, f.entity_key, f.job"
);
pub const IN_SLOT: &str = concat!(
    check!(),
    "FROM (SELECT s.*, ",
    own_first!("j.role", "s.next_check_at, s.job, s.id"),
    "FROM awty.job AS j CROSS JOIN LATERAL (
        SELECT c.* FROM awty.future_job AS c
        WHERE c.job = j.job AND NOT c.held AND c.next_check_at >= $1::text::timestamptz AND c.next_check_at < $1::text::timestamptz + $2::text::interval
        ORDER BY c.next_check_at, c.id LIMIT $3) AS s
    ORDER BY own DESC, turn, s.next_check_at, s.job, s.id LIMIT $3) AS f ORDER BY f.own DESC, f.next_check_at, f.job, f.id"
);
const EXPLAIN: &str =
    "SELECT pg_catalog.jsonb_build_object('at', e.at, 'job', e.job, 'event', e.event, 'detail', e.detail)
    FROM awty.explain($1, $2) AS e";
const STANDING: &str =
    "SELECT pg_catalog.jsonb_build_object('why', s.why, 'mend', s.mend) FROM awty_http_internal.standing($1) AS s";
/// Finds the schedule of a URI: of the visitor's own tenants if there is one, or else the oldest one, so that a tenant
/// that schedules the same URI later hides no schedule.
pub const SCHEDULE_OF: &str = concat!(
    "SELECT pg_catalog.to_jsonb(e.id) FROM awty_http.endpoint AS e JOIN awty_http.tenant AS t ON t.job = e.job WHERE e.entity_name = $1 AND e.entity_key = $2
    ORDER BY e.job IS NOT DISTINCT FROM awty_http_internal.job() DESC, ",
    own!("t.role"),
    " DESC, e.created_at, e.id LIMIT 1"
);
macro_rules! ended {
    () => {
        "SELECT pg_catalog.jsonb_build_object('id', h.id, 'job', h.job, 'name', h.entity_name, 'key', h.entity_key, 'slot', h.next_check_at,
            'at', h.finished_at, 'after', h.finished_at::text, 'outcome', h.outcome, 'attempts', h.attempts, 'sqlstate', h.sqlstate, 'message', h.message,
            'took', pg_catalog.floor(EXTRACT(epoch FROM h.run_time) * 1000)::bigint,
            'lateness', pg_catalog.floor(EXTRACT(epoch FROM h.lateness) * 1000)::bigint,
            'http', EXISTS (SELECT FROM awty_http.tenant AS t WHERE t.job = h.job)) "
    };
}
pub const PROBLEMS: &str = concat!(
    ended!(),
    "FROM awty.job AS j CROSS JOIN LATERAL (
        SELECT p.* FROM awty.future_job_history AS p
        WHERE p.job = j.job AND p.outcome <> ALL ('{done,met,cancelled,replaced}')
          AND (p.finished_at, p.id) < (coalesce($1::text::timestamptz, 'infinity'), coalesce($2::bigint, 0))
        ORDER BY p.finished_at DESC, p.id DESC LIMIT $3) AS h
    ORDER BY h.finished_at DESC, h.id DESC LIMIT $3"
);
pub const HISTORY: &str = concat!(
    ended!(),
    "FROM awty.future_job_history AS h
    WHERE h.finished_at <= coalesce($1::text::timestamptz, 'infinity')
      AND (h.finished_at, h.id) < (coalesce($1::text::timestamptz, 'infinity'), coalesce($2::bigint, 0))
    ORDER BY h.finished_at DESC, h.id DESC LIMIT $3"
);
const ATTEMPT: &str = concat!(
    "SELECT ",
    attempt!(),
    "::text FROM awty_http_internal.attempts($1, $2::text::timestamptz + '1 ms'::interval, max => 100) AS a WHERE a.lease = $3"
);
const HOLD: &str =
    "SELECT awty.hold($1, $2, $3, note => $4, held_until => pg_catalog.clock_timestamp() + $5::text::interval)";
const RELEASE: &str = "SELECT awty.release($1, $2, $3)";
const CHECK_NOW: &str = "SELECT awty.check_now($1, $2, $3)";

pub async fn open_alerts(request: &Request, level: i32, limit: i64) -> Result<Vec<Value>, Trouble> {
    all_by_index(request, OPEN, &[&level, &limit]).await
}

pub async fn cleared_alerts(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, CLEARED, &[&limit]).await
}

pub async fn alerts_of(request: &Request, name: &str, key: &str) -> Result<Vec<Value>, Trouble> {
    all(request, ALERTS_OF, &[&name, &key]).await
}

pub async fn pending(request: &Request, name: &str, key: Option<&str>, limit: i64) -> Result<Vec<Value>, Trouble> {
    match key {
        Some(key) => all(request, PENDING, &[&name, &key, &limit]).await,
        None => all_by_index(request, NAMED, &[&name, &limit]).await,
    }
}

pub async fn in_slot(request: &Request, slot: &str, width: &str, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, IN_SLOT, &[&slot, &width, &limit]).await
}

pub async fn explain(request: &Request, name: &str, key: &str) -> Result<Vec<Value>, Trouble> {
    all(request, EXPLAIN, &[&name, &key]).await
}

pub async fn standing(request: &Request, schedule: &str) -> Result<Vec<Value>, Trouble> {
    all(request, STANDING, &[&schedule]).await
}

pub async fn schedule_of(request: &Request, name: &str, key: &str) -> Result<Option<String>, Trouble> {
    let found = all(request, SCHEDULE_OF, &[&name, &key]).await?.pop();
    Ok(found.and_then(|id| id.as_str().map(str::to_owned)))
}

pub async fn ended(
    request: &Request,
    problems: bool,
    after: Option<&str>,
    id: Option<i64>,
    limit: i64,
) -> Result<Vec<Value>, Trouble> {
    all_by_index(request, if problems { PROBLEMS } else { HISTORY }, &[&after, &id, &limit]).await
}

pub async fn one_attempt(request: &Request, schedule: &str, at: &str, lease: i64) -> Result<Option<Value>, Trouble> {
    let row = request.maybe(ATTEMPT, &[&schedule, &at, &lease]).await?;
    Ok(row.map(|row| row.try_get::<_, String>(0)).transpose()?.as_deref().and_then(call))
}

pub async fn hold(
    request: &Request,
    (name, key, job): (&str, &str, Option<&str>),
    note: Option<&str>,
    length: Option<&str>,
) -> Result<(), Trouble> {
    request.maybe(HOLD, &[&name, &key, &job, &note, &length]).await.map(drop)
}

pub async fn release(request: &Request, (name, key, job): (&str, &str, Option<&str>)) -> Result<(), Trouble> {
    request.maybe(RELEASE, &[&name, &key, &job]).await.map(drop)
}

pub async fn check_now(request: &Request, (name, key, job): (&str, &str, Option<&str>)) -> Result<(), Trouble> {
    request.maybe(CHECK_NOW, &[&name, &key, &job]).await.map(drop)
}

/// Closes the session, so that no change made by the tested function remains.
pub async fn dry_run(mut request: Request, (name, key, job): (&str, &str, &str)) -> Result<Value, Trouble> {
    request.close_session();
    request.rows(OWN_SETTINGS, &[]).await?;
    Ok(all(&request, TRY, &[&name, &key, &job]).await?.pop().unwrap_or_default())
}
