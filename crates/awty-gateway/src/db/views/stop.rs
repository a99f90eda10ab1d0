use super::all;
use crate::db::status::fix;
use crate::db::{Request, Trouble};
use serde_json::Value;

/// Finds the due time of the oldest overdue check of a rule. Rows that became late after this time may have no alert
/// yet.
macro_rules! rules_behind {
    () => {
        "(SELECT pg_catalog.min(f.next_check_at) FROM awty.rule AS r CROSS JOIN LATERAL (
            SELECT c.next_check_at FROM awty.future_job AS c
            WHERE c.job = r.rule AND NOT c.held AND c.next_check_at < pg_catalog.now() - '2 s'::interval
            ORDER BY c.next_check_at, c.id LIMIT 1) AS f)"
    };
}
/// Finds the first reason why checks do not run.
pub const STOP: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('why', s.why, 'fix', ",
    fix!("s.fix"),
    ", 'enabled', s.enabled, 'held', s.database_held,
        'behind', ",
    rules_behind!(),
    ") FROM awty.status AS s"
);
const RULES_BEHIND: &str = concat!("SELECT pg_catalog.jsonb_build_object('behind', ", rules_behind!(), ")");

pub async fn stop(request: &Request) -> Result<Value, Trouble> {
    Ok(all(request, STOP, &[]).await?.pop().unwrap_or_default())
}

pub async fn rules_behind(request: &Request) -> Result<Value, Trouble> {
    Ok(all(request, RULES_BEHIND, &[]).await?.pop().map(|mut row| row["behind"].take()).unwrap_or_default())
}
