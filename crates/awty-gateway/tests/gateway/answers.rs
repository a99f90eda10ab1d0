use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use awty_testkit::receiver::{accept, answer, requests};

#[track_caller]
fn called(receiver: &Receiver, path: &str) -> Vec<u8> {
    until(path, || receiver.seen(path).pop().map(|seen| seen.body).ok_or_else(|| "no call".to_owned()))
}

#[test]
fn a_body_leaves_to_the_letter_and_stops_no_other() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for (number, body) in ["{\"n\": 1e400}", "{\"id\": 12345678901234567890123}", &deep, "null"].iter().enumerate() {
        shop.app(&format!(
            "SELECT awty_http.schedule('{}', after => '0', body => '{body}')",
            receiver.uri(&format!("/schedule/{number}"))
        ));
        shop.app(&format!("SELECT awty_http.send('{}', '{body}')", receiver.uri(&format!("/send/{number}"))));
    }
    let _gateway = shop.gateway("one");
    for (number, body) in ["{\"n\": 1e400}", "{\"id\": 12345678901234567890123}", &deep, "null"].iter().enumerate() {
        let wanted = shop.text(&format!("SELECT '{body}'::jsonb"));
        for way in ["schedule", "send"] {
            assert_eq!(String::from_utf8_lossy(&called(&receiver, &format!("/{way}/{number}"))), wanted, "{way}");
        }
    }
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "8");
}

#[test]
fn an_answer_that_waits_for_a_lock_holds_up_no_other() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway("one");
    let uri = receiver.uri("/gate/200/x");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', after => '0', timeout => '10 min')"));
    called(&receiver, "/gate/200/x");
    let mut client = shop.cluster.client("postgres", "app");
    client.batch_execute(&format!("BEGIN; SELECT awty_http.schedule('{uri}', every => '1 h')")).unwrap();
    receiver.open_gate();
    until("an answer whose check is locked", || {
        let metrics = gateway.get("/metrics").1;
        if metrics.contains("awty_gateway_leases_total{result=\"busy\"}") { Ok(()) } else { Err(metrics) }
    });
    for path in ["/ok/y", "/ok/z"] {
        shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri(path)));
        shop.await_text(&format!("SELECT count(*) FROM awty.attempt WHERE ok AND entity_key ^@ '{path}'"), "1");
    }
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE entity_key = '/gate/200/x'"), "0");
    client.batch_execute("ROLLBACK").unwrap();
    shop.await_text("SELECT string_agg(ok::text, ',') FROM awty.attempt WHERE entity_key = '/gate/200/x'", "true");
    assert_eq!(receiver.seen("/gate/200/x").len(), 1);
}

#[test]
fn a_call_that_ends_makes_room_for_its_target_before_the_next_slot() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let target = receiver.uri("");
    shop.cluster.execute("postgres", &[&format!("SELECT awty.alter_target('http.app', '{target}', concurrency => 1)")]);
    let _gateway = shop.gateway("one");
    shop.app(&format!("SELECT count(awty_http.send('{target}/ok')) FROM generate_series(1, 150)"));
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "150");
}

#[test]
fn a_call_of_a_schedule_that_was_replaced_says_nothing_of_the_new_one() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway("one");
    let uri = receiver.uri("/gate/410");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', after => '0', timeout => '10 min')"));
    called(&receiver, "/gate/410");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', every => '1 h', starts => now() + '30 min')"));
    receiver.open_gate();
    until("the answer", || {
        let metrics = gateway.get("/metrics").1;
        let void = metrics.lines().find_map(|line| line.strip_prefix("awty_gateway_leases_total{result=\"void\"} "));
        if void.is_some_and(|count| count != "0") { Ok(()) } else { Err(metrics) }
    });
    let of_new = "SELECT concat_ws(' ', verdict, failing_since IS NOT NULL) FROM awty_http.endpoint";
    assert_eq!(shop.text(of_new), "f");
    assert_eq!(shop.text("SELECT string_agg(held::text, ',') FROM awty.future_job WHERE job = 'http.app'"), "false");
}

#[test]
fn a_role_that_comes_to_be_above_row_security_claims_no_more() {
    let shop = Shop::open();
    let gateway = shop.gateway("one");
    until("readiness", || if gateway.get("/readyz").0 == 200 { Ok(()) } else { Err(gateway.get("/readyz").1) });
    shop.cluster.execute("postgres", &["ALTER ROLE gateway BYPASSRLS"]);
    until("the reason", || match gateway.get("/readyz") {
        (503, body) if body.contains("above row security") => Ok(()),
        (_, body) => Err(body),
    });
}

#[test]
fn the_answer_of_a_call_that_went_well_is_kept_on_request_only() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    for (path, keep) in [("/ok/forgotten", "false"), ("/ok/kept", "true"), ("/ok/unsaid", "NULL")] {
        let uri = receiver.uri(path);
        shop.app(&format!("SELECT awty_http.schedule('{uri}', after => '0', keep_response => {keep})"));
    }
    let bodies =
        "SELECT string_agg(concat_ws(' ', entity_key, result ->> 'status', result ->> 'body'), ',' ORDER BY entity_key)
        FROM awty.attempt WHERE ok";
    shop.await_text(bodies, "/ok/forgotten 200,/ok/kept 200 ok,/ok/unsaid 200");
}

#[test]
fn a_schedule_that_is_locked_holds_up_no_answer_of_another() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let _gateway = shop.gateway("one");
    for path in ["/status/404", "/header/200/Awty-Stop/it_was_paid"] {
        let uri = receiver.uri(path);
        shop.app(&format!("SELECT awty_http.schedule('{uri}', every => '1 s', starts => now() + '2 s')"));
    }
    let mut holder = shop.cluster.client("postgres", "app");
    holder.batch_execute("BEGIN; SELECT awty_http_internal.lock(id) FROM awty_http.endpoint").unwrap();
    let booked = |path: &str| format!("SELECT count(*) > 2 FROM awty.attempt WHERE entity_key = '{path}'");
    shop.await_text(&booked("/status/404"), "true");
    called(&receiver, "/header/200/Awty-Stop/it_was_paid");
    let changed = "SELECT count(*) FROM awty_http.endpoint WHERE failing_since IS NOT NULL OR verdict IS NOT NULL";
    assert_eq!(shop.text(changed), "0");
    assert_eq!(receiver.seen("/header/200/Awty-Stop/it_was_paid").len(), 1, "its answer was not kept");
    holder.batch_execute("ROLLBACK").unwrap();
    shop.await_text(changed, "2");
    shop.await_text("SELECT count(*) FROM awty.future_job WHERE entity_key ~ 'Awty-Stop'", "0");
    assert_eq!(receiver.seen("/header/200/Awty-Stop/it_was_paid").len(), 1);
}

#[test]
fn an_answer_with_characters_that_the_database_lacks_counts() {
    let shop = Shop::open();
    let latin = "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'";
    shop.cluster.execute("postgres", &[latin]);
    shop.cluster.execute(
        "latin",
        &[
            "CREATE EXTENSION awty CASCADE",
            "CREATE EXTENSION awty_http",
            "GRANT USAGE ON SCHEMA awty, awty_http TO app, gateway",
            "SELECT awty_http.add_tenant('app')",
        ],
    );
    let address = accept("127.0.0.1:0", |stream| {
        requests(stream, |request| answer(stream, &request.path[1..], "", "für 5 €").map(|()| true))
    });
    let _gateway = shop.gateway_at(&shop.url("gateway").replace("/postgres?", "/latin?"), "one");
    let schedule = |status: i32| {
        format!("SELECT awty_http.schedule('http://{address}/{status}', after => '0', keep_response => true)")
    };
    shop.cluster.client("latin", "app").batch_execute(&[schedule(200), schedule(500)].join(";")).unwrap();
    shop.cluster.await_sql(
        "latin",
        "both answers",
        "SELECT string_agg(result ->> 'status' || ' ' || (result ->> 'body'), ', ' ORDER BY entity_key) = '200 f?r 5 ?, 500 f?r 5 ?'
         FROM awty.attempt",
    );
}

#[test]
fn answers_that_take_long_to_store_hold_up_no_other() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("other");
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'",
            "CREATE TRIGGER slow BEFORE INSERT ON awty_internal.attempt FOR EACH ROW
             WHEN (NEW.job = 'http.other') EXECUTE FUNCTION public.slow()",
        ],
    );
    let _gateway = shop.gateway("one");
    let slow = format!("SELECT awty_http.send('{}') FROM generate_series(1, 3)", receiver.uri("/ok/slow"));
    shop.cluster.client("postgres", "other").batch_execute(&slow).unwrap();
    called(&receiver, "/ok/slow");
    for number in 0..3 {
        let path = format!("/ok/{number}");
        shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri(&path)));
        shop.await_text(&format!("SELECT count(*) FROM awty.attempt WHERE ok AND entity_key ^@ '{path}#'"), "1");
    }
    shop.cluster.execute("postgres", &["DROP TRIGGER slow ON awty_internal.attempt"]);
    let stored = "SELECT count(*) FROM awty.attempt WHERE ok AND entity_key ^@ '/ok/slow#'";
    shop.cluster.await_sql("postgres", "the slow answers", &format!("SELECT ({stored}) = 3"));
    assert_eq!(receiver.seen("/ok/slow").len(), 3);
}
