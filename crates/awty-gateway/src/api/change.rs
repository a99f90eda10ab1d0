use super::auth::Asker;
use super::body::{self, Body};
use super::problem::Problem;
use super::rules::{another_period, changed, has_period, judged, not_own, there};
use super::show;
use super::state::Api;
use crate::db::Request;
use crate::db::changes;
use crate::db::schedules::{self as db, Row};
use crate::duration::Length;
use axum::http::HeaderMap;
use serde_json::Value;

pub(super) enum Change {
    /// Ends the schedule. If a period is given and the schedule has another period, the request fails.
    End(Option<Length>),
    Run,
    /// The note is read from the body.
    Pause(Body),
    Resume,
}

pub(super) async fn change(
    api: &Api,
    asker: &Asker,
    headers: &HeaderMap,
    id: &str,
    change: Change,
) -> Result<Option<Row>, Problem> {
    asker.may("write")?;
    let request = api.begin(asker).await?;
    let (row, mine) = judged(&request, id).await?;
    let row = there(row)?;
    if matches!(change, Change::End(Some(period)) if !has_period(&row, period)) {
        return Err(another_period());
    }
    if !mine || matches!(change, Change::End(_)) && !row.own {
        return Err(not_own());
    }
    if !show::matches(headers, Some(&row)) {
        return Err(changed());
    }
    match change {
        Change::End(_) => changes::unschedule(&request, id).await?,
        Change::Run => {
            runs(&request).await?;
            match row.fields.get("state").and_then(Value::as_str) {
                Some("paused" | "held") => return Err(still()),
                Some("ended") => {
                    return Err(Problem::new("precondition-failed", "The schedule has ended; PUT it again."));
                }
                _ => changes::run(&request, id).await?,
            }
        }
        Change::Pause(body) => {
            let mut fields = body::fields(headers, body)?;
            let note = fields.text("note");
            fields.done()?;
            changes::pause(&request, id, note.as_deref()).await?;
        }
        Change::Resume => changes::resume(&request, id).await?,
    }
    let row = db::one(&request, id).await?;
    request.commit().await?;
    Ok(row)
}

pub(super) fn still() -> Problem {
    Problem::new("precondition-failed", "The schedule is paused or held; resume it first.")
}

pub(super) async fn runs(request: &Request) -> Result<(), Problem> {
    if changes::held(request).await? {
        return Err(Problem::new("held-until-adopted", "The database is held; in it: SELECT awty.adopt();"));
    }
    Ok(())
}
