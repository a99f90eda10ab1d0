//! State shared by all requests of the API.

use super::permits::Permits;
use super::rates::Rates;
use crate::db::Db;
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::guard::Shared;
use crate::secrets::Secrets;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) const LARGEST_BODY: usize = 512 * 1024;
/// A body or answer of at most this size needs no room, so that large ones do not hold up small ones.
pub(super) const SMALL: usize = 16 * 1024;
/// KiB of bodies in memory at a time. A request waits until its body has room.
pub const ROOM: usize = 64 * 1024;

/// Configuration of the API.
pub struct ApiConfig {
    /// Name of this gateway.
    pub name: String,
    /// Key from which the signing keys are derived.
    pub master_key: Vec<u8>,
    /// Secrets of the tenants.
    pub secrets: Arc<Secrets>,
    /// Shortest period; by default one slot.
    pub min_period: Option<Length>,
    /// Longest period.
    pub max_period: Length,
    /// Timeout of calls whose schedule has none.
    pub timeout: Length,
}

/// State shared by all requests.
pub struct Api {
    pub(super) db: Db,
    pub(super) rates: Rates,
    pub(super) permits: Permits,
    pub(super) bodies: Semaphore,
    pub(super) guard: Shared,
    pub(super) metrics: Arc<Metrics>,
    pub(super) config: ApiConfig,
}

impl Api {
    /// Creates the state of the whole program.
    pub fn new(db: Db, guard: impl Into<Shared>, metrics: Arc<Metrics>, config: ApiConfig) -> Arc<Self> {
        let (rates, permits, bodies) = (Rates::default(), Permits::default(), Semaphore::new(ROOM));
        Arc::new(Api { db, rates, permits, bodies, guard: guard.into(), metrics, config })
    }
}
