//! One request of the API is one transaction with the rights of its token's role; row security decides.

use super::{Db, PATIENCE, Trouble};
use chrono::{DateTime, Utc};
use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Whose request it is.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// With whose rights.
    pub role: String,
    /// `read`, `write` or `admin`.
    pub scope: String,
    /// It is no good any more.
    pub expired: bool,
}

const TOKEN: &str = "SELECT t.id, t.role::text, t.scope, t.expires_at FROM awty_http_internal.token_of($1) AS t";
/// Without JIT, which compiles for seconds what runs for milliseconds where tables were never analyzed.
const TERMS: &str =
    "SELECT pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('statement_timeout', '10s', true),
    pg_catalog.set_config('jit', 'off', true)";
const CREATE: &str = "SELECT awty_http.create_token($1::text::name, $2, $3::text::interval)";
const ROLE: &str = "SELECT pg_catalog.set_config('role', $1, true)";

impl Db {
    /// Whose token that is, by the hash of it; its last use is noted.
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

    /// Makes a token, which is shown this once only.
    pub async fn create_token(&self, role: &str, scope: &str, expires: &str) -> Result<String, Trouble> {
        self.on(async |client: &mut Object| client.query_one(CREATE, &[&role, &scope, &expires]).await?.try_get(0))
            .await
    }

    /// Begins the transaction of a request, as that role.
    pub async fn begin(&self, role: &str) -> Result<Request, Trouble> {
        let request = Request { client: Some(self.client().await?) };
        if let Some(client) = &request.client {
            client.batch_execute("BEGIN").await?;
            client.query_one(TERMS, &[]).await?;
            client.query_one(ROLE, &[&role]).await?;
        }
        Ok(request)
    }
}

/// The transaction of a request; without [`commit`](Self::commit) it has never been.
pub struct Request {
    client: Option<Object>,
}

impl Request {
    /// One row, or none.
    pub(super) async fn maybe(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>, Trouble> {
        Ok(self.rows(sql, values).await?.pop())
    }

    /// All rows.
    pub(super) async fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Trouble> {
        match &self.client {
            Some(client) => Ok(client.query(sql, values).await?),
            None => Ok(Vec::new()), // only commit() takes it, and takes the request with it
        }
    }

    /// Makes it lasting.
    pub async fn commit(mut self) -> Result<(), Trouble> {
        if let Some(client) = self.client.take() {
            let done = client.batch_execute("COMMIT").await;
            if done.is_err() {
                drop(Object::take(client));
            }
            done?;
        }
        Ok(())
    }
}

impl Drop for Request {
    /// A connection goes back without a transaction, or not at all.
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            tokio::spawn(async move {
                if !matches!(tokio::time::timeout(PATIENCE, client.batch_execute("ROLLBACK")).await, Ok(Ok(()))) {
                    drop(Object::take(client));
                }
            });
        }
    }
}
