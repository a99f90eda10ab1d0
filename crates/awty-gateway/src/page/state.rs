use crate::api::Api;
use crate::lease::Worker;
use crate::metrics::Metrics;
use axum::Router;
use chrono::{DateTime, Utc};
use std::sync::Arc;

pub struct Page {
    pub api: Arc<Api>,
    /// The API's routes, which the page calls within the process.
    pub calls: Router,
    pub worker: Arc<Worker>,
    pub metrics: Arc<Metrics>,
    pub name: String,
    pub started: DateTime<Utc>,
    pub secure: bool,
}

/// Name of the signed-in role. The page attaches the name to requests and answers.
#[derive(Clone)]
pub struct OfRole(pub String);
