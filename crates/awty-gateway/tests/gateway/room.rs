//! Memory of many large bodies that are due at once.

use crate::shop::{Shop, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const CALLS: usize = 1_000;
const BYTES: usize = 250_000;
/// KiB that the gateway may hold.
const MOST: u64 = 400 * 1024;

/// Reads bodies and drops them.
fn sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    address
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            if let Some(said) = line.to_lowercase().strip_prefix("content-length: ") {
                length = said.trim().parse().unwrap();
            }
            line.clear();
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

#[test]
fn large_bodies_that_are_due_at_once_do_not_fill_the_memory() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.app', concurrency => 1000)"]);
    let gateway = shop.gateway("one");
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    let args = format!("jsonb_build_object('body', repeat('a', {BYTES}), 'sign', false)");
    shop.app(&format!(
        "SELECT awty.schedule('http://{}', '/#' || n, 'http.app', after => '0', args => {args}) FROM generate_series(1, {CALLS}) AS n",
        sink()
    ));
    // One deadline per hundred calls, because a busy machine may take minutes for all of them.
    for done in (100..=CALLS).step_by(100) {
        shop.await_text(&format!("SELECT count(*) >= {done} FROM awty.attempt WHERE ok"), "true");
    }
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE ok"), CALLS.to_string());
    let most = gateway.most_memory();
    assert!(most < MOST, "it has held {most} KiB");
    assert_eq!(gateway.get("/readyz").0, 200);
}
