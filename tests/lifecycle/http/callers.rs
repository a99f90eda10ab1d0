use super::Http;

const SENT: &str = "SELECT entity_key || content FROM awty_http_internal.content JOIN awty.future_job USING (entity_name, entity_key, job)
    WHERE job = 'http.app' ORDER BY entity_key";
const ORDERS: &str = "CREATE TABLE app.orders (id bigint PRIMARY KEY, placed_at timestamptz NOT NULL DEFAULT now(),
    status text NOT NULL DEFAULT 'UNSHIPPED')";

fn call(order: i32) -> String {
    format!("/order#app/order-{order}{{\"body\": {{\"order\": {order}}}, \"method\": \"POST\"}}")
}

fn send(order: &str) -> String {
    format!(
        "SELECT awty_http.send('https://api.example.com/order', jsonb_build_object('order', {order}), 'order-' || {order})"
    )
}

#[test]
fn a_trigger_sends_if_its_transaction_commits() {
    let http = Http::open();
    let mut app = http.client("app");
    let trigger = format!(
        "{ORDERS};
         CREATE FUNCTION app.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM x FROM ({}) AS q (x); RETURN NULL; END $$;
         CREATE TRIGGER tell AFTER INSERT ON app.orders FOR EACH ROW EXECUTE FUNCTION app.tell()",
        send("NEW.id")
    );
    app.batch_execute(&trigger).unwrap();
    app.batch_execute("BEGIN; INSERT INTO app.orders VALUES (1)").unwrap();
    let of_own: i64 = app.query_one(&format!("SELECT count(*) FROM ({SENT}) AS q"), &[]).unwrap().get(0);
    assert_eq!(of_own, 1, "it was not sent at all");
    app.batch_execute("ROLLBACK").unwrap();
    assert_eq!(http.ask("app", SENT), "");
    app.batch_execute("BEGIN; INSERT INTO app.orders VALUES (1), (2); COMMIT").unwrap();
    assert_eq!(http.ask("app", SENT), format!("{} {}", call(1), call(2)));
    assert_eq!(http.claim_at_least(2).len(), 2);
}

#[test]
fn a_check_sends_if_its_run_commits() {
    let http = Http::open();
    let job = format!(
        "CREATE FUNCTION app.tell(j awty.future_job) RETURNS void LANGUAGE sql AS $$ {}; SELECT 1 / (j.entity_key::integer - 1) $$;
         SELECT awty.register('tell', 'app.tell', max_attempts => 1);
         SELECT awty.schedule('orders', n::text, 'tell', after => '0') FROM generate_series(1, 2) AS n",
        send("j.entity_key::integer")
    );
    http.client("app").batch_execute(&job).unwrap();
    let ended = "SELECT count(*) = 2 FROM awty.future_job_history WHERE job = 'tell'";
    http.cluster.await_sql("postgres", "both checks to end", ended);
    let ends = "SELECT string_agg(entity_key || outcome, ' ' ORDER BY entity_key) FROM awty.future_job_history WHERE job = 'tell'";
    assert_eq!(http.cluster.psql("postgres", ends).trim(), "1failed 2done");
    assert_eq!(http.ask("app", SENT), call(2));
    assert_eq!(http.claim().len(), 1);
}

#[test]
fn what_an_alert_calls_sends() {
    let http = Http::open();
    let watch = format!(
        "{ORDERS};
         CREATE FUNCTION app.tell(a awty.alert) RETURNS void LANGUAGE sql AS $$ {} $$;
         SELECT awty.watch('app.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours', call => 'app.tell');
         INSERT INTO app.orders VALUES (1, now()), (2, now() - interval '4 hours')",
        send("a.entity_key::integer")
    );
    http.client("app").batch_execute(&watch).unwrap();
    let raised = "SELECT EXISTS (SELECT FROM awty.alert WHERE entity_key = '2' AND cleared_at IS NULL)";
    http.cluster.await_sql("postgres", "the alert", raised);
    assert_eq!(http.ask("app", SENT), call(2));
    assert_eq!(http.claim().len(), 1);
}
