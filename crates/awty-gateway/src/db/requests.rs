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

/// Asked before a request has its terms, so it names all that it needs.
const TOKEN: &str =
    "SELECT t.id, t.role::pg_catalog.text, t.scope, t.expires_at FROM awty_http_internal.token_of($1) AS t";
/// Names are found in pg_catalog alone: what a role has made itself would run with all that this session may become. Who locks rows for
/// long keeps no connection. Without JIT, which compiles for seconds what runs for milliseconds where tables were never analyzed.
const TERMS: &str = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
    pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('statement_timeout', '10s', true),
    pg_catalog.set_config('lock_timeout', '1s', true), pg_catalog.set_config('jit', 'off', true)";
/// As [`TOKEN`].
const CREATE: &str =
    "SELECT awty_http.create_token($1::pg_catalog.text::pg_catalog.name, $2, $3::pg_catalog.text::pg_catalog.interval)";
const ROLE: &str = "SELECT pg_catalog.set_config('role', $1, true)";

/// Bytes of the longest name.
const LONGEST_NAME: usize = 63;

/// A longer name would be cut, and be that of another role.
pub(super) fn role_name(role: &str) -> Result<&str, Trouble> {
    if role.len() <= LONGEST_NAME {
        return Ok(role);
    }
    let hint = Some(format!("A name has at most {LONGEST_NAME} bytes. SELECT rolname FROM pg_roles; lists the roles."));
    Err(Trouble::Refused { sqlstate: "42704".into(), message: format!("role \"{role}\" does not exist"), hint })
}

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
        let role = role_name(role)?;
        self.on(async |client: &mut Object| client.query_one(CREATE, &[&role, &scope, &expires]).await?.try_get(0))
            .await
    }

    /// Begins the transaction of a request, as that role. Its place is free again once the connection is.
    pub async fn begin(&self, role: &str, place: impl Send + Sync + 'static) -> Result<Request, Trouble> {
        let request = Request { client: Some(self.client().await?), place: Some(Box::new(place)) };
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
    place: Option<Box<dyn Send + Sync>>,
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
            let place = self.place.take();
            tokio::spawn(async move {
                if !matches!(tokio::time::timeout(PATIENCE, client.batch_execute("ROLLBACK")).await, Ok(Ok(()))) {
                    drop(Object::take(client));
                }
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_be_cut_is_no_role() {
        let long = "r".repeat(LONGEST_NAME);
        assert!(role_name(&long).is_ok());
        assert!(role_name(&format!("{long}x")).unwrap_err().is("42704"));
        // Bytes count, not characters.
        assert!(role_name(&"ü".repeat(32)).is_err());
    }
}
