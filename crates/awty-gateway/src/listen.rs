//! Limits the number of clients' connections, in total and for each peer, and the age of each connection.

mod peers;

pub use peers::OF_PEER;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use peers::Peers;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

pub const MOST: usize = 1_000;
const LARGEST_HEAD: usize = 16 * 1024;
/// Maximum duration of the TLS handshake, and of sending the head of a request.
const LONGEST_HEAD: Duration = Duration::from_secs(10);
/// How long a connection accepts requests, and how long it may then take to finish these requests.
const LIFE: (Duration, Duration) = (Duration::from_secs(120), Duration::from_secs(30));

/// Makes a runtime of one thread for a listener. Claims, calls and answers have other threads, so that TLS handshakes of
/// clients cannot delay these: the operating system shares the cores between the threads.
pub fn runtime(thread: &str) -> Result<Runtime, String> {
    let built = Builder::new_multi_thread().worker_threads(1).thread_name(thread).enable_all().build();
    built.map_err(|error| error.to_string())
}

pub fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, String> {
    let problem = |file: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let chain = CertificateDer::pem_file_iter(certificate).map_err(|error| problem(certificate, &error))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|error| problem(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| format!("TLS cannot start: {error}"))?;
    let config = versions.with_no_client_auth().with_single_cert(chain, secret);
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| problem(certificate, &error))?)))
}

pub async fn listen(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, most: usize, of_peer: usize) {
    let (places, peers) = (Arc::new(Semaphore::new(most)), Peers::default());
    while let Ok(place) = places.clone().acquire_owned().await {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // Waits, because an error such as too many open files rarely goes away at once.
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(of_peer) = peers.place(peer.ip(), of_peer) else { continue };
        let (tls, router) = (tls.clone(), router.clone());
        tokio::spawn(async move {
            match tls {
                None => requests(stream, router, LIFE).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(LONGEST_HEAD, tls.accept(stream)).await {
                        requests(stream, router, LIFE).await;
                    }
                }
            }
            drop((of_peer, place));
        });
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin + Send, router: Router, life: (Duration, Duration)) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD).max_buf_size(LARGEST_HEAD);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    if timeout(life.0, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(life.1, connection).await;
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
