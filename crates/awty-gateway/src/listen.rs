//! Connections of clients.
//!
//! Invariant: their number is bounded, and so is what one of them takes before its request is there.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Connections at once; more wait.
const MOST: usize = 1_000;
/// Bytes of a request's head.
const LARGEST_HEAD: usize = 16 * 1024;
/// For a request's head, from the end of the one before.
const LONGEST_HEAD: Duration = Duration::from_secs(10);

/// Answers requests until the program ends.
pub async fn listen(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(MOST));
    while let Ok(place) = places.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Such as too many open files: what is open ends before long.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD).max_buf_size(LARGEST_HEAD);
            // How it ended is the client's matter.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}
