use crate::receiver::Receiver;
use crate::shop::{Shop, until};
use std::collections::HashSet;

#[test]
fn a_job_that_cannot_be_claimed_stops_no_other() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF NEW.job = 'http.bad' THEN RAISE 'not that one'; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON awty_internal.lease FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        ],
    );
    let gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s')", receiver.uri("/before")));
    receiver.called("/before", 1);
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute(&format!("SELECT awty_http.schedule('{}', every => '1 s')", receiver.uri("/bad"))).unwrap();
    shop.await_text(
        "SELECT count(*) > 0 FROM awty.future_job WHERE job = 'http.bad' AND next_check_at < now()",
        "true",
    );
    receiver.called("/before", receiver.seen("/before").len() + 5);
    assert!(receiver.seen("/bad").is_empty());
    let metrics = gateway.get("/metrics").1;
    let set_aside = metrics.lines().find_map(|line| line.strip_prefix("awty_gateway_jobs_set_aside_total "));
    assert!(set_aside.is_some_and(|count| count.parse::<u64>().unwrap() >= 1), "{metrics}");
    assert!(gateway.log().contains("not that one"), "{}", gateway.log());
}

#[test]
fn a_tenant_whose_calls_hang_has_a_quarter_of_the_places() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    let gateway = shop.gateway_with("gateway", &["--max-in-flight", "20"]);
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute(&format!("SELECT awty.alter_target('http.bad', '{}', concurrency => 100)", receiver.origin()))
        .unwrap();
    let send = format!("SELECT awty_http.send('{}' || n) FROM generate_series(1, 40) AS n", receiver.uri("/hang/"));
    bad.batch_execute(&send).unwrap();
    shop.await_text("SELECT count(*) >= 4 FROM awty.lease WHERE job = 'http.bad'", "true");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok")));
    receiver.called("/ok", 4);
    let held: u32 = shop.text("SELECT count(*) FROM awty.lease WHERE job = 'http.bad'").parse().unwrap();
    assert!(held <= 5, "{held} of 20 places");
    assert_eq!(gateway.get("/readyz").0, 200);
}

#[test]
fn a_gateway_that_is_full_of_calls_that_hang_says_so() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    let gateway = shop.gateway_with("gateway", &["--max-in-flight", "3"]);
    let readyz = |status: u16| {
        until("readiness", || {
            let (now, why) = gateway.get("/readyz");
            if now == status { Ok(why) } else { Err(format!("{now} {why}")) }
        })
    };
    readyz(200);
    let of_three = |call: &str| {
        shop.app(&format!("SELECT awty_http.{call} FROM generate_series(1, 3) AS n"));
    };
    let uri = format!("'{}' || n", receiver.uri("/hang/"));
    of_three(&format!("schedule({uri}, after => '1 s', timeout => '5 min')"));
    shop.await_text("SELECT count(*) FROM awty.lease", "3");
    let why = readyz(503);
    assert!(why.contains("it is full of calls that hang"), "{why}");
    of_three(&format!("unschedule({uri})"));
    readyz(200);
}

#[test]
fn many_due_calls_of_a_tenant_do_not_make_the_claims_of_others_long() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute(&format!("SELECT awty.alter_target('http.bad', '{}', concurrency => 1000)", receiver.origin()))
        .unwrap();
    let send = format!("SELECT awty_http.send('{}' || n) FROM generate_series(1, 300) AS n", receiver.uri("/hang/"));
    bad.batch_execute(&send).unwrap();
    shop.await_text(
        "SELECT bool_and(next_check_at <= clock_timestamp()) FROM awty.future_job WHERE job = 'http.bad'",
        "true",
    );
    let _gateway = shop.gateway("one");
    shop.await_text("SELECT count(*) FROM awty.lease WHERE job = 'http.bad'", "300");
    let largest =
        shop.text("SELECT max(n) FROM (SELECT count(*) AS n FROM awty_internal.lease GROUP BY leased_at) AS claims");
    assert!(largest.parse::<u32>().unwrap() <= 100, "a claim of two jobs took {largest} checks");
}

#[test]
fn an_open_claim_of_a_tenant_alone_keeps_no_call_of_others_waiting() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute(&format!("SELECT awty_http.send('{}')", receiver.uri("/bad"))).unwrap();
    let due = "SELECT count(*) FROM awty.future_job WHERE job = 'http.bad' AND next_check_at <= clock_timestamp()";
    shop.await_text(due, "1");
    bad.batch_execute("BEGIN").unwrap();
    assert_eq!(bad.query("SELECT awty.claim('{http.bad}', 'w', 1)", &[]).unwrap().len(), 1);
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/gate/200")));
    // With four places, a tenant with a running call has its share, so the gateway claims only from the other tenant.
    let position = shop.cluster.log_position();
    let gateway = shop.gateway_with("gateway", &["--max-in-flight", "4"]);
    receiver.called("/gate/200", 1);
    let last_claim = || {
        let metrics = gateway.get("/metrics").1;
        metrics.lines().find(|line| line.starts_with("awty_gateway_last_claim_timestamp_seconds ")).map(str::to_owned)
    };
    let mut seen = HashSet::new();
    until("rounds of the claim loop", || {
        seen.extend(last_claim());
        if seen.len() >= 3 { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    let log = shop.cluster.log_since(position);
    assert!(!log.contains("ERROR:  canceling statement due to lock timeout"), "a claim waited for the lock");
    receiver.open_gate();
    assert!(!gateway.log().contains("a request to the database failed"), "{}", gateway.log());
    assert!(!gateway.get("/metrics").1.contains("awty_gateway_jobs_set_aside_total 1"));
    bad.batch_execute("ROLLBACK").unwrap();
    receiver.called("/bad", 1);
}

/// The gateway removes the white space from the body.
#[test]
fn calls_that_hang_keep_no_more_room_than_their_requests_need() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    shop.cluster.execute("postgres", &["SELECT awty.alter_target('http.bad', concurrency => 2000)"]);
    let gateway = shop.gateway("one");
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute(&format!(
        "SELECT awty.schedule('{}', '/hang/' || n, 'http.bad', after => '0', args => jsonb_build_object(
             'method', 'GET', 'timeout', '15 min', 'body_base64', repeat(' ', 530000))) FROM generate_series(1, 130) AS n",
        receiver.origin()
    ))
    .unwrap();
    shop.await_text("SELECT count(*) = 130 FROM awty.lease WHERE job = 'http.bad'", "true");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s')", receiver.uri("/ok")));
    receiver.called("/ok", 2);
    assert_eq!(gateway.get("/readyz").0, 200);
}

/// The gateway reads the list of jobs between two changes, and claims between the next two. Here, a trigger raises the
/// error of such a claim, because the moments between real changes are a matter of luck.
#[test]
fn tenants_that_go_on_changing_their_jobs_are_set_aside() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.add_tenant("bad");
    let trigger = "CREATE FUNCTION public.changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'job \"%\" has a function, so its checks cannot be claimed', NEW.job USING ERRCODE = '42809';
         END $$;
         CREATE TRIGGER changed BEFORE INSERT ON awty_internal.lease FOR EACH ROW WHEN (NEW.job = 'http.bad')
         EXECUTE FUNCTION public.changed()";
    shop.cluster.superuser("postgres").batch_execute(trigger).unwrap();
    let gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s')", receiver.uri("/ok")));
    receiver.called("/ok", 1);
    let mut bad = shop.cluster.client("postgres", "bad");
    bad.batch_execute("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 s')").unwrap();
    until("jobs that are set aside", || {
        let metrics = gateway.get("/metrics").1;
        if metrics.contains("awty_gateway_jobs_set_aside_total 0") { Err(metrics) } else { Ok(()) }
    });
    receiver.called("/ok", receiver.seen("/ok").len() + 2);
}
