use super::{Db, Trouble};
use chrono::{DateTime, Utc};
use deadpool_postgres::Object;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

#[derive(Clone, Debug)]
pub struct Token {
    pub id: i64,
    pub role: String,
    pub scope: String,
    pub expired: bool,
}

/// Commits asynchronously, so that the page works and can report the problem if a synchronous standby is missing. A
/// crash can lose only the token's time of last use.
const TOKEN: &str = "SELECT t.id, t.role::pg_catalog.text, t.scope, t.expires_at
    FROM pg_catalog.set_config('synchronous_commit', 'off', true) AS s (setting),
    LATERAL awty_http_internal.token_of(CASE WHEN s.setting IS NOT NULL THEN $1::bytea END) AS t";
/// The search path contains only pg_catalog, so that this session runs no functions or operators of other roles.
///
/// JIT is off, because compiling can take seconds if tables were never analyzed.
const TERMS: &str = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
    pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('statement_timeout', $1, true),
    pg_catalog.set_config('lock_timeout', '1s', true), pg_catalog.set_config('jit', 'off', true),
    pg_catalog.pg_backend_pid(), pg_catalog.now()";
const CREATE: &str =
    "SELECT awty_http.create_token($1::pg_catalog.text::pg_catalog.name, $2, $3::pg_catalog.text::pg_catalog.interval)";
/// Ends the database session of a request. Returns no row if the request's transaction has already ended.
const TERMINATE: &str = "SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity AS a
    WHERE a.pid OPERATOR(pg_catalog.=) $1 AND a.xact_start OPERATOR(pg_catalog.=) $2";
const ROLE: &str = "SELECT pg_catalog.set_config('role', $1, true)";

/// Makes PostgreSQL read the first rows of a job or rule in the order of an index. Without statistics, PostgreSQL would
/// read and sort all rows.
pub const BY_INDEX: &str =
    "SELECT pg_catalog.set_config('enable_sort', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true)";
const AS_USUAL: &str =
    "SELECT pg_catalog.set_config('enable_sort', 'on', true), pg_catalog.set_config('enable_bitmapscan', 'on', true)";

const LONGEST_NAME: usize = 63;
/// Time that a statement has to end after its time limit.
const GRACE: Duration = Duration::from_secs(1);
/// Maximum time for the rollback of an abandoned request.
const UNDO: Duration = Duration::from_secs(5);
/// Pause before the gateway tries again to terminate a database session that has not ended yet.
const AGAIN: Duration = Duration::from_secs(5);

/// Returns the duration in milliseconds, in a format that PostgreSQL accepts both as an interval and as the value of a
/// setting.
pub(super) fn in_ms(length: Duration) -> String {
    format!("{} ms", length.as_millis())
}

/// Refuses long names, because PostgreSQL would cut the name, and the cut name may belong to another role.
pub(super) fn role_name(role: &str) -> Result<&str, Trouble> {
    if role.len() <= LONGEST_NAME {
        return Ok(role);
    }
    let hint = Some(format!("A name has at most {LONGEST_NAME} bytes. SELECT rolname FROM pg_roles; lists the roles."));
    Err(Trouble::Refused { sqlstate: "42704".into(), message: format!("role \"{role}\" does not exist"), hint })
}

impl Db {
    pub async fn token(&self, hash: &[u8], now: DateTime<Utc>) -> Result<Option<Token>, Trouble> {
        self.on(async |client: &mut Object| {
            let row = client.query_opt(TOKEN, &[&hash]).await?;
            let token = |row: tokio_postgres::Row| {
                let expires_at: DateTime<Utc> = row.try_get(3)?;
                Ok(Token {
                    id: row.try_get(0)?,
                    role: row.try_get(1)?,
                    scope: row.try_get(2)?,
                    expired: expires_at <= now,
                })
            };
            row.map(token).transpose()
        })
        .await
    }

    pub async fn create_token(&self, role: &str, scope: &str, expires: &str) -> Result<String, Trouble> {
        let role = role_name(role)?;
        self.on(async |client: &mut Object| client.query_one(CREATE, &[&role, &scope, &expires]).await?.try_get(0))
            .await
    }

    /// Begins the transaction of a request. `limit` is the time limit of each statement.
    ///
    /// Both permits are released when the transaction ends. If the gateway must terminate the session, it releases
    /// `place` at once, but `of_role` only after the session has ended, because a running function may ignore the
    /// termination.
    pub async fn begin(
        &self,
        role: &str,
        limit: Duration,
        of_role: impl Send + Sync + 'static,
        place: impl Send + Sync + 'static,
    ) -> Result<Request, Trouble> {
        let client = Some(self.client().await?);
        let places: Option<[Box<dyn Send + Sync>; 2]> = Some([Box::new(of_role), Box::new(place)]);
        let until = Mutex::default();
        let mut request = Request { db: self.clone(), transaction: None, client, places, limit, until, closes: false };
        if let Some(client) = &request.client {
            client.batch_execute("BEGIN").await?;
            let row = client.query_one(TERMS, &[&in_ms(limit)]).await?;
            request.transaction = Some((row.try_get(5)?, row.try_get(6)?));
            client.query_one(ROLE, &[&role]).await?;
        }
        Ok(request)
    }

    /// Returns whether the session has ended already.
    async fn terminate(&self, process: i32, start: DateTime<Utc>) -> bool {
        match self.on(async |client: &mut Object| client.query(TERMINATE, &[&process, &start]).await).await {
            Ok(sessions) => sessions.is_empty(),
            Err(trouble) => {
                tracing::warn!(%trouble, process, "cannot terminate the session of a request");
                false
            }
        }
    }
}

/// A request that is dropped before the end of [`commit`](Self::commit) is rolled back. If the rollback takes too long,
/// the gateway terminates the session, because a role's function may ignore cancellations, and a COMMIT may wait for a
/// synchronous standby.
pub struct Request {
    db: Db,
    /// Process and start time that identify the transaction.
    transaction: Option<(i32, DateTime<Utc>)>,
    client: Option<Object>,
    places: Option<[Box<dyn Send + Sync>; 2]>,
    /// Time limit of each statement.
    limit: Duration,
    /// Time by which the running statement must have ended, with its [`GRACE`]. `None` if no statement is running.
    until: Mutex<Option<Instant>>,
    closes: bool,
}

impl Request {
    /// Closes the database session after this request, because a role's function may leave locks or settings behind.
    pub(super) const fn close_session(&mut self) {
        self.closes = true;
    }

    pub(super) async fn maybe(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>, Trouble> {
        Ok(self.rows(sql, values).await?.pop())
    }

    pub(super) async fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Trouble> {
        match &self.client {
            Some(client) => self.limited(client.query(sql, values)).await,
            None => Ok(Vec::new()), // unreachable: commit() takes the client and consumes the request
        }
    }

    pub(super) async fn rows_by_index(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Trouble> {
        let Some(client) = &self.client else { return Ok(Vec::new()) };
        client.batch_execute(BY_INDEX).await?;
        let rows = self.limited(client.query(sql, values)).await?;
        client.batch_execute(AS_USUAL).await?;
        Ok(rows)
    }

    /// Gives up if a role's function ignores its cancellation. Dropping the request then terminates its session.
    async fn limited<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        let until = Instant::now() + self.limit + GRACE;
        self.set_until(Some(until));
        if let Ok(done) = tokio::time::timeout_at(until, statement).await {
            self.set_until(None);
            return Ok(done?);
        }
        let message = format!("a statement did not end within {GRACE:?} after its time limit of {:?}", self.limit);
        Err(Trouble::Refused { sqlstate: "57014".into(), message, hint: None })
    }

    fn set_until(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    pub async fn commit(mut self) -> Result<(), Trouble> {
        if let Some(client) = &self.client {
            client.batch_execute("COMMIT").await?;
        }
        self.client = None; // returns the connection to the pool
        Ok(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            let (places, closes) = (self.places.take(), self.closes);
            let (db, transaction) = (self.db.clone(), self.transaction.take());
            let until = *self.until.get_mut().unwrap_or_else(PoisonError::into_inner);
            // A statement that still runs gets only the rest of its time, because its request keeps a place until it ends.
            let left = until.map_or(self.limit + GRACE, |until| until.saturating_duration_since(Instant::now()));
            let undo = UNDO.min(left);
            tokio::spawn(async move {
                let undone = tokio::time::timeout(undo, client.batch_execute("ROLLBACK")).await;
                if closes || !matches!(undone, Ok(Ok(()))) {
                    drop(Object::take(client));
                }
                if let (Err(_), Some((process, start))) = (undone, transaction) {
                    let mut is_gone = db.terminate(process, start).await;
                    let of_role = places.map(|[of_role, _]| of_role);
                    while !is_gone {
                        tokio::time::sleep(AGAIN).await;
                        is_gone = db.terminate(process, start).await;
                    }
                    drop(of_role);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_statement_without_an_acknowledgement_ends_before_its_patience() {
        let nowhere = "postgresql://nobody@127.0.0.1:1/none".parse().unwrap();
        let db = Db::new(nowhere, "t", 1, rustls::RootCertStore::empty()).unwrap();
        let limit = db.config.get_tcp_user_timeout();
        assert!(limit.is_some_and(|limit| *limit < crate::db::PATIENCE), "{limit:?}");
    }

    #[test]
    fn a_name_that_would_be_cut_is_no_role() {
        let long = "r".repeat(LONGEST_NAME);
        assert!(role_name(&long).is_ok());
        assert!(role_name(&format!("{long}x")).unwrap_err().is("42704"));
        assert!(role_name(&"ü".repeat(32)).is_err());
    }
}
