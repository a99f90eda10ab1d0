use super::permits::Permits;
use super::rates::Rates;
use crate::config::Secrets;
use crate::db::Db;
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::guard::Shared;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Request bodies and answers of at most this size do not count against the memory limits, so they never wait for
/// memory.
pub(super) const SMALL: usize = 16 * 1024;
/// Maximum memory of all large request bodies together, in KiB.
pub const ROOM: usize = 64 * 1024;

/// Maximum number of tokens that are looked up at a time.
const LOOKUPS: usize = 2;

pub struct ApiConfig {
    pub name: String,
    pub master_key: Vec<u8>,
    pub secrets: Arc<Secrets>,
    pub min_period: Option<Length>,
    pub max_period: Length,
    pub timeout: Length,
}

pub struct Api {
    pub(super) db: Db,
    pub(super) lookups: Arc<Semaphore>,
    pub(super) rates: Rates,
    pub(super) permits: Permits,
    pub(super) bodies: Semaphore,
    pub(super) guard: Shared,
    pub(super) metrics: Arc<Metrics>,
    pub(super) config: ApiConfig,
}

impl Api {
    pub fn new(db: Db, guard: impl Into<Shared>, metrics: Arc<Metrics>, config: ApiConfig) -> Arc<Self> {
        let lookups = Arc::new(Semaphore::new(LOOKUPS));
        let (rates, permits, bodies) = (Rates::default(), Permits::default(), Semaphore::new(ROOM));
        Arc::new(Api { db, lookups, rates, permits, bodies, guard: guard.into(), metrics, config })
    }
}

/// Returns an API whose database cannot be reached.
#[cfg(test)]
pub fn offline() -> Arc<Api> {
    let nowhere = "postgresql://nobody@127.0.0.1:1/none".parse().unwrap();
    let db = Db::new(nowhere, "t", 1, rustls::RootCertStore::empty()).unwrap();
    let (min_period, max_period, timeout) = (None, Length::seconds(1), Length::seconds(1));
    let (master_key, secrets) = (Vec::new(), Arc::default());
    let config = ApiConfig { name: "t".into(), master_key, secrets, min_period, max_period, timeout };
    Api::new(db, crate::net::guard::Guard::default(), Arc::new(Metrics::default()), config)
}
