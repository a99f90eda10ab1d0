//! Invariant: labels never contain a URI, an entity or a token, so that the number of time series is bounded.

use crate::deliver::verdict::Verdict;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Delivery {
    outcome: &'static str,
    status_class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lease {
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

pub struct Metrics {
    registry: Registry,
    deliveries: Family<Delivery, Counter>,
    leases: Family<Lease, Counter>,
    retries: Counter,
    set_aside: Counter,
    secrets_refused: Counter,
    blocked: Counter,
    opened: Counter,
    implausible: Counter,
    delivery_seconds: Histogram,
    lateness_seconds: Histogram,
    claim_seconds: Histogram,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histogram,
    in_flight: Gauge,
    last_claim: Gauge,
}

const STEPS: [f64; 13] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 900.0];

fn outcome(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done { .. } => "ok",
        Verdict::Failed(failed) if failed.fault == "dropped" => "dropped",
        Verdict::Failed(_) => "failed",
    }
}

fn class(status: Option<u64>) -> &'static str {
    match status {
        Some(200..300) => "2xx",
        Some(300..400) => "3xx",
        Some(400..500) => "4xx",
        Some(500..600) => "5xx",
        Some(_) => "other",
        None => "none",
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("awty_gateway");
        let histogram = || Histogram::new(STEPS);
        let metrics = Metrics {
            deliveries: Family::default(),
            leases: Family::default(),
            retries: Counter::default(),
            set_aside: Counter::default(),
            secrets_refused: Counter::default(),
            blocked: Counter::default(),
            opened: Counter::default(),
            implausible: Counter::default(),
            delivery_seconds: histogram(),
            lateness_seconds: histogram(),
            claim_seconds: histogram(),
            requests: Family::default(),
            request_seconds: histogram(),
            in_flight: Gauge::default(),
            last_claim: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("deliveries", "Calls that ended", metrics.deliveries.clone());
        registry.register("leases", "What became of leases, in awty's words", metrics.leases.clone());
        registry.register("retries", "Calls that failed and are made again", metrics.retries.clone());
        let aside = "Jobs whose claims failed and that are left alone for a while";
        registry.register("jobs_set_aside", aside, metrics.set_aside.clone());
        let refused = "References to secrets that may not go to the origin of their call";
        registry.register("secrets_refused", refused, metrics.secrets_refused.clone());
        registry.register("blocked_addresses", "Calls to addresses that are not allowed", metrics.blocked.clone());
        registry.register("breaker_opened", "Breakers of targets that opened", metrics.opened.clone());
        registry.register("implausible_values", "Values that no clock explains", metrics.implausible.clone());
        registry.register("delivery_duration_seconds", "How long calls took", metrics.delivery_seconds.clone());
        registry.register("lateness_seconds", "Start of a call minus its slot", metrics.lateness_seconds.clone());
        registry.register("claim_duration_seconds", "How long claims took", metrics.claim_seconds.clone());
        registry.register("http_requests", "Requests of the API", metrics.requests.clone());
        registry.register("http_request_duration_seconds", "How long they took", metrics.request_seconds.clone());
        registry.register("in_flight", "Calls now, and answers that are not booked yet", metrics.in_flight.clone());
        registry.register(
            "last_claim_timestamp_seconds",
            "When awty last answered a claim, or that there is nothing to claim",
            metrics.last_claim.clone(),
        );
        // The series begins with 0, because Prometheus does not count the first event of a new series as an increase.
        drop(metrics.leases.get_or_create(&Lease { result: "refused".into() }));
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("build_info", "The version of this gateway", build);
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    pub fn nothing(&self) {
        self.last_claim.set(crate::clock::now().timestamp());
    }

    pub fn claim(&self, took: Duration, leases: usize) {
        self.claim_seconds.observe(took.as_secs_f64());
        self.last_claim.set(crate::clock::now().timestamp());
        if leases > 0 {
            let result = Lease { result: "claimed".into() };
            self.leases.get_or_create(&result).inc_by(leases as u64);
        }
    }

    pub fn lease(&self, word: &str) {
        self.leases.get_or_create(&Lease { result: word.into() }).inc();
    }

    pub fn delivery(&self, verdict: &Verdict, status: Option<u64>, took: Duration, lateness: f64) {
        let labels = Delivery { outcome: outcome(verdict), status_class: class(status) };
        self.deliveries.get_or_create(&labels).inc();
        self.delivery_seconds.observe(took.as_secs_f64());
        if (0.0..366.0 * 86_400.0).contains(&lateness) {
            self.lateness_seconds.observe(lateness);
        } else {
            self.implausible.inc();
        }
        if matches!(verdict, Verdict::Failed(failed) if failed.retry_at.is_some()) {
            self.retries.inc();
        }
    }

    pub fn set_aside(&self) {
        self.set_aside.inc();
    }

    pub fn secret_refused(&self) {
        self.secrets_refused.inc();
    }

    pub fn blocked(&self) {
        self.blocked.inc();
    }

    pub fn opened(&self, count: u64) {
        self.opened.inc_by(count);
    }

    /// `route` is a pattern such as `/v1/schedules/{id}`, and not the path of the request.
    pub fn request(&self, route: &str, method: &str, status: u16, took: Duration) {
        let known = ["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS"];
        let method = known.into_iter().find(|known| *known == method).unwrap_or("other");
        self.requests.get_or_create(&RequestLabels { route: route.to_owned(), method, status }).inc();
        self.request_seconds.observe(took.as_secs_f64());
    }

    pub fn text(&self, in_flight: usize) -> String {
        self.in_flight.set(i64::try_from(in_flight).unwrap_or(i64::MAX));
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(), // writing to a String cannot fail
        }
    }
}
