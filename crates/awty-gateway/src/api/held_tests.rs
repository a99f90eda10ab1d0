use super::super::share::OF_ROLE;
use super::super::state::Terms;
use super::*;
use crate::db::Db;
use crate::duration::Length;
use crate::metrics::Metrics;
use crate::net::guard::Guard;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// KiB of the answers in these tests, of which two fit into the room of a role.
const KIB: usize = OF_ROLE / 2;

fn api() -> Arc<Api> {
    let nowhere = "postgresql://nobody@127.0.0.1:1/none".parse().unwrap();
    let db = Db::new(nowhere, "t", 1, rustls::RootCertStore::empty()).unwrap();
    let (min_period, max_period, timeout) = (None, Length::seconds(1), Length::seconds(1));
    let terms = Terms { name: "t".into(), master_key: Vec::new(), min_period, max_period, timeout };
    Api::new(db, Guard::default(), Arc::new(Metrics::default()), terms)
}

/// Serves large answers to the role in the path. Returns the address.
async fn served(api: &Arc<Api>) -> SocketAddr {
    let handler = async |request: Request| {
        request.extensions().get::<Seen>().unwrap().is(request.uri().path());
        "x".repeat(KIB * 1024).into_response()
    };
    let router = Router::new().route("/{role}", any(handler)).layer(from_fn_with_state(api.clone(), held));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(crate::listen::listen(listener, None, router, crate::listen::OF_PEER));
    address
}

/// Sends a request and reads the status of its answer, and no more. The kernel takes only a little of the rest.
async fn status(address: SocketAddr, request: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test]
async fn unread_answers_have_a_bound_for_each_role() {
    let api = api();
    let address = served(&api).await;
    let get = |role: &str| format!("GET /{role} HTTP/1.1\r\nHost: x\r\n\r\n");
    let unread = [status(address, &get("a")).await, status(address, &get("a")).await];
    assert!(unread.iter().all(|(_, status)| status == "200"));
    assert_eq!(status(address, &get("a")).await.1, "429");
    assert_eq!(status(address, &get("b")).await.1, "200", "another role");
    // The room is free once a client has read its answer.
    let [(mut first, _), _second] = unread;
    let mut rest = vec![0; KIB * 1024];
    first.read_exact(&mut rest).await.unwrap();
    assert_eq!(status(address, &get("a")).await.1, "200");
}

#[tokio::test]
async fn a_large_body_without_a_token_is_refused_before_it_comes() {
    let address = served(&api()).await;
    let post = |length: usize| format!("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    assert_eq!(status(address, &post(SMALL + 1)).await.1, "401");
    let chunked = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(status(address, chunked).await.1, "401");
}

#[tokio::test]
async fn bodies_of_one_role_have_a_bound() {
    let api = api();
    let most = u32::try_from(OF_ROLE).unwrap();
    let all = api.shares.body("a", most).await.unwrap();
    assert!(timeout(Duration::ZERO, api.shares.body("a", 1)).await.is_err());
    assert!(timeout(Duration::ZERO, api.shares.body("b", 1)).await.is_ok());
    drop(all);
    assert!(timeout(Duration::ZERO, api.shares.body("a", most)).await.is_ok());
}
