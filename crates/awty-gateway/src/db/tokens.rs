use super::calls::{Item, item};
use super::requests::role_name;
use super::{Request, Trouble};
use serde_json::Value;

macro_rules! tokens {
    () => {
        "SELECT pg_catalog.jsonb_build_object('id', t.id, 'role', t.role::text, 'scope', t.scope, 'expires_at', t.expires_at,
            'created_by', t.created_by::text, 'created_at', t.created_at, 'last_used_at', t.last_used_at), ARRAY[t.id::text]
        FROM awty_http.token AS t "
    };
}

const LIST: &str = concat!(tokens!(), "WHERE t.id > coalesce($1::bigint, 0) ORDER BY t.id LIMIT $2");
const ONE: &str = concat!(tokens!(), "WHERE t.id = $1");
const CREATE: &str = "SELECT awty_http.create_token(coalesce($1::text::name, CURRENT_USER), $2, $3::text::interval)";
const NEW: &str = concat!(
    tokens!(),
    "WHERE t.created_at = pg_catalog.now() AND pg_catalog.pg_get_userbyid(t.created_by) = CURRENT_USER ORDER BY t.id DESC LIMIT 1"
);
const DROP: &str = "SELECT awty_http.drop_token($1)";

pub async fn list(request: &Request, after: Option<i64>, limit: i64) -> Result<Vec<Item>, Trouble> {
    request.rows(LIST, &[&after, &limit]).await?.iter().map(item).collect()
}

pub async fn one(request: &Request, id: i64) -> Result<Option<Value>, Trouble> {
    Ok(request.maybe(ONE, &[&id]).await?.map(|row| row.try_get(0)).transpose()?)
}

pub async fn create(
    request: &Request,
    role: Option<&str>,
    scope: &str,
    expires: &str,
) -> Result<(String, Value), Trouble> {
    let role = role.map(role_name).transpose()?;
    let made = request.maybe(CREATE, &[&role, &scope, &expires]).await?;
    let token = made.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    let kept = request.maybe(NEW, &[]).await?;
    Ok((token, kept.map(|row| row.try_get(0)).transpose()?.unwrap_or_default()))
}

pub async fn delete(request: &Request, id: i64) -> Result<(), Trouble> {
    request.maybe(DROP, &[&id]).await.map(drop)
}
