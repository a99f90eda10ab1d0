use super::arguments::{Arguments, call};
use super::schedules::value;
use super::{Request, Trouble};

const LOCK: &str = "SELECT awty_http_internal.lock($1)";
const UNSCHEDULE: &str = "SELECT awty_http.unschedule(e.uri) FROM awty_http.endpoint AS e WHERE e.id = $1";
const RUN: &str =
    "SELECT awty.check_now(e.entity_name, e.entity_key, e.job) FROM awty_http.endpoint AS e WHERE e.id = $1";
const PAUSE: &str = "SELECT awty_http_internal.pause($1, $2)";
const RESUME: &str = "SELECT awty_http_internal.resume($1)";
const HELD: &str = "SELECT s.database_held FROM awty.status AS s";

pub async fn schedule(request: &Request, arguments: &Arguments) -> Result<(), Trouble> {
    call(request, "awty_http.schedule", arguments).await
}

pub async fn lock(request: &Request, id: &str) -> Result<bool, Trouble> {
    Ok(value::<Option<i64>>(request, LOCK, id).await?.flatten().is_some())
}

pub async fn unschedule(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(UNSCHEDULE, &[&id]).await.map(drop)
}

pub async fn run(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RUN, &[&id]).await.map(drop)
}

pub async fn pause(request: &Request, id: &str, note: Option<&str>) -> Result<(), Trouble> {
    request.maybe(PAUSE, &[&id, &note]).await.map(drop)
}

pub async fn resume(request: &Request, id: &str) -> Result<(), Trouble> {
    request.maybe(RESUME, &[&id]).await.map(drop)
}

/// Returns whether all checks of the database are held until `awty.adopt()`.
pub async fn held(request: &Request) -> Result<bool, Trouble> {
    let row = request.maybe(HELD, &[]).await?;
    Ok(row.map(|row| row.try_get::<_, Option<bool>>(0)).transpose()?.flatten().unwrap_or(false))
}
