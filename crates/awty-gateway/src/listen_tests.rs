#![allow(clippy::unwrap_used)] // in a test the panic is the report

use super::*;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const SHORT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(100));
const DEADLINE: Duration = Duration::from_secs(60);

fn router() -> Router {
    Router::new()
        .route("/large", get(|| async { "a".repeat(100_000) }))
        .route("/slow", get(|| async { sleep(SHORT.0 * 3).await }))
}

#[tokio::test]
async fn who_does_not_read_is_left() {
    let (mut client, server) = duplex(1_024);
    let served = tokio::spawn(requests(server, router(), SHORT));
    client.write_all(&b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2)).await.unwrap();
    timeout(DEADLINE, served).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_has_begun_is_answered_and_then_the_connection_ends() {
    let (mut client, server) = duplex(1_024);
    tokio::spawn(requests(server, router(), (SHORT.0, DEADLINE)));
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
