use super::hood::Neighbour;
use crate::client;
use awty_testkit::postgres::Client;
use std::net::TcpStream;
use std::time::Duration;

/// Address of all idle connections. The gateway limits connections per address, so that clients with other addresses
/// can still connect.
const PEER: &str = "127.0.0.7:0";

pub fn idle_connections(n: &Neighbour, _: &mut Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let open: Vec<TcpStream> = runtime.block_on(async {
        let mut open = Vec::new();
        for _ in 0..1_100 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(PEER.parse().unwrap()).unwrap();
            open.extend(socket.connect(n.api.parse().unwrap()).await.ok().and_then(|stream| stream.into_std().ok()));
        }
        open
    });
    n.hold();
    drop(open);
}

pub fn bad_tokens(n: &Neighbour, _: &mut Client) {
    let id = &n.target.id;
    for number in 0..50 {
        let token = format!("awty_{:043}", n.round * 50 + number);
        let client = client::Client { address: n.api.clone(), token };
        for (method, path) in
            [("GET", "/v1/schedules"), ("DELETE", &*format!("/v1/schedules/{id}")), ("GET", "/metrics")]
        {
            let status = client.ask_once(method, path, "", "").status;
            // Status 0 means that the listener closed the connection, because of too many connections.
            assert!(![200, 204].contains(&status), "{method} {path}: {status}");
        }
    }
    n.wait(Duration::from_millis(100));
}
