use crate::people::{self, is, problem};
use crate::shop::{Gateway, Shop, until};

#[track_caller]
fn until_reason(gateway: &Gateway, part: &str) {
    until(part, || match gateway.get("/readyz") {
        (503, body) if body.contains(part) => Ok(()),
        (_, body) => Err(body),
    });
    // The log escapes quotes in the same way as the answer's body, so the test can search both for `part`.
    until("the log", || {
        let log = gateway.log();
        let is_logged = |line: &str| line.contains("WARN") && line.contains("not ready") && line.contains(part);
        if log.lines().any(is_logged) { Ok(()) } else { Err(log) }
    });
}

#[track_caller]
fn until_ready(gateway: &Gateway) {
    until("readiness", || match gateway.get("/readyz") {
        (200, _) => Ok(()),
        (_, body) => Err(body),
    });
}

#[test]
fn a_gateway_that_is_switched_off_is_not_ready() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    until_ready(&gateway);
    let set = |value: &str| {
        shop.cluster
            .execute("postgres", &[&format!("ALTER SYSTEM SET awty.enabled = {value}"), "SELECT pg_reload_conf()"]);
    };
    set("off");
    until_reason(&gateway, "ALTER SYSTEM SET awty.enabled = on");
    set("on");
    until_ready(&gateway);
    until("the log", || if gateway.log().contains("\"message\":\"ready\"") { Ok(()) } else { Err(gateway.log()) });
}

#[test]
fn a_gateway_without_a_tenant_says_what_its_own_role_needs() {
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &["CREATE ROLE \"Odd\" LOGIN NOINHERIT", "GRANT USAGE ON SCHEMA awty, awty_http TO \"Odd\""],
    );
    let gateway = shop.gateway_with("Odd", &[]);
    until_reason(&gateway, "GRANT <role> TO \\\"Odd\\\";");
}

#[test]
fn a_gateway_whose_extension_is_gone_says_so_and_not_that_all_is_well() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    until_ready(&gateway);
    let client = people::client(&shop, &gateway, "app", "read");
    shop.cluster.execute("postgres", &["DROP EXTENSION awty CASCADE"]);
    until_reason(&gateway, "the extension awty is not installed; CREATE EXTENSION awty;");
    assert!(!gateway.log().contains("answers again"), "{}", gateway.log());
    let asked = client.get("/v1/schedules");
    assert_eq!(problem(&asked), is(503, "version-mismatch"));
    assert!(asked.text.contains("CREATE EXTENSION awty_http CASCADE;"), "{}", asked.text);
}
