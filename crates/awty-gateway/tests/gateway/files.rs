use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop, until};
use std::net::TcpStream;
use std::process::Command;

/// Soft and hard limit of open files.
fn limits(gateway: &Gateway) -> [String; 2] {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.pid())).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    [words.next().unwrap(), words.next().unwrap()]
}

#[track_caller]
fn set_soft_limit(gateway: &Gateway, files: &str) {
    let arguments = [format!("--nofile={files}:"), format!("--pid={}", gateway.pid())];
    assert!(Command::new("prlimit").args(arguments).status().unwrap().success());
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let shop = Shop::open();
    let gateway = shop.gateway_with_files("200:1000");
    until("the first line", || if gateway.log().contains("started") { Ok(()) } else { Err(gateway.log()) });
    assert_eq!(limits(&gateway), ["1000", "1000"]);
    assert!(gateway.log().contains("the hard limit of open files is low"), "{}", gateway.log());
}

#[test]
fn clients_leave_file_descriptors_for_calls() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway_with_files("200:200");
    let addresses = [gateway.address(), gateway.address_of_metrics()];
    let connect = |address: &String| TcpStream::connect(address).unwrap();
    let clients: Vec<TcpStream> = (0..100).flat_map(|_| addresses.each_ref().map(connect)).collect();
    shop.app(&format!("SELECT awty_http.send('{}') FROM generate_series(1, 20)", receiver.uri("/ok")));
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "20");
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE NOT ok"), "0");
    assert!(!gateway.log().contains("no file descriptor"), "{}", gateway.log());
    drop(clients);
}

#[test]
fn a_call_without_a_file_descriptor_is_no_attempt() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let toml = shop.let_secret("app", "TOKEN", &receiver.origin());
    shop.secret("app", "TOKEN", "t0p");
    let gateway = shop.gateway_with("gateway", &["--config", &toml]);
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    set_soft_limit(&gateway, "5");
    let plain = receiver.uri("/ok");
    shop.app(&format!("SELECT awty_http.send('{plain}'), awty_http.send('http://name.example:1099/')"));
    let headers = r#"'{"Authorization": "Bearer {{secret:TOKEN}}"}'"#;
    shop.app(&format!("SELECT awty_http.send('{}', headers => {headers})", receiver.uri("/secret")));
    let of =
        |target: &str| gateway.log().lines().filter(|line| line.contains("no file") && line.contains(target)).count();
    until("calls that are made again", || {
        assert_eq!(shop.text("SELECT string_agg(message, ' | ') FROM awty.attempt"), "");
        if of("name.example") >= 2 && of(&receiver.origin()) >= 4 { Ok(()) } else { Err(gateway.log()) }
    });
    let cancel =
        "SELECT awty.cancel(entity_name, entity_key, job) FROM awty.future_job WHERE entity_name ~ 'name.example'";
    shop.cluster.execute("postgres", &[cancel]);
    set_soft_limit(&gateway, "500");
    for path in ["/ok", "/secret"] {
        assert_eq!(receiver.called(path, 1)[0].headers["awty-attempt"], "1/3", "{path}");
    }
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "2");
}
