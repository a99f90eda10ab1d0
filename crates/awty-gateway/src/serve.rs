//! Invariant: after SIGTERM, the gateway waits at most `drain` for running calls. Unfinished calls are made again with
//! the same key after their leases expire.

use crate::api::Api;
use crate::config::{Config, Secrets};
use crate::db::Db;
use crate::files::Limits;
use crate::lease::{Worker, WorkerConfig, beat, book, claim};
use crate::metrics::Metrics;
use crate::net::call::Caller;
use crate::net::guard::{Guard, Shared, addresses};
use crate::net::pool;
use crate::net::resolve::Resolver;
use crate::net::tls;
use crate::notify::notify;
use crate::page::{self, Page};
use crate::{api, health, listen, scrape, secrets};
use axum::middleware::from_fn;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Connections of each pool. Each kind of statement has its own pool, so that one kind does not delay the others.
const OF_CLAIMS: usize = 2;
const OF_ANSWERS: usize = 2;
const OF_REQUESTS: usize = api::CHANGES + api::READS;

const SHRINK: Duration = Duration::from_secs(10);

const GIVE_BACK: Duration = Duration::from_secs(5);

/// Serves until `stop` completes, and then until the running calls end. If `now` completes meanwhile, returns at once.
///
/// The listener of clients runs on the first runtime of `listeners`, and that of metrics on the second.
pub async fn serve(
    config: Config,
    [clients, scrapers]: [&Handle; 2],
    stop: impl Future<Output = ()>,
    now: impl Future<Output = ()>,
) -> Result<(), String> {
    let limits = Limits {
        calls: config.max_in_flight,
        idle: pool::MOST,
        clients: listen::MOST,
        listeners: 1 + usize::from(config.listen_metrics.is_some()),
    };
    let limits = limits.fitted();
    let master_key = secrets::read(&config.credentials)?;
    let roots = tls::roots(&config.extra_roots)?;
    let connections = |size| Db::new(config.database.clone(), &config.name, size, roots.clone());
    let (db, answers_db, requests_db) = (connections(OF_CLAIMS)?, connections(OF_ANSWERS)?, connections(OF_REQUESTS)?);
    let listen_tls = config.listen_tls.as_ref().map(|(certificate, key)| listen::tls(certificate, key)).transpose()?;
    let (listener, here) = bind(config.listen).await?;
    let of_metrics = match config.listen_metrics {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let all = [db.clone(), answers_db.clone(), requests_db.clone()];
    // Opens one connection in each of the three pools before any pool opens a second one, so that the gateway can work
    // with only three connections.
    match tokio::join!(db.standing(), answers_db.standing(), requests_db.standing()).0 {
        Ok(standing) if standing.too_mighty => {
            return Err(health::TOO_MIGHTY.into());
        }
        Ok(_) => {}
        Err(trouble) => tracing::warn!(%trouble, "starting without the database"),
    }
    let also = of_metrics.as_ref().map(|(_, address)| *address);
    let own = [vec![here], also.into_iter().collect(), db.addresses().await].concat();
    let guard = Shared::from(Guard {
        allowed: config.allow_networks,
        denied: config.deny_networks,
        allow_localhost: config.allow_localhost,
        own,
        here: addresses(),
    });
    let secrets = Arc::new(Secrets { credentials: config.credentials, grants: config.grants });
    let api_config = api::ApiConfig {
        name: config.name.clone(),
        master_key: master_key.clone(),
        secrets: secrets.clone(),
        min_period: config.min_period,
        max_period: config.max_period,
        timeout: config.timeout,
    };
    let metrics = Arc::new(Metrics::default());
    let api = Api::new(requests_db.clone(), guard.clone(), metrics.clone(), api_config);
    let secure = config.behind_proxy || listen_tls.is_some();
    let (page_api, page_metrics) = (api.clone(), metrics.clone());
    let caller = Caller::new(guard, Resolver::of_system()?, tls::config(roots)?).keeping(limits.idle);
    let worker_config = WorkerConfig {
        name: config.name.clone(),
        master_key,
        secrets,
        timeout: config.timeout,
        max_timeout: config.max_timeout,
        max_in_flight: limits.calls,
    };
    let (stopper, stopping) = watch::channel(false);
    let (worker, answers) = Worker::new([db, answers_db, requests_db], caller, metrics, worker_config, stopping);
    let mut claims = tokio::spawn(claim(worker.clone()));
    let calls = api::router(api);
    let page = Page {
        api: page_api,
        calls: calls.clone(),
        worker: worker.clone(),
        metrics: page_metrics,
        name: config.name.clone(),
        started: crate::clock::now(),
        secure,
    };
    let mut router = calls.merge(page::router(page)).merge(health::router(worker.clone()));
    // With their own listener, these routes answer even if clients hold all connections of the main listener.
    let figures = scrape::router(worker.clone());
    let mut parts = JoinSet::new();
    parts.spawn(beat(worker.clone()));
    parts.spawn(book(worker.clone(), answers));
    parts.spawn(worker.caller.sweeps());
    parts.spawn(shrink(all));
    parts.spawn(health::watch(worker.clone()));
    // Behind a proxy, all clients have the proxy's address, so the number of connections per address is not limited.
    let of_peer = if config.behind_proxy { usize::MAX } else { listen::OF_PEER.min(limits.clients.div_ceil(10)) };
    match of_metrics {
        Some((listener, _)) => {
            let figures = figures.merge(health::router(worker.clone()));
            let listening = listen::listen(listener, listen_tls.clone(), figures, limits.clients, of_peer);
            drop(parts.spawn_on(listening, scrapers));
        }
        None => router = router.merge(figures),
    }
    router = router.layer(from_fn(page::unknown));
    parts.spawn_on(listen::listen(listener, listen_tls, router, limits.clients, of_peer), clients);
    tracing::info!(name = config.name, listen = %here, metrics = %also.unwrap_or(here), "started");
    notify("READY=1");
    let ended = tokio::select! {
        () = stop => None,
        ended = &mut claims => Some(ended),
        ended = parts.join_next() => ended,
    };
    if let Some(ended) = ended {
        let why = ended.err().map_or("it stopped without an error".to_owned(), |error| error.to_string());
        tracing::error!(why, "a part of the gateway has ended");
        return Err(format!("a part of the gateway has ended: {why}"));
    }
    notify("STOPPING=1");
    tracing::info!(in_flight = worker.in_flight(), "stopping");
    let _ = stopper.send(true); // cannot fail, because the worker has a receiver
    let drained = async {
        let until = Instant::now() + config.drain.std();
        let _ = tokio::time::timeout_at(until, claims).await;
        let _ = tokio::time::timeout_at(until + GIVE_BACK, worker.give_back_unbegun()).await; // leases that are not given back expire
        while worker.in_flight() > 0 && Instant::now() < until {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = drained => {}
        () = now => tracing::warn!("stopped at once"),
    }
    tracing::info!(left = worker.in_flight(), "stopped");
    Ok(())
}

async fn shrink(all: [Db; 3]) {
    loop {
        sleep(SHRINK).await;
        all.iter().for_each(Db::shrink);
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let here = listener.local_addr()?;
        Ok((listener, here))
    };
    bound.await.map_err(|error: std::io::Error| format!("cannot listen on {address}: {error}"))
}
