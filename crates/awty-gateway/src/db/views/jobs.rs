use super::all;
use crate::db::schedules::ms;
use crate::db::{Request, Trouble};
use serde_json::Value;

/// Selects the visitor's own jobs first. Their figures are read by an array of their names, so that no figures of other
/// jobs are read.
pub const JOBS: &str = concat!(
    "WITH chosen AS MATERIALIZED (SELECT j.job, ", own_first!("j.role", "j.job"), "FROM awty.job AS j ORDER BY own DESC, turn, j.job LIMIT $1)
    SELECT pg_catalog.jsonb_build_object('job', s.job, 'role', s.role, 'paused', s.paused, 'note', s.paused_note, 'pending', s.pending,
        'overdue', s.overdue, 'oldest', s.oldest_overdue, 'failing', s.failing, 'held', s.held, 'next', s.next_slot, 'runs', s.runs, 'done', s.done,
        'problems', s.failed + s.timed_out + s.other, 'retries', s.retries, 'longest', ", ms!("s.max_run_time"), ",
        'average', pg_catalog.floor(EXTRACT(epoch FROM s.run_time) * 1000 / nullif(s.runs, 0))::bigint, 'last', s.last_run_at, 'outcome', s.last_outcome,
        'success', s.last_success_at, 'since', s.stats_since, 'mine', s.role IS NOT NULL)
    FROM awty.job_status AS s LEFT JOIN chosen AS o ON o.job = s.job WHERE s.job = ANY (ARRAY(SELECT o.job FROM chosen AS o) || 'other jobs'::text)
    ORDER BY s.role IS NULL, o.own DESC NULLS LAST, s.job LIMIT $1"
);
pub const RULES: &str = concat!(
    "WITH chosen AS MATERIALIZED (SELECT w.*, ",
    own_first!("w.role", "w.rule"),
    "FROM awty.rule AS w ORDER BY own DESC, turn, w.rule LIMIT $1)
    SELECT pg_catalog.jsonb_build_object('rule', r.rule, 'table', r.relation::text, 'name', r.entity_name, 'since', ",
    cut!("r.since"),
    ",
        'due', ",
    cut!("r.due"),
    ", 'until', ",
    cut!("r.until"),
    ",
        'within', ",
    ms!("r.within"),
    ", 'calendar', r.calendar, 'met', s.met, 'late', s.late, 'pending', s.pending, 'counted', s.stats_since,
        'calls', concat_ws('.', r.call_schema, r.call_name), 'notify', r.notify, 'paused', s.paused)
    FROM chosen AS r LEFT JOIN (SELECT * FROM awty.job_status AS j WHERE j.job = ANY (ARRAY(SELECT o.rule FROM chosen AS o))) AS s ON s.job = r.rule
    ORDER BY r.own DESC, r.rule"
);
const PAUSE: &str = "SELECT awty.pause($1, $2)";
const RESUME: &str = "SELECT awty.resume($1)";

pub async fn jobs(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, JOBS, &[&limit]).await
}

pub async fn rules(request: &Request, limit: i64) -> Result<Vec<Value>, Trouble> {
    all(request, RULES, &[&limit]).await
}

pub async fn pause_job(request: &Request, job: &str, note: Option<&str>) -> Result<(), Trouble> {
    request.maybe(PAUSE, &[&job, &note]).await.map(drop)
}

pub async fn resume_job(request: &Request, job: &str) -> Result<(), Trouble> {
    request.maybe(RESUME, &[&job]).await.map(drop)
}
