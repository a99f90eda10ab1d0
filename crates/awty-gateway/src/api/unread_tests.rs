use super::super::middleware::around;
use super::super::role::OF_ROLE;
use super::super::state::offline as api;
use super::*;
use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const KIB: usize = OF_ROLE / 2;

async fn served(api: &Arc<Api>) -> SocketAddr {
    let handler = async |request: Request| {
        request.extensions().get::<Seen>().unwrap().is(request.uri().path());
        "x".repeat(KIB * 1024).into_response()
    };
    let router = Router::new().route("/{role}", any(handler)).layer(from_fn_with_state(api.clone(), around));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(crate::listen::listen(listener, None, router, crate::listen::MOST, crate::listen::OF_PEER));
    address
}

async fn status(address: SocketAddr, role: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(format!("GET /{role} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test]
async fn unread_answers_have_a_bound_for_each_role() {
    let api = api();
    let address = served(&api).await;
    let unread = [status(address, "a").await, status(address, "a").await];
    assert!(unread.iter().all(|(_, status)| status == "200"));
    assert_eq!(status(address, "a").await.1, "429");
    assert_eq!(status(address, "b").await.1, "200", "another role");
    let refusals = "awty_gateway_http_requests_total{route=\"/{role}\",method=\"GET\",status=\"429\"} 1";
    assert!(api.metrics.text(0).contains(refusals), "the refusal is not counted");
    let [(mut first, _), _second] = unread;
    let mut rest = vec![0; KIB * 1024];
    first.read_exact(&mut rest).await.unwrap();
    assert_eq!(status(address, "a").await.1, "200");
}
