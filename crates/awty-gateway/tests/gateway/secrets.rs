use crate::client::encoded;
use crate::people::client;
use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop};
use serde_json::json;

fn send(shop: &Shop, role: &str, uri: &str, name: &str) {
    let send = format!("SELECT awty_http.send('{uri}', headers => '{{\"X\": \"{{{{secret:{name}}}}}\"}}')");
    shop.cluster.client("postgres", role).batch_execute(&send).unwrap_or_else(|error| panic!("{send}: {error:?}"));
}

fn refusals(shop: &Shop, job: &str) -> String {
    shop.text(&format!("SELECT string_agg(message, ' | ' ORDER BY entity_key) FROM awty.attempt WHERE job = '{job}'"))
}

fn counted(gateway: &Gateway) -> String {
    let metrics = gateway.get("/metrics").1;
    let line = metrics.lines().find(|line| line.starts_with("awty_gateway_secrets_refused_total"));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_secret_goes_to_the_origins_of_its_tenant_alone() {
    let (shop, receiver, other) = (Shop::open(), Receiver::start(), Receiver::start());
    shop.add_tenant("bob");
    shop.secret("app", "TOKEN", "t0p\n");
    shop.secret("app", "UNLISTED", "n0\n");
    let file = shop.let_secret("app", "TOKEN", &receiver.origin());
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    send(&shop, "app", &receiver.uri("/ok"), "TOKEN");
    assert_eq!(receiver.called("/ok", 1)[0].headers["x"], "t0p");
    send(&shop, "app", &other.uri("/a"), "TOKEN");
    send(&shop, "app", &receiver.uri("/b"), "UNLISTED");
    send(&shop, "bob", &receiver.uri("/c"), "TOKEN");
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE NOT ok", "3");
    let mine = refusals(&shop, "http.app");
    for line in [
        format!("[secrets.\"app/TOKEN\"]\norigins = [\"{}\"]", other.origin()),
        format!("[secrets.\"app/UNLISTED\"]\norigins = [\"{}\"]", receiver.origin()),
    ] {
        assert!(mine.contains(&line), "{line} is not in {mine}");
    }
    let theirs = refusals(&shop, "http.bob");
    assert!(theirs.starts_with("secret-not-allowed: ") && theirs.contains("[secrets.\"bob/TOKEN\"]"), "{theirs}");
    assert_eq!(counted(&gateway), "awty_gateway_secrets_refused_total 3");
    let log = gateway.log();
    assert_eq!(log.matches("a secret may not be sent to this origin").count(), 3, "{log}");
    assert!(!log.contains("t0p") && !log.contains("n0\""), "a secret has come out");
    assert!(other.seen("/a").is_empty() && receiver.seen("/b").is_empty() && receiver.seen("/c").is_empty());
    // Refused calls are not tried again, because the gateway reads a changed configuration file only after a restart.
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE job LIKE 'http.%'"), "0");
}

#[test]
fn by_default_no_secret_is_given() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.secret("app", "TOKEN", "t0p\n");
    let _gateway = shop.gateway("one");
    for (path, name) in [("/a", "TOKEN"), ("/b", "master-key"), ("/c", "../master-key")] {
        send(&shop, "app", &receiver.uri(path), name);
    }
    shop.await_text("SELECT count(*) > 2 FROM awty.attempt WHERE NOT ok", "true");
    let said = refusals(&shop, "http.app");
    assert!(
        said.contains("secret-not-allowed: the secret \"TOKEN\"") && said.contains("\"../master-key\" is not in"),
        "{said}"
    );
    assert!(["/a", "/b", "/c"].iter().all(|path| receiver.seen(path).is_empty()));
}

#[test]
fn a_role_that_may_only_read_learns_nothing_of_secrets() {
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE bob LOGIN",
            "GRANT bob TO gateway",
            "GRANT USAGE ON SCHEMA awty, awty_http TO bob",
            "SELECT awty.allow('http.app', 'bob', 'read')",
        ],
    );
    shop.secret("app", "TOKEN", "t0p\n");
    let file = shop.let_secret("app", "TOKEN", "https://api.example.com");
    let gateway = shop.gateway_with("gateway", &["--config", &file]);
    let put = |role: &str, name: &str| {
        let body = json!({"every": "1 h", "headers": {"X": format!("{{{{secret:{name}}}}}")}});
        let place = format!("/v1/schedules?uri={}", encoded("https://api.example.com/new"));
        let answer = client(&shop, &gateway, role, "write").ask_once("PUT", &place, &body.to_string(), "");
        (answer.status, answer.text)
    };
    let (status, text) = put("bob", "TOKEN");
    assert!(status == 403 && text.contains("may not schedule calls"), "{status} {text}");
    assert_eq!(put("bob", "OTHER"), (status, text));
    let (status, text) = put("app", "OTHER");
    assert!(status == 422 && text.contains("cannot be sent"), "{status} {text}");
    assert_eq!(put("app", "TOKEN").0, 201);
}

#[test]
fn the_configuration_shows_where_secrets_go() {
    let shop = Shop::open();
    shop.secret("app", "TOKEN", "t0p\n");
    shop.let_secret("app", "TOKEN", "https://api.example.com");
    let file = shop.let_secret("app", "GONE", "https://b.example");
    let shown = shop.config(&["--config", &file]);
    for part in ["[secrets.\"app/TOKEN\"]  # in ", "origins = [\"https://api.example.com\"]", "app/GONE is missing"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!shown.contains("t0p"));
}
