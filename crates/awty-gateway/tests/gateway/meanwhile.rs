use crate::receiver::Receiver;
use crate::shop::{Shop, until};

#[test]
fn leases_are_beaten_while_a_lock_keeps_their_calls_from_being_known() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', heartbeat => '10 s')"]);
    let _gateways = [shop.gateway("one"), shop.gateway("two")];
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/first")));
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "1");
    let mut other = shop.cluster.superuser("postgres");
    other.batch_execute("BEGIN; LOCK TABLE awty_http_internal.endpoint IN ACCESS EXCLUSIVE MODE").unwrap();
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/second")));
    shop.await_text("SELECT count(*) FROM awty.lease", "1");
    let lease = shop.text("SELECT lease FROM awty.lease");
    let expiry = shop.text("SELECT expires_at FROM awty.lease");
    let beaten = format!(
        "SELECT count(*) FROM awty.lease WHERE lease = {lease} AND expires_at > '{expiry}'::timestamptz + '10 s'"
    );
    shop.await_text(&beaten, "1");
    other.batch_execute("COMMIT").unwrap();
    shop.await_text("SELECT count(*) FROM awty.attempt WHERE ok", "2");
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE NOT ok"), "0");
    assert_eq!(receiver.seen("/second").len(), 1);
}

#[test]
fn no_name_of_a_roles_own_gets_into_the_gateways_statements() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app(
        "CREATE TABLE public.trap (who text); GRANT INSERT ON public.trap TO PUBLIC;
         CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.trap VALUES (session_user); RETURN QUERY SELECT pg_catalog.unnest($1); END $$;
         CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.trap VALUES (session_user); RETURN $1 * $2::numeric; END $$;
         CREATE OPERATOR public.* (FUNCTION = public.times, LEFTARG = numeric, RIGHTARG = integer);
         CREATE FUNCTION public.glue(bigint, text) RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.trap VALUES (session_user); RETURN concat($1, $2); END $$;
         CREATE OPERATOR public.|| (FUNCTION = public.glue, LEFTARG = bigint, RIGHTARG = text)",
    );
    let gateway = shop.gateway("one");
    shop.app(&format!(
        "SELECT awty_http.schedule('{}', every => '1 s', timeout => '5 s', max_lateness => '1 h')",
        receiver.uri("/ok")
    ));
    shop.app(&format!("SELECT awty_http.send('{}')", receiver.uri("/status/503")));
    until("calls", || if receiver.seen("/ok").len() > 1 { Ok(()) } else { Err("none".into()) });
    shop.await_text("SELECT count(*) > 0 FROM awty.attempt WHERE NOT ok", "true");
    assert_eq!(gateway.get("/metrics").0, 200);
    assert_eq!(shop.text("SELECT string_agg(who, ' ') FROM public.trap"), "");
}

#[test]
fn a_job_that_goes_does_not_hold_up_the_others() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute(
        "postgres",
        &["CREATE ROLE shopper LOGIN", "SELECT awty_http.add_tenant('shopper')", "GRANT shopper TO gateway"],
    );
    let gateway = shop.gateway("one");
    shop.app(&format!("SELECT awty_http.schedule('{}', every => '1 s', jitter => '0')", receiver.uri("/ok")));
    let two_more = || {
        let seen = receiver.seen("/ok").len();
        until("two calls", || if receiver.seen("/ok").len() > seen + 1 { Ok(()) } else { Err("too few".into()) });
    };
    two_more();
    until("the log", || if gateway.log().contains("http.shopper") { Ok(()) } else { Err(gateway.log()) });
    shop.cluster.execute("postgres", &["SELECT awty.unregister('http.shopper')"]);
    two_more();
    assert!(!gateway.log().contains("a request to the database failed"), "{}", gateway.log());
}

#[test]
fn a_call_ends_before_its_lease_does() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["SELECT awty.alter('http.app', timeout => '8 s')"]);
    let gateway = shop.gateway("one");
    let uri = receiver.uri("/hang");
    let retries = "retries => '{\"max_attempts\": 1}'";
    shop.app(&format!("SELECT awty_http.schedule('{uri}', after => '1 s', timeout => '15 min', {retries})"));
    receiver.called("/hang", 1);
    // Extends the lease, so that a pause of the machine does not make the answer invalid.
    shop.cluster.execute("postgres", &["UPDATE awty_internal.lease SET deadline = deadline + interval '5 min'"]);
    shop.await_text("SELECT string_agg(result ->> 'fault', ',') FROM awty.attempt", "timeout");
    shop.await_text("SELECT string_agg(outcome, ',') FROM awty.future_job_history", "failed");
    let within = "SELECT substring(message from 'within ([0-9.]+)s')::float BETWEEN 1 AND 7.5 FROM awty.attempt";
    assert_eq!(shop.text(within), "true", "{}", shop.text("SELECT message FROM awty.attempt"));
    drop(gateway);
}

#[test]
fn a_database_behind_a_socket_is_not_called() {
    let shop = Shop::open();
    let _gateway = shop.gateway("one");
    for uri in ["http://127.0.0.1:5432/", "http://[::1]:5432/"] {
        shop.app(&format!("SELECT awty_http.send('{uri}')"));
    }
    shop.await_text("SELECT string_agg(result ->> 'fault', ',') FROM awty.attempt", "blocked-address,blocked-address");
}
