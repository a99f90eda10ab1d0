use crate::api::{Api, Room, Seen};
use crate::lease::Worker;
use crate::metrics::Metrics;
use axum::Router;
use chrono::{DateTime, Utc};
use std::sync::{Arc, OnceLock};

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

/// The signed-in role of a request, and the memory that its form has reserved. The page attaches this to each request,
/// and keeps it until the answer counts against the role's memory limit.
#[derive(Clone, Default)]
pub struct Visitor {
    pub role: Seen,
    pub form: Arc<OnceLock<Room>>,
}
