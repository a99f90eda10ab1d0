use super::schedules::ms;
use super::views::cut;
use super::{Request, Trouble};
use serde_json::Value;

/// Leaves out a command of over 2,000 characters, because hundreds of such commands would make the answer too large.
macro_rules! fix {
    ($fix:literal) => {
        concat!("CASE WHEN pg_catalog.length(", $fix, ") <= 2000 THEN ", $fix, " END")
    };
}
pub(super) use fix;

pub const STATUS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('name', s.database, 'enabled', s.enabled, 'held', s.database_held, 'why', s.why,
        'fix', ", fix!("s.fix"), ",
        'last_slot_run', s.last_slot_run, 'lag', ", ms!("s.lag"), ", 'oldest_overdue', s.oldest_overdue, 'pending', s.pending,
        'held_checks', s.held_checks, 'last_error', s.last_error, 'last_error_at', s.last_error_at, 'version', s.version,
        'library', s.library)
    FROM awty.status AS s"
);
pub const GATEWAYS: &str = "SELECT pg_catalog.jsonb_build_object('name', l.worker, 'in_flight', pg_catalog.count(*),
        'last_claim_at', pg_catalog.max(l.leased_at))
    FROM awty.lease AS l JOIN awty_http.tenant AS t ON t.job = l.job WHERE l.expires_at > pg_catalog.clock_timestamp()
    GROUP BY l.worker ORDER BY l.worker LIMIT 100";
pub const FINDINGS: &str = concat!(
    "SELECT pg_catalog.jsonb_build_object('level', d.level, 'finding', d.finding, 'detail', ",
    cut!("d.detail"),
    ", 'fix', ",
    fix!("d.fix"),
    ")
    FROM awty.doctor() AS d LIMIT 500"
);

pub async fn status(request: &Request) -> Result<(Value, Vec<Value>, Vec<Value>), Trouble> {
    let (database, gateways) = standing(request).await?;
    Ok((database, gateways, findings(request).await?))
}

pub async fn standing(request: &Request) -> Result<(Value, Vec<Value>), Trouble> {
    Ok((database(request).await?, all(request, GATEWAYS).await?))
}

pub async fn database(request: &Request) -> Result<Value, Trouble> {
    Ok(all(request, STATUS).await?.pop().unwrap_or_default())
}

pub async fn findings(request: &Request) -> Result<Vec<Value>, Trouble> {
    all(request, FINDINGS).await
}

async fn all(request: &Request, sql: &str) -> Result<Vec<Value>, Trouble> {
    request.rows(sql, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
