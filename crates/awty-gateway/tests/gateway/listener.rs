use crate::people;
use crate::shop::{Shop, until};
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn certificate(folder: &Path) -> [String; 2] {
    let file = |name: &str| folder.join(name).display().to_string();
    let [certificate, key] = [file("tls.pem"), file("tls.key")];
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -days 2 -addext subjectAltName=DNS:localhost";
    let run = Command::new("openssl").args(arguments.split(' ')).args(["-keyout", &key, "-out", &certificate]).output();
    let run = run.expect("openssl is needed: apt-get install openssl");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    [certificate, key]
}

fn curl(arguments: &[&str]) -> (bool, String) {
    let run = Command::new("curl").args(["-s", "-S", "--max-time", "30"]).args(arguments).output();
    let run = run.expect("curl is needed: apt-get install curl");
    (run.status.success(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
}

#[test]
fn with_a_certificate_it_speaks_tls_and_nothing_else_and_may_be_reached_from_outside() {
    let shop = Shop::open();
    let [certificate, key] = certificate(shop.cluster.socket_directory());
    let flags =
        ["--tls-certificate", &certificate, "--tls-key", &key, "--listen", "0.0.0.0:0", "--allow-localhost", "false"];
    let gateway = shop.gateway_with("gateway", &flags);
    let port = gateway.address().rsplit(':').next().unwrap().to_owned();
    let url = format!("https://localhost:{port}/readyz");
    until("readiness over TLS", || match curl(&["--cacert", &certificate, &url]) {
        (true, text) if text.contains("\"ready\":true") => Ok(()),
        (_, text) => Err(text),
    });
    let plain = curl(&[&url.replace("https", "http")]);
    assert!(!plain.0, "{}", plain.1);
    let old = curl(&["--cacert", &certificate, "--tls-max", "1.1", &url]);
    assert!(!old.0, "{}", old.1);
    let stranger = curl(&[&url]);
    assert!(!stranger.0 && stranger.1.contains("certificate"), "{}", stranger.1);
}

#[test]
fn a_key_that_does_not_fit_ends_the_start_with_the_files_name() {
    let shop = Shop::open();
    let [certificate, _] = certificate(shop.cluster.socket_directory());
    let mut gateway = shop.gateway_with("gateway", &["--tls-certificate", &certificate, "--tls-key", "/nowhere.key"]);
    assert_eq!(gateway.ended(), Some(1));
    until("the reason", || if gateway.log().contains("/nowhere.key") { Ok(()) } else { Err(gateway.log()) });
}

#[test]
fn who_never_says_hello_is_hung_up_on_and_delays_nobody() {
    let shop = Shop::open();
    let [certificate, key] = certificate(shop.cluster.socket_directory());
    let gateway = shop.gateway_with("gateway", &["--tls-certificate", &certificate, "--tls-key", &key]);
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(gateway.address()).unwrap()).collect();
    let port = gateway.address().rsplit(':').next().unwrap().to_owned();
    // The silent clients hold all connections that the gateway accepts from 127.0.0.1, so curl connects from 127.0.0.2.
    let url = format!("https://localhost:{port}/livez");
    let answer = curl(&["-4", "--interface", "127.0.0.2", "--cacert", &certificate, &url]);
    assert_eq!(answer, (true, "ok\n".to_owned()));
    for mut stream in silent {
        drop(stream.read_to_end(&mut Vec::new()));
    }
}

/// Otherwise the handshakes of one client could delay the calls of all tenants, and hide the state of the gateway.
#[test]
fn handshakes_use_a_thread_of_their_listener() {
    let shop = Shop::open();
    let [certificate, key] = certificate(shop.cluster.socket_directory());
    let gateway = shop.gateway_with("gateway", &["--tls-certificate", &certificate, "--tls-key", &key]);
    for (thread, address) in [("clients", gateway.address()), ("metrics", gateway.address_of_metrics())] {
        let url = format!("https://localhost:{}/livez", address.rsplit(':').next().unwrap());
        until("handshakes to use 20 ms of the thread's CPU", || {
            let before = gateway.cpu_of(thread);
            for _ in 0..20 {
                assert_eq!(curl(&["--cacert", &certificate, &url]), (true, "ok\n".to_owned()));
            }
            let used = gateway.cpu_of(thread) - before;
            if used > Duration::from_millis(20) { Ok(()) } else { Err(format!("{thread}: {used:?}")) }
        });
    }
}

/// Otherwise a busy listener would keep scrapes from the database.
#[test]
fn scrapes_use_no_thread_of_another_listener() {
    let (_shop, gateway, client) = people::open();
    let ask = || (0..10).for_each(|_| assert_eq!(client.get("/v1/schedules").status, 200));
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask))));
    let used = || ["clients", "metrics"].map(|thread| gateway.cpu_of(thread));
    let [clients, metrics] = used();
    for _ in 0..20 {
        let (status, text) = gateway.get("/metrics");
        assert!(status == 200 && text.contains("awty_pending"), "{text}");
    }
    let [clients, metrics] = [used()[0] - clients, used()[1] - metrics];
    assert!(clients * 4 < metrics, "{clients:?} of clients, {metrics:?} of metrics");
}
