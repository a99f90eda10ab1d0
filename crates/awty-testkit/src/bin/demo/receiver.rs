use awty_testkit::receiver::{accept, answer, hang, requests};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn serve(address: &str) -> ! {
    let calls = AtomicUsize::new(0);
    println!("{}", accept(address, move |stream| behave(stream, &calls)));
    loop {
        std::thread::park();
    }
}

fn behave(stream: &TcpStream, calls: &AtomicUsize) -> std::io::Result<()> {
    requests(stream, |request| {
        let path = request.path.split('?').next().unwrap_or_default();
        let status = match path {
            "/stock" => "200",
            "/carrier" => match calls.fetch_add(1, Ordering::Relaxed) % 6 {
                1 => "503",
                3 => return hang(stream).map(|()| false),
                5 => return Ok(false), // closes the connection
                _ => "200",
            },
            _ => "404",
        };
        answer(stream, status, "", "").map(|()| true)
    })
}
