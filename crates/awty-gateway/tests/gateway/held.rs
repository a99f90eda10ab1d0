use crate::people::{client, open};
use crate::shop::until;
use awty_testkit::PATIENCE;
use std::io::{Read, Write};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Number of requests whose unread answers exceed one role's memory limit (four answers of 4 MiB) and the kernel's
/// buffers.
const REQUESTS: usize = 40;

#[test]
fn a_large_body_without_a_token_is_refused_before_it_comes() {
    let (_shop, gateway, _client) = open();
    let unknown = format!("Authorization: Bearer awty_{}\r\n", "x".repeat(43));
    for token in ["", &unknown] {
        for length in ["Content-Length: 500000", "Transfer-Encoding: chunked"] {
            let mut stream = std::net::TcpStream::connect(gateway.address()).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            write!(stream, "POST /v1/schedules HTTP/1.1\r\nHost: x\r\n{token}{length}\r\n\r\n").unwrap();
            let mut status = [0; 12];
            stream.read_exact(&mut status).unwrap();
            assert_eq!(String::from_utf8_lossy(&status[9..]), "401", "{token} {length}");
        }
    }
}

async fn begin_to_read(address: SocketAddr, token: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!("GET /v1/schedules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = vec![0; 512];
    let count = stream.read(&mut first).await.unwrap();
    (stream, String::from_utf8_lossy(&first[..count]).into_owned())
}

#[test]
fn unread_pages_have_a_bound_for_each_role() {
    let (shop, gateway, app) = open();
    shop.app("SELECT awty_http.schedule('http://a.example/' || n, '1 h', body => to_jsonb(repeat('a', 260000))) FROM generate_series(1, 17) AS n");
    let tenant = client(&shop, &gateway, "tenant", "read");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let unread: Vec<(TcpStream, String)> = runtime.block_on(async {
        let mut unread = Vec::new();
        for _ in 0..REQUESTS {
            unread.push(begin_to_read(gateway.address().parse().unwrap(), &app.token).await);
            if unread.last().is_some_and(|(_, first)| first.contains("have not read")) {
                break;
            }
        }
        unread
    });
    let last = &unread.last().unwrap().1;
    assert!(last.contains(" 429 ") && last.contains("have not read"), "{} answers, the last: {last}", unread.len());
    assert_eq!(tenant.get("/v1/schedules").status, 200);
    drop(unread);
    until("a page for the role", || match app.get("/v1/schedules").status {
        200 => Ok(()),
        status => Err(status.to_string()),
    });
}
