#![allow(clippy::unwrap_used)] // a panic fails the test

use super::*;
use axum::routing::get;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpSocket, TcpStream};

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

async fn ask(listener: SocketAddr, from: [u8; 4], path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(listener).await.unwrap();
    let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await;
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = timeout(DEADLINE, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn one_address_with_all_its_connections_leaves_places_for_others() {
    const ONE: [u8; 4] = [127, 0, 0, 1];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (open, held) = tokio::sync::watch::channel(false);
    let wait = move || {
        let mut held = held.clone();
        async move { drop(held.wait_for(|open| *open).await) }
    };
    let router = Router::new().route("/held", get(wait)).route("/", get(|| async {}));
    tokio::spawn(listen(listener, None, router, MOST, OF_PEER));
    let mut first = Vec::new();
    for _ in 0..OF_PEER {
        first.push(ask(address, ONE, "/held").await);
    }
    assert_eq!(answer(ask(address, ONE, "/").await).await, "", "one more than it may have");
    let other = answer(ask(address, [127, 0, 0, 2], "/").await).await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    open.send(true).unwrap();
    for stream in first {
        let answer = answer(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let again = async {
        while !answer(ask(address, ONE, "/").await).await.starts_with("HTTP/1.1 200") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, again).await.unwrap();
}
