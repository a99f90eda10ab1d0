//! Serves `/livez` and `/readyz`, and logs why the gateway is not ready. Answers never wait for the database.

use crate::lease::{View, Worker};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The gateway is not ready if no round of its claim loop has ended within 15 s or three slots (`awty.slot`), whichever
/// is longer.
const LONGEST_TURN: (u32, Duration) = (3, Duration::from_secs(15));

/// Time after which the gateway reports that it is not ready if it runs its maximum number of calls and no call ends.
const HANGS: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_secs(1);

pub const TOO_MIGHTY: &str =
    "the gateway's role is above row security; give it a role that is neither superuser nor BYPASSRLS";

pub fn router(worker: Arc<Worker>) -> Router {
    Router::new().route("/livez", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(worker)
}

pub fn reasons(worker: &Worker) -> Vec<String> {
    let view = worker.view();
    let mut reasons = Vec::new();
    if *worker.stopping.borrow() {
        reasons.push("it is stopping".to_owned());
    }
    reasons.extend(view.trouble().map(str::to_owned));
    reasons.extend(lasting_reasons(worker, view));
    reasons
}

/// Returns the lasting reasons why the gateway is not ready. A stop of the gateway and a failed database request are
/// not lasting.
fn lasting_reasons(worker: &Worker, view: View) -> Vec<String> {
    let mut reasons = Vec::new();
    let slot = view.standing.as_ref().and_then(|standing| standing.slot).unwrap_or_default();
    match view.standing {
        Some(standing) => {
            if standing.too_mighty {
                reasons.push(TOO_MIGHTY.into());
            }
            if standing.standby {
                reasons.push("the database is a standby; it accepts no claims until it is promoted".into());
            }
            if standing.is_off {
                reasons
                    .push("awty is switched off; ALTER SYSTEM SET awty.enabled = on; SELECT pg_reload_conf();".into());
            }
            match &standing.version {
                Some(version) if fits(version) => {}
                Some(version) => {
                    reasons.push(format!("awty {version} is older than this gateway; ALTER EXTENSION awty UPDATE;"))
                }
                None => reasons.push("the extension awty is not installed; CREATE EXTENSION awty;".into()),
            }
            if standing.version.is_some() && !standing.has_http {
                reasons.push("the extension awty_http is not installed; CREATE EXTENSION awty_http;".into());
            }
            if let Some(refusal) = &view.refusal {
                reasons.push(format!("no job can be claimed: {refusal}"));
            } else if standing.version.is_some() && standing.has_http && view.jobs.is_empty() && !standing.too_mighty {
                reasons.push(format!(
                    "its role {role} is a member of no tenant's role; SELECT awty_http.add_tenant('<role>'); GRANT <role> TO {role};",
                    role = standing.role
                ));
            }
        }
        None => reasons.push("the database has not answered yet".into()),
    }
    if let Some(full) = full_of_hanging_calls(worker.is_full(), view.last_turn.map(|at| at.elapsed())) {
        reasons.push(full);
    }
    if !worker.is_full() && view.last_turn.is_none_or(|at| at.elapsed() > LONGEST_TURN.1.max(slot * LONGEST_TURN.0)) {
        reasons.push("nothing has been claimed for a while".into());
    }
    reasons
}

pub async fn watch(worker: Arc<Worker>) {
    let (mut before, mut logged) = (BTreeSet::new(), BTreeSet::new());
    loop {
        sleep(LOOK).await;
        if *worker.stopping.borrow() {
            return pending().await;
        }
        let now = BTreeSet::from_iter(lasting_reasons(&worker, worker.view()));
        logged.retain(|reason| now.contains(reason));
        // Logs a reason only if it is found twice in a row, because a gateway that has just started is not ready before
        // its first claim.
        for reason in now.intersection(&before) {
            if logged.insert(reason.clone()) {
                tracing::warn!(reason, "not ready");
            }
        }
        if now.is_empty() && !before.is_empty() && reasons(&worker).is_empty() {
            tracing::info!("ready");
        }
        before = now;
    }
}

/// Returns a warning if the gateway runs its maximum number of calls and no call has ended for [`HANGS`]. A full
/// gateway's claim loop waits until a call ends, so `since_turn` shows how long no call has ended.
fn full_of_hanging_calls(is_full: bool, since_turn: Option<Duration>) -> Option<String> {
    let hangs = is_full && since_turn.is_some_and(|since| since > HANGS);
    hangs.then(|| {
        format!(
            "it is full of calls that hang: none has ended for {} s; lower their timeouts or raise max_in_flight",
            HANGS.as_secs()
        )
    })
}

fn fits(version: &str) -> bool {
    let number = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    number(version) >= number(env!("CARGO_PKG_VERSION"))
}

async fn ready(State(worker): State<Arc<Worker>>) -> Response {
    let reasons = reasons(&worker);
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": reasons.is_empty(), "name": worker.name, "reasons": reasons}))).into_response()
}

#[cfg(test)]
mod tests {
    use super::{HANGS, fits, full_of_hanging_calls};
    use std::time::Duration;

    #[test]
    fn a_gateway_that_is_full_of_calls_that_hang_is_not_ready() {
        let (longer, shorter) = (Some(HANGS + Duration::from_secs(1)), Some(HANGS));
        assert!(full_of_hanging_calls(true, longer).is_some_and(|why| why.contains("full of calls that hang")));
        assert_eq!(full_of_hanging_calls(true, shorter), None);
        assert_eq!(full_of_hanging_calls(false, longer), None);
        assert_eq!(full_of_hanging_calls(true, None), None);
    }

    #[test]
    fn an_older_extension_does_not_fit() {
        assert!(fits("0.1") && fits("0.2") && fits("1.0") && fits("0.10"));
        assert!(!fits("0.0") && !fits("") && !fits("x"));
    }
}
