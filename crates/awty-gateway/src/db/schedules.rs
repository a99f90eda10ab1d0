use super::attempt::{attempt, call};
use super::views::own;
use super::{Request, Trouble};
use serde_json::Value;
use tokio_postgres::types::{FromSqlOwned, ToSql};

/// Lengths of time are in milliseconds.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub version: i64,
    pub deleted: bool,
    /// True if this schedule's job is the job that the current role's new schedules get.
    pub own: bool,
    pub new: bool,
    pub fields: Value,
    pub lengths: Value,
    /// The body is JSON text, because [`Value`] cannot represent every jsonb value.
    pub body: Option<String>,
    pub last: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub state: Option<String>,
    pub origin: Option<String>,
    pub label: Option<String>,
    pub q: Option<String>,
    pub failing: Option<bool>,
}

macro_rules! ms {
    ($column:literal) => {
        concat!("(EXTRACT(epoch FROM ", $column, ") * 1000)::bigint")
    };
}
pub(super) use ms;

/// Selects a page of schedules. To limit memory, rows after the first 4 MiB have null in `fields`, `body` and `last`. Each
/// header counts as 128 bytes more, because the gateway needs that much for it.
macro_rules! schedules {
    ($($from:tt)*) => {
        concat!(
            "SELECT s.id, s.fits, s.is_end, s.version, s.deleted, s.own, s.new, CASE WHEN s.before < 4194304 THEN s.fields END AS fields, s.lengths,
                CASE WHEN s.before < 4194304 THEN s.body END AS body,
                CASE WHEN s.before < 4194304 THEN s.last END AS last,
                (SELECT pg_catalog.jsonb_build_object('ok', c.ok, 'failed', c.failed, 'dropped', c.dropped)
                 FROM awty_http_internal.counts(s.id) AS c) AS counts
            FROM (SELECT i.*, coalesce(pg_catalog.sum(pg_catalog.octet_length(i.fields::text)
                    + 128 * (SELECT pg_catalog.count(*) FROM pg_catalog.jsonb_each(CASE pg_catalog.jsonb_typeof(i.fields -> 'headers') WHEN 'object' THEN i.fields -> 'headers' END))
                    + coalesce(pg_catalog.octet_length(i.body), 0) + coalesce(pg_catalog.octet_length(i.last), 0))
                OVER (ORDER BY i.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
            FROM (SELECT (SELECT ", attempt!(), "::text FROM awty_http_internal.attempts(e.id, max => 1) AS a) AS last, e.id, e.fits, e.is_end, e.version, e.deleted_at IS NOT NULL AS deleted, e.job IS NOT DISTINCT FROM awty_http_internal.job() AS own,
                e.created_at = pg_catalog.now() AS new, (e.request -> 'body')::text AS body,
                pg_catalog.jsonb_build_object('every', coalesce(e.rounded_from, e.every)::text, 'after', e.after::text,
                    'jitter', e.jitter::text, 'catch_up', e.catch_up::text) AS lengths,
            (e.request - 'body')
            || pg_catalog.jsonb_build_object('id', e.id, 'uri', e.uri, 'every', ", ms!("e.every"), ", 'cron', e.cron, 'zone', e.zone,
                'at', CASE WHEN e.after IS NULL THEN e.at END, 'after', ", ms!("e.after"), ", 'starts', e.starts, 'ends', e.ends, 'jitter', ", ms!("e.jitter"),
            ", 'catch_up', ", ms!("e.catch_up"), ", 'labels', e.labels,
                'description', e.description, 'paused', e.paused, 'state', e.state, 'why', e.why, 'next_slot', e.next_slot,
                'in_flight', e.in_flight, 'failing_since', e.failing_since, 'rounded_from', ", ms!("e.rounded_from"), ",
                'created_by', e.created_by::text, 'created_at', e.created_at, 'deleted_at', e.deleted_at) AS fields
            FROM ", $($from)*, ") AS i) AS s ORDER BY s.id"
        )
    };
}

/// A page looks at no more than this many schedules of each tenant.
const MOST: i64 = 50_000;
const MOST_WITH_STATE: i64 = 5_000;

const ONE: &str = schedules!(
    "(SELECT w.*, true AS fits, false AS is_end FROM awty_http_internal.schedule_status AS w WHERE w.id = $1) AS e"
);
/// Examines at most `$8` schedules of each tenant, because there may be many schedules that do not match. Also returns
/// the last examined schedule, after which the next page begins.
///
/// `$9` selects either the tenants of the role itself or those of other roles, because reading the schedules of a role
/// that gave this right unasked may take long.
pub const LIST: &str = schedules!(
    "awty_http.tenant AS t CROSS JOIN LATERAL (
        SELECT w.*, c.fits AND ($2::text IS NULL OR w.state = $2) AS fits, c.n = $8 AS is_end
        FROM (SELECT k.id, pg_catalog.row_number() OVER (ORDER BY k.id) AS n, (k.deleted_at IS NULL OR $2 = 'ended')
                AND ($4::text IS NULL OR k.labels @> ARRAY[$4]) AND ($5::text IS NULL OR pg_catalog.strpos(pg_catalog.lower(pg_catalog.concat_ws(E'\n', k.uri, k.description,
                    pg_catalog.array_to_string(k.labels, E'\n')) COLLATE \"default\"), pg_catalog.lower($5)) > 0)
                AND ($6::boolean IS DISTINCT FROM false OR k.failing_since IS NULL) AS fits
            FROM awty_http.endpoint AS k
            WHERE k.job = t.job AND k.id > $1 AND ($2::text IS DISTINCT FROM 'paused' OR k.paused) AND ($3::text IS NULL OR k.entity_name = $3)
            AND ($6::boolean IS DISTINCT FROM true OR k.failing_since IS NOT NULL)
            ORDER BY k.id LIMIT $8) AS c
        CROSS JOIN LATERAL (SELECT s.* FROM awty_http_internal.schedule_status AS s WHERE s.id = c.id OFFSET 0) AS w
        WHERE (c.fits OR c.n = $8) AND ($2::text IS NULL OR w.state = $2 OR c.n = $8)
        ORDER BY c.id LIMIT $7) AS e WHERE ", own!("t.role"), " <> $9 ORDER BY e.id LIMIT $7"
);
/// Begins the cursor of a page with schedules of other roles.
const OTHERS: &str = "others ";
const TENANTS: &str = concat!(
    "SELECT coalesce(bool_or(t.own), false), coalesce(bool_or(NOT t.own), false) FROM (SELECT ",
    own!("t.role"),
    " AS own FROM awty_http.tenant AS t) AS t"
);
const OF_URI: &str =
    "SELECT awty_http_internal.id(t.number, $1) FROM awty_http.tenant AS t WHERE t.job = awty_http_internal.job()";
const SLOT: &str = concat!("SELECT ", ms!("pg_catalog.current_setting('awty.slot')::interval"));
const IS_KNOWN: &str = "SELECT true FROM awty_http.endpoint AS e WHERE e.id = $1";
/// Refuses a role that may not schedule, because the check of a request's secrets tells which secrets the tenant has.
const ROLE: &str =
    "SELECT pg_catalog.pg_get_userbyid(t.role)::text FROM awty_http_internal.job_to_schedule() AS j (job)
    JOIN awty_http.tenant AS t ON t.job = j.job";
const NUMBER: &str = "SELECT t.number FROM awty_http.endpoint AS e JOIN awty_http.tenant AS t ON t.job = e.job
    WHERE e.id = $1 AND awty_http_internal.may_schedule(e.job)";

fn row(row: &tokio_postgres::Row) -> Result<Option<Row>, Trouble> {
    let Some(mut fields) = row.try_get::<_, Option<Value>>("fields")? else { return Ok(None) };
    let last: Option<&str> = row.try_get("last")?;
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("counts".into(), row.try_get("counts")?);
    }
    Ok(Some(Row {
        id: row.try_get("id")?,
        version: row.try_get("version")?,
        deleted: row.try_get("deleted")?,
        own: row.try_get("own")?,
        new: row.try_get("new")?,
        fields,
        lengths: row.try_get("lengths")?,
        body: row.try_get("body")?,
        last: last.and_then(call),
    }))
}

pub(super) async fn value<T: FromSqlOwned>(request: &Request, sql: &str, id: &str) -> Result<Option<T>, Trouble> {
    Ok(request.maybe(sql, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn id_of(request: &Request, uri: &str) -> Result<String, Trouble> {
    Ok(value(request, OF_URI, uri).await?.unwrap_or_default())
}

pub async fn tenant_role(request: &Request) -> Result<Option<String>, Trouble> {
    Ok(request.maybe(ROLE, &[]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn one(request: &Request, id: &str) -> Result<Option<Row>, Trouble> {
    Ok(request.maybe(ONE, &[&id]).await?.map(|found| row(&found)).transpose()?.flatten())
}

/// Returns a page of schedules with their cursors. If the page ends early, also returns the cursor of the last examined
/// schedule. Pages with the schedules of other roles come last.
pub async fn list(
    request: &Request,
    after: &str,
    filter: &Filter,
    limit: i64,
) -> Result<(Vec<(Row, String)>, Option<String>), Trouble> {
    let Filter { state, origin, label, q, failing } = filter;
    let most = if state.is_some() { MOST_WITH_STATE } else { MOST };
    let tenants = request.maybe(TENANTS, &[]).await?;
    let tenants = tenants.map(|row| Ok::<_, Trouble>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
    let (has_own, has_others): (bool, bool) = tenants.unwrap_or_default();
    let of_others = after.strip_prefix(OTHERS).or((!has_own).then_some(after));
    let (others, start) = (of_others.is_some(), of_others.unwrap_or(after));
    let cursor = |id: &str| format!("{}{id}", if others { OTHERS } else { "" });
    let mut rows: Vec<(Row, String)> = Vec::new();
    let values: [&(dyn ToSql + Sync); 9] = [&start, state, origin, label, q, failing, &limit, &most, &others];
    for found in &request.rows_by_index(LIST, &values).await? {
        if found.try_get("fits")? {
            let Some(row) = row(found)? else {
                let end = rows.last().map(|(_, cursor)| cursor.clone());
                return Ok((rows, end));
            };
            let cursor = cursor(&row.id);
            rows.push((row, cursor));
        }
        if found.try_get("is_end")? {
            return Ok((rows, Some(cursor(found.try_get("id")?))));
        }
    }
    Ok((rows, (has_others && !others).then(|| OTHERS.to_owned())))
}

pub async fn slot(request: &Request) -> Result<i64, Trouble> {
    let row = request.maybe(SLOT, &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(60_000))
}

pub async fn is_known(request: &Request, id: &str) -> Result<bool, Trouble> {
    Ok(value(request, IS_KNOWN, id).await?.unwrap_or(false))
}

pub async fn tenant(request: &Request, id: &str) -> Result<Option<i64>, Trouble> {
    value(request, NUMBER, id).await
}
