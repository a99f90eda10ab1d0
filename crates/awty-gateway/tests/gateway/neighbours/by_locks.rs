use super::hood::Neighbour;
use awty_testkit::postgres::Client;
use std::time::Duration;

#[track_caller]
pub fn must(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

pub fn locks_due_checks(n: &Neighbour, client: &mut Client) {
    let (origin, job) = (n.traps.quick.uri(""), n.job());
    let each = |conflict: &str| {
        format!(
            "SELECT awty.schedule_many('{origin}', array_agg('/locked#' || i), '{job}', after => '0', on_conflict => '{conflict}')
             FROM generate_series(1, 200) AS i"
        )
    };
    must(client, &each("replace"));
    must(client, &format!("BEGIN; {}", each("keep")));
    n.hold();
}

pub fn locks_schedules(n: &Neighbour, client: &mut Client) {
    let uri = n.traps.quick.uri("/locked/");
    must(client, &format!("SELECT awty_http.schedule('{uri}' || i, every => '1 s') FROM generate_series(1, 20) AS i"));
    must(client, "BEGIN; SELECT awty_http_internal.lock(id) FROM awty_http.endpoint");
    n.hold();
}

pub fn unregisters(n: &Neighbour, client: &mut Client) {
    let (origin, job) = (n.traps.quick.uri(""), n.job());
    must(client, &format!("SELECT awty.alter_target('{job}', '{origin}', rate => 1, burst => 1)"));
    must(client, &format!("SELECT awty_http.send('{origin}/limited/' || i) FROM generate_series(1, 200) AS i"));
    n.wait(Duration::from_secs(1));
    // Retries `awty.unregister()`, because it may fail while the gateway changes rows of the job.
    while client.batch_execute(&format!("BEGIN; SELECT awty.unregister('{job}')")).is_err() {
        must(client, "ROLLBACK");
        if !n.wait(Duration::from_millis(50)) {
            return;
        }
    }
    n.hold();
}

pub fn takes_names(n: &Neighbour, client: &mut Client) {
    must(client, "BEGIN");
    for name in ["http.newco", "http.victim-2", "orders_2"] {
        must(client, &format!("SELECT awty.register('{name}', heartbeat => '15 s')"));
    }
    for name in ["http.victim", "orders", "awty_http.roll_up"] {
        must(client, "SAVEPOINT s");
        let taken =
            client.batch_execute(&format!("SELECT awty.register('{name}', heartbeat => '15 s', replace => true)"));
        assert!(taken.is_err(), "{} has the name {name}", n.role);
        must(client, "ROLLBACK TO s");
    }
    n.hold();
}

pub fn meddles(n: &Neighbour, client: &mut Client) {
    let (origin, path, id) = (&n.target.origin, &n.target.path, &n.target.id);
    for sql in [
        format!("SELECT awty.cancel('{origin}', '{path}')"),
        format!("SELECT awty.cancel('{origin}', '{path}', 'http.victim')"),
        format!("SELECT awty.check_now('{origin}', '{path}', 'http.victim')"),
        format!("SELECT awty.hold('{origin}', '{path}', 'http.victim')"),
        format!("SELECT awty.schedule('{origin}', '{path}', 'http.victim', after => '1 day')"),
        format!("SELECT awty.alter_target('http.victim', '{origin}', blocked_until => 'infinity')"),
        format!("SELECT awty_http_internal.lock('{id}')"),
        format!("SELECT awty_http_internal.pause('{id}')"),
        format!("SELECT awty_http.unschedule('{origin}{path}')"),
        "SELECT * FROM awty.claim('{http.victim}', 'thief', 100)".to_owned(),
        "SELECT awty.pause('http.victim')".to_owned(),
        "SELECT awty.unregister('http.victim')".to_owned(),
        "SELECT awty.allow('http.victim', current_user::name)".to_owned(),
        "SELECT awty_http.drop_tenant('victim')".to_owned(),
        "SELECT awty_http.create_token('victim', 'admin', '1 day')".to_owned(),
        "SELECT awty.unwatch('orders')".to_owned(),
        "UPDATE awty_http_internal.endpoint SET paused = true".to_owned(),
        "DELETE FROM awty.future_job".to_owned(),
        "LOCK TABLE awty.future_job IN SHARE MODE".to_owned(),
        "SET ROLE victim".to_owned(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('gateway', 'victim')".to_owned(),
    ] {
        drop(client.batch_execute(&sql));
    }
    n.wait(Duration::from_millis(300));
}
