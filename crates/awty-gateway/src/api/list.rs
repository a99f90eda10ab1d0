//! `GET /v1/schedules`: pages, filters, or one by its URI.

use super::Api;
use super::auth::Asker;
use super::problem::{Fault, Problem};
use super::rules::{Answer, read, there};
use super::show;
use crate::db::schedules::{self as db, Filter};
use crate::uri::Endpoint;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a list is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub(super) uri: Option<String>,
    state: Option<String>,
    origin: Option<String>,
    label: Option<String>,
    q: Option<String>,
    failing: Option<bool>,
    limit: Option<i64>,
    after: Option<String>,
}

/// The query of a request, or why it cannot be read.
pub type Listed = Result<Query<Asked>, axum::extract::rejection::QueryRejection>;

/// The query, read.
pub(super) fn asked(query: Listed) -> Result<Asked, Problem> {
    query.map(|Query(asked)| asked).map_err(|error| Problem::new("invalid-field", error.body_text()))
}

/// `GET`
pub async fn list(State(api): State<Arc<Api>>, asker: Asker, headers: HeaderMap, query: Listed) -> Answer {
    let asked = asked(query)?;
    if let Some(uri) = &asked.uri {
        let id = id_of(&api, &asker, uri).await?;
        return Ok(show::answer(&there(read(&api, &asker, &id).await?)?, StatusCode::OK, &headers));
    }
    let limit = asked.limit.unwrap_or(50);
    if !(1..=500).contains(&limit) {
        return Err(Problem::new("invalid-field", "limit lies between 1 and 500"));
    }
    let after = asked
        .after
        .as_deref()
        .map(|cursor| URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|id| String::from_utf8(id).ok()));
    let Some(after) = after.unwrap_or(Some(String::new())) else {
        return Err(Problem::new("invalid-field", "after is the cursor of a page before; leave it out to begin"));
    };
    let Asked { state, origin, label, q, failing, .. } = asked;
    let filter = Filter { state, origin, label, q, failing };
    let request = api.db.begin(asker.role()).await?;
    let mut rows = db::list(&request, &after, &filter, limit + 1).await?;
    request.commit().await?;
    let more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let items: Vec<Value> = rows.iter().map(show::fields).collect();
    let mut response = Json(json!({"items": items})).into_response();
    if let Some(last) = rows.last().filter(|_| more) {
        let cursor = URL_SAFE_NO_PAD.encode(&last.id);
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let texts = [("state", &filter.state), ("origin", &filter.origin), ("label", &filter.label), ("q", &filter.q)];
        for (name, text) in texts {
            query.extend_pairs(text.iter().map(|text| (name, text)));
        }
        query.extend_pairs(filter.failing.iter().map(|failing| ("failing", failing.to_string())));
        let query = query.append_pair("limit", &limit.to_string()).append_pair("after", &cursor).finish();
        if let Ok(link) = HeaderValue::from_str(&format!("</v1/schedules?{query}>; rel=\"next\"")) {
            response.headers_mut().insert(header::LINK, link);
        }
    }
    Ok(response)
}

/// The id of a URI for the asker's role.
pub(super) async fn id_of(api: &Api, asker: &Asker, uri: &str) -> Result<String, Problem> {
    let endpoint = Endpoint::parse(uri)
        .map_err(|reason| Problem::fields("malformed-uri", &[Fault { pointer: "/uri".into(), reason }]))?;
    let request = api.db.begin(asker.role()).await?;
    let id = db::id_of(&request, endpoint.as_str()).await?;
    request.commit().await?;
    Ok(id)
}
