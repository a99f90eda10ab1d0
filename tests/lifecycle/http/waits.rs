//! In its answer, a target can ask the gateway to wait before the next call.

use super::{Http, refused};

const ORIGIN: &str = "https://api.example.com";

fn wait(until: &str) -> String {
    format!("SELECT awty_http_internal.asked_to_wait('http.app', '{ORIGIN}', {until}, 'HTTP 429')")
}

fn block(http: &Http) -> String {
    http.ask("app", &format!("SELECT state || coalesce(' ' || (blocked_until < now() + interval '61 min') || ' ' || why, '') FROM awty_http_internal.target('{ORIGIN}')"))
}

#[test]
fn the_right_to_claim_blocks_for_an_hour_at_most_and_shortens_no_other_block() {
    let http = Http::open();
    assert_eq!(block(&http), "ready");
    assert_eq!(http.ask("gateway", &wait("now() - interval '1 s'")), "false");
    assert_eq!(http.ask("gateway", &wait("now() + interval '10 min'")), "true");
    assert_eq!(http.ask("gateway", &wait("now() + interval '5 min'")), "false", "it is blocked for longer");
    assert_eq!(http.ask("gateway", &wait("'infinity'")), "true");
    let told = block(&http);
    assert!(told.starts_with("blocked true blocked until") && told.ends_with("by gateway: \"HTTP 429\""), "{told}");
    assert_eq!(http.ask("gateway", "SELECT concurrency FROM awty.target WHERE target IS NOT NULL"), "10");
    let alter = format!(
        "SELECT awty.alter_target('http.app', '{ORIGIN}', blocked_until => 'infinity', concurrency => 3, note => 'they move')"
    );
    http.ask("app", &alter);
    assert_eq!(http.ask("gateway", &wait("'infinity'")), "false");
    let told = block(&http);
    assert!(told.starts_with("blocked false blocked until infinity") && told.ends_with("\"they move\""), "{told}");
    http.ask("app", &format!("SELECT awty.alter_target('http.app', '{ORIGIN}', blocked_until => '-infinity')"));
    assert_eq!(http.ask("gateway", &wait("now() + interval '1 min'")), "true");
    assert_eq!(http.ask("app", &format!("SELECT concurrency FROM awty_http_internal.target('{ORIGIN}')")), "3");
    let mut other = http.client("other");
    assert_eq!(refused(&mut other, &wait("'infinity'")), "42501");
}

#[test]
fn nobody_who_answers_waits_for_a_person_or_for_another_answer() {
    let http = Http::open();
    for open in [
        format!("SELECT awty.alter_target('http.app', '{ORIGIN}', concurrency => 2)"),
        wait("now() + interval '1 min'"),
    ] {
        for there_before in [false, true] {
            let mut app = http.client("app");
            let target = "SELECT awty.alter_target('http.app', 'https://api.example.com', ";
            app.batch_execute(&if there_before {
                format!("{target} rate => 5)")
            } else {
                format!("{target} blocked_until => '-infinity', reset => '{{rate,concurrency}}')")
            })
            .unwrap();
            app.batch_execute(&format!("BEGIN; {open}")).unwrap();
            let mut gateway = http.client("gateway");
            gateway.batch_execute("SET statement_timeout = '30 s'").unwrap();
            let row = gateway.query_one(&wait("now() + interval '2 min'"), &[]).unwrap();
            assert!(!row.get::<_, bool>(0), "{open}, {there_before}");
            app.batch_execute("ROLLBACK").unwrap();
        }
    }
    assert_eq!(http.ask("gateway", &wait("now() + interval '2 min'")), "true");
}

#[test]
fn every_target_has_limits() {
    let http = Http::open();
    let target =
        "SELECT (job, target, concurrency, in_flight, state) FROM awty_http_internal.target('https://x.example.com')";
    assert_eq!(http.ask("app", target), "(http.app,https://x.example.com,10,0,ready)");
    http.ask("app", "SELECT awty.alter_target('http.app', reset => '{concurrency}')");
    assert_eq!(http.ask("app", target), "(http.app,https://x.example.com,,0,ready)");
}

#[test]
fn a_block_that_is_over_is_forgotten() {
    let http = Http::open();
    http.ask("gateway", &wait("now() + interval '1 min'"));
    http.cluster.execute(
        "postgres",
        &["UPDATE awty_internal.target SET blocked_until = now() - interval '2 days' WHERE target <> ''"],
    );
    // Registering a job makes awty inspect the database.
    http.ask("app", "SELECT awty.register('another')");
    let gone = "SELECT NOT EXISTS (SELECT FROM awty_internal.target WHERE target <> '')";
    http.cluster.await_that("the row to go", awty_testkit::PATIENCE, || {
        if http.cluster.value::<bool>("postgres", gone) { Ok(()) } else { Err("it is there".into()) }
    });
    assert_eq!(http.ask("app", "SELECT concurrency FROM awty.target WHERE job = 'http.app'"), "10");
}
