use super::answer::Called;
use super::fail::Fail;
use super::form::{Form, is_local};
use super::rights;
use super::session;
use super::state::{Page, Visitor};
use crate::api::Asker;
use crate::db::{Request, views};
use axum::body::{Body, to_bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Method, header};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

const LARGEST_ANSWER: usize = 16 * 1024 * 1024;

pub struct Visit {
    pub page: Arc<Page>,
    pub asker: Asker,
    pub place: String,
    pub query: Form,
    token: String,
    late: AtomicI64,
    micros: AtomicU64,
}

pub struct Reading {
    request: Request,
    begun: Instant,
}

impl std::ops::Deref for Reading {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}

impl FromRequestParts<Arc<Page>> for Visit {
    type Rejection = Fail;

    async fn from_request_parts(parts: &mut Parts, page: &Arc<Page>) -> Result<Self, Fail> {
        let place = parts.uri.path_and_query().map_or("/", |place| place.as_str()).to_owned();
        let next = || Fail::SignIn(if parts.method.is_safe() && is_local(&place) { place.clone() } else { "/".into() });
        let Some(token) = session::token(&parts.headers, page.secure) else {
            let site = parts.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
            return Err(if parts.method == Method::GET && site == Some("cross-site") { Fail::Again } else { next() });
        };
        let begun = Instant::now();
        let asker = page.api.asker(&token, !parts.method.is_safe()).await;
        let asker = asker.map_err(|problem| if problem.status() == 401 { next() } else { problem.into() })?;
        let gateway = page.worker.view().standing.map(|standing| standing.role).unwrap_or_default();
        rights::are(asker.role(), &gateway);
        if let Some(visitor) = parts.extensions.get::<Visitor>() {
            visitor.role.is(asker.role());
        }
        let query = Form::of(parts.uri.query().unwrap_or_default().as_bytes());
        let (page, late, micros) = (page.clone(), AtomicI64::new(0), AtomicU64::new(0));
        let visit = Visit { page, asker, place, query, token, late, micros };
        visit.spent(begun);
        Ok(visit)
    }
}

impl Visit {
    fn spent(&self, begun: Instant) {
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn millis(&self) -> u64 {
        self.micros.load(Ordering::Relaxed).div_ceil(1_000)
    }

    /// Requires [`Self::read`] first.
    pub fn late(&self) -> i64 {
        self.late.load(Ordering::Relaxed)
    }

    pub fn reloads(&self) -> bool {
        self.query.get("reload").is_some()
    }

    pub fn writes(&self) -> bool {
        self.asker.may("write").is_ok()
    }

    /// Also counts the late rows, because each view's title shows their number.
    pub async fn read(&self) -> Result<Reading, Fail> {
        let reading = self.change().await?;
        self.late.store(views::late_count(&reading).await?, Ordering::Relaxed);
        Ok(reading)
    }

    pub async fn change(&self) -> Result<Reading, Fail> {
        let begun = Instant::now();
        Ok(Reading { request: self.page.api.begin(&self.asker).await?, begun })
    }

    pub async fn end(&self, reading: Reading) -> Result<(), Fail> {
        reading.request.commit().await?;
        self.spent(reading.begun);
        Ok(())
    }

    pub async fn dry_run(&self, of: (&str, &str, &str)) -> Result<Value, Fail> {
        let Reading { request, begun } = self.change().await?;
        let tried = views::dry_run(request, of).await?;
        self.spent(begun);
        Ok(tried)
    }

    /// Counts the late rows for the page's title, in views that get all other content from the API.
    pub async fn count(&self) -> Result<(), Fail> {
        self.end(self.read().await?).await
    }

    pub async fn get(&self, path: &str) -> Result<Called, Fail> {
        self.ask(Method::GET, path, None, None).await
    }

    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Called, Fail> {
        self.ask(method, path, body.map(|body| body.to_string()), None).await
    }

    pub async fn put(&self, path: &str, body: String, version: Option<&str>) -> Result<Called, Fail> {
        self.ask(Method::PUT, path, Some(body), version).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>, tag: Option<&str>) -> Result<Called, Fail> {
        let begun = Instant::now();
        let mut request = axum::http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(tag) = tag {
            request = request.header(header::IF_MATCH, tag);
        }
        let request = request.body(body.map_or_else(Body::empty, Body::from));
        let request = request.map_err(|_| Fail::not_found())?; // the path or the version has an invalid character
        let Ok(response) = TowerToHyperService::new(self.page.calls.clone()).call(request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, LARGEST_ANSWER).await;
        let bytes = bytes.map_err(|_| Fail::Refused(500, "The answer of the API is too large.".into()))?;
        self.spent(begun);
        let called = Called::of(parts.headers, &bytes);
        let called =
            called.map_err(|error| Fail::Refused(500, format!("The answer of the API is not JSON: {error}.")))?;
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return Err(Fail::Problem(parts.status.as_u16(), called.json));
        }
        Ok(called)
    }
}
