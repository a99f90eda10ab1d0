use super::Http;

const URI: &str = "https://api.example.com/tick?x=1";

#[test]
fn the_same_uri_is_there_once_however_it_is_written_and_the_same_again_changes_nothing() {
    let http = Http::open();
    let id = http.ask("app", "SELECT awty_http.schedule('HTTPS://API.Example.com:443/tick?x=1', '1 h', jitter => '0')");
    assert!(id.len() == 24 && id.starts_with("s_"), "{id}");
    let before = http.ask("app", "SELECT f FROM awty.future_job AS f");
    assert_eq!(http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h', jitter => '0')")), id);
    assert_eq!(http.ask("app", "SELECT f FROM awty.future_job AS f"), before);
    assert_eq!(http.ask("app", "SELECT uri || ' ' || version FROM awty_http.endpoint"), format!("{URI} 1"));
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h', jitter => '0', description => 'x')"));
    assert_eq!(http.ask("app", "SELECT f FROM awty.future_job AS f"), before);
    assert_eq!(http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '30 min', jitter => '0')")), id);
    assert_eq!(http.ask("app", "SELECT version FROM awty_http.endpoint"), "3");
    assert_eq!(http.ask("app", "SELECT every FROM awty.repetition"), "00:30:00");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1");
}

#[test]
fn a_period_is_rounded_up_to_slots_and_says_from_what() {
    let http = Http::open();
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1.5 s')"));
    assert_eq!(http.ask("app", "SELECT every || ' ' || rounded_from FROM awty_http.endpoint"), "00:00:02 00:00:01.5");
}

#[test]
fn a_period_is_spread_over_a_minute_at_most_and_cron_is_not_spread() {
    let http = Http::open();
    for (when, given, jitter) in [
        ("every => '10 s'", "", "00:00:10"),
        ("every => '1.5 s'", "", "00:00:02"),
        ("every => '1 min'", "", "00:01:00"),
        ("every => '1 h'", "", "00:01:00"),
        ("every => '1 month', zone => 'UTC'", "", "00:01:00"),
        ("every => '1 h', jitter => '5 s'", "00:00:05", "00:00:05"),
        ("every => '1 h', jitter => '0'", "00:00:00", "00:00:00"),
        ("cron => '0 9 * * *', zone => 'UTC'", "", "00:00:00"),
        ("cron => '0 9 * * *', zone => 'UTC', jitter => '5 min'", "00:05:00", "00:05:00"),
    ] {
        http.ask("app", &format!("SELECT awty_http.schedule('{URI}', {when})"));
        assert_eq!(http.ask("app", "SELECT jitter FROM awty_http.endpoint"), given, "{when}");
        assert_eq!(http.ask("app", "SELECT jitter FROM awty.repetition"), jitter, "{when}");
    }
}

#[test]
fn a_plan_becomes_one_call_and_a_plan_again() {
    let http = Http::open();
    for when in [
        "every => '1 h'",
        "at => now() + interval '2 h'",
        "cron => '0 9 * * *', zone => 'Europe/Berlin'",
        "after => '3 h'",
    ] {
        http.ask("app", &format!("SELECT awty_http.schedule('{URI}', {when})"));
        assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1", "{when}");
        let repeats = http.ask("app", "SELECT count(*) FROM awty.repetition");
        assert_eq!(repeats, if when.starts_with("at") || when.starts_with("after") { "0" } else { "1" }, "{when}");
    }
}

#[test]
fn a_paused_schedule_stands_still_and_goes_on() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h', paused => true)"));
    assert_eq!(http.ask("app", "SELECT held FROM awty.future_job"), "true");
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.resume('{id}')")), "true");
    assert_eq!(http.ask("app", "SELECT held FROM awty.future_job"), "false");
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.pause('{id}', 'they move')")), "true");
    assert_eq!(http.ask("app", "SELECT held FROM awty.future_job"), "true");
    let note = "SELECT paused_note || ' ' || version FROM awty_http.endpoint";
    assert_eq!(http.ask("app", note), "they move 3");
    for again in ["'until Monday'", "NULL"] {
        assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.pause('{id}', {again})")), "true");
        assert_eq!(http.ask("app", note), "until Monday 3", "{again}");
        assert_eq!(http.cluster.psql("postgres", "SELECT note FROM awty_internal.hold").trim(), "until Monday");
    }
    assert_eq!(http.ask("app", "SELECT awty_http_internal.pause('s_none')"), "false");
}

#[test]
fn an_ended_schedule_keeps_its_row_and_its_id() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')"));
    assert_eq!(http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')")), "true");
    assert_eq!(http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')")), "false");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "0");
    assert_eq!(http.ask("app", "SELECT deleted_at IS NOT NULL FROM awty_http.endpoint"), "true");
    assert_eq!(http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 h')")), id);
    assert_eq!(http.ask("app", "SELECT deleted_at IS NULL FROM awty_http.endpoint"), "true");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1");
}

#[test]
fn an_endpoint_that_is_gone_is_held_and_one_that_has_enough_is_ended() {
    let http = Http::open();
    let id = http.ask("app", &format!("SELECT awty_http.schedule('{URI}', '1 s')"));
    let lease = http.claim()[0];
    let mut gateway = http.client("gateway");
    let gone = format!(
        "BEGIN; SELECT awty_http_internal.asked('{id}', 'hold', 'the endpoint answered that it is gone');
         SELECT awty.fail({lease}, '410', final => true), awty_http_internal.answered('{id}', false, now()); COMMIT"
    );
    gateway.batch_execute(&gone).unwrap();
    assert_eq!(http.ask("app", "SELECT held FROM awty.future_job"), "true");
    assert_eq!(
        http.ask("app", "SELECT verdict || ' ' || (failing_since IS NOT NULL) FROM awty_http.endpoint"),
        "hold true"
    );
    http.ask("app", &format!("SELECT awty_http_internal.resume('{id}')"));
    let lease = http.claim()[0];
    let enough = format!(
        "BEGIN; SELECT awty.complete({lease}), awty_http_internal.answered('{id}', true, now());
         SELECT awty_http_internal.asked('{id}', 'stop', 'enough'); COMMIT"
    );
    gateway.batch_execute(&enough).unwrap();
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "0");
    assert_eq!(
        http.ask("app", "SELECT verdict || ' ' || (failing_since IS NULL) FROM awty_http.endpoint"),
        "stop true"
    );
}

#[test]
fn two_transactions_that_schedule_one_uri_come_one_after_the_other() {
    let http = Http::open();
    for before in [0, 1] {
        let uri = format!("{URI}&n={before}");
        let schedule = |every: &str| format!("SELECT awty_http.schedule('{uri}', '{every}', jitter => '0')");
        if before == 1 {
            http.ask("app", &schedule("1 h"));
        }
        let mut first = http.client("app");
        first.batch_execute(&format!("BEGIN; {}", schedule("2 h"))).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| http.ask("app", &schedule("3 h")));
            let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
            http.cluster.await_sql("postgres", "the second to wait", waits);
            first.batch_execute("COMMIT").unwrap();
            second.join().unwrap();
        });
        let found = format!("SELECT every || ' ' || version FROM awty_http.endpoint WHERE uri = '{uri}'");
        assert_eq!(http.ask("app", &found), format!("03:00:00 {}", before + 2));
    }
}

#[test]
fn a_version_that_was_looked_up_stays_until_the_transaction_ends() {
    let http = Http::open();
    let schedule = |every: &str| format!("SELECT awty_http.schedule('{URI}', '{every}')");
    let id = http.ask("app", &schedule("1 h"));
    let mut first = http.client("app");
    first.batch_execute(&format!("BEGIN; SELECT awty_http_internal.lock('{id}'); {}", schedule("2 h"))).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| http.ask("app", &format!("SELECT awty_http_internal.lock('{id}')")));
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
        http.cluster.await_sql("postgres", "the second to wait", waits);
        first.batch_execute("COMMIT").unwrap();
        assert_eq!(second.join().unwrap(), "2");
    });
    assert_eq!(http.ask("other", &format!("SELECT awty_http_internal.lock('{id}')")), "");
    http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')"));
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.lock('{id}')")), "");
}
