//! An HTTP call that was due before pg_upgrade must have the same key in the new server.

use awty_testkit::Cluster;

const DATABASE: &str = "postgres";
/// Lists rows that an upgrade must not change. Omits the row of the pending check, because each claim changes this row.
const ROWS: &str = "
    SELECT string_agg(line, E'\n' ORDER BY line) FROM (
        SELECT 'endpoint ' || t::text FROM awty_http.endpoint AS t
        UNION ALL SELECT 'tenant ' || t::text FROM awty_http.tenant AS t
        UNION ALL SELECT 'token ' || t::text FROM awty_http.token AS t
        UNION ALL SELECT 'stat ' || t::text FROM awty_http.stat AS t
        UNION ALL SELECT 'sent ' || t::text FROM awty_http_internal.sent AS t
        UNION ALL SELECT 'content ' || t::text FROM awty_http_internal.content AS t
        UNION ALL SELECT 'repetition ' || t::text FROM awty_internal.repetition AS t
        UNION ALL SELECT 'dumped ' || t.oid::regclass::text FROM pg_extension AS e, unnest(e.extconfig) AS t (oid) WHERE e.extname = 'awty_http'
        UNION ALL SELECT 'member ' || pg_describe_object(classid, objid, objsubid) FROM pg_depend
            WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'awty_http')
    ) AS s (line)";

const DUE: &str = "SELECT overdue = 1 FROM awty.job_status WHERE job = 'http.app'";

pub struct Calls {
    rows: String,
    key: String,
}

pub fn set_up(old: &Cluster) -> Calls {
    old.execute(
        DATABASE,
        &[
            "CREATE EXTENSION awty_http",
            "CREATE ROLE app LOGIN",
            "CREATE ROLE gateway LOGIN",
            "GRANT app TO gateway; GRANT USAGE ON SCHEMA awty, awty_http TO app, gateway",
            "SELECT awty_http.add_tenant('app')",
        ],
    );
    let mut app = old.client(DATABASE, "app");
    let acts = "SELECT awty_http.schedule('https://a.example/tick', every => '12 h', starts => now() + interval '10 days');
        SELECT awty_http.schedule('https://a.example/paused', cron => '30 3 * * *', zone => 'Europe/Berlin', paused => true);
        SELECT awty_http.schedule('https://a.example/gone', every => '12 h'), awty_http.unschedule('https://a.example/gone');
        SELECT awty_http.schedule('https://a.example/once', after => '1 s'), awty_http.create_token('app', 'write', '90 days')";
    app.batch_execute(acts).unwrap();
    old.await_sql(DATABASE, "the first call to be due", DUE);
    complete(old);
    old.execute(DATABASE, &["SELECT awty_http_internal.roll_up(now() + interval '1 hour')"]);
    assert_eq!(
        old.psql(DATABASE, "SELECT count(*) FROM awty_http.stat WHERE ok = 1").trim(),
        "4",
        "by hour and by day, of the schedule and of the job"
    );
    app.batch_execute("SELECT awty_http.send('https://a.example/paid', '{\"order\": 42}', key => 'order-42')").unwrap();
    let key = claimed(old);
    Calls { rows: old.psql(DATABASE, ROWS), key }
}

fn claimed(cluster: &Cluster) -> String {
    let mut gateway = cluster.client(DATABASE, "gateway");
    cluster.await_sql(DATABASE, "the send to be due", DUE);
    let lease =
        gateway.query_one("SELECT lease, key, entity_key FROM awty.claim('{http.app}', 'upgrade')", &[]).unwrap();
    assert_eq!(lease.get::<_, String>(2), "/paid#app/order-42");
    let given_back = gateway.query_one("SELECT awty.requeue(ARRAY[$1::bigint])", &[&lease.get::<_, i64>(0)]).unwrap();
    assert_eq!(given_back.get::<_, i64>(0), 1);
    lease.get(1)
}

fn complete(cluster: &Cluster) {
    let answer = "SELECT awty.complete(lease) FROM awty.claim('{http.app}', 'upgrade')";
    let ended = cluster.client(DATABASE, "gateway").query_one(answer, &[]).unwrap();
    assert_eq!(ended.get::<_, String>(0), "ended");
}

pub fn go_on(new: &Cluster, before: &Calls) {
    assert_eq!(new.psql(DATABASE, ROWS), before.rows);
    assert_eq!(claimed(new), before.key);
    complete(new);
    let mut app = new.client(DATABASE, "app");
    let again =
        app.execute("SELECT awty_http.send('https://a.example/paid', '{\"order\": 43}', key => 'order-42')", &[]);
    assert_eq!(again.unwrap_err().code().unwrap().code(), "42710", "the key is remembered");
    app.batch_execute(
        "SELECT awty_http.schedule('https://a.example/tick', every => '13 h', starts => now() + interval '10 days');
         SELECT awty_http.unschedule('https://a.example/paused')",
    )
    .unwrap();
    let left = "SELECT string_agg(entity_key, ' ') FROM awty.future_job WHERE job = 'http.app'";
    assert_eq!(new.psql(DATABASE, left).trim(), "/tick");
}
