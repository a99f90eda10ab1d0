use super::Http;
use awty_testkit::postgres::Client;

const READ: [&str; 20] = [
    "awty.job",
    "awty.future_job",
    "awty.future_job_history",
    "awty.repetition",
    "awty.rule",
    "awty.alert",
    "awty.lease",
    "awty.attempt",
    "awty.target",
    "awty.failing",
    "awty.job_status",
    "awty_http.tenant",
    "awty_http.endpoint",
    "awty_http.stat",
    "awty_http_internal.content",
    "awty_http_internal.sent",
    "awty_http_internal.schedule_status",
    "awty_http_internal.send_status",
    "awty_http_internal.problem",
    "awty_internal.recent",
];

fn read(client: &mut Client, table: &str) -> (i64, i64) {
    let mut transaction = client.transaction().unwrap();
    let mut number = |sql: &str| transaction.query_one(sql, &[]).unwrap().get::<_, i64>(0);
    let calls = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_xact_user_functions";
    let before = number(calls);
    let rows = number(&format!("SELECT count(t::text) FROM {table} AS t"));
    (rows, number(calls) - before)
}

impl Http {
    fn counting(&self, role: &str) -> Client {
        self.cluster.execute(
            "postgres",
            &[
                &format!("ALTER ROLE {role} SET track_functions = 'all'"),
                &format!("GRANT USAGE ON SCHEMA awty_internal TO {role}"),
            ],
        );
        self.client(role)
    }

    fn strangers(&self, count: i32) {
        let register = format!(
            "SELECT count(awty.register('stranger' || (SELECT count(*) FROM awty.job) || '-' || n, heartbeat => '15 s', run_as => 'other'))
             FROM generate_series(1, {count}) AS n"
        );
        self.cluster.execute("postgres", &["SET client_min_messages = error", &register]);
    }
}

#[test]
fn jobs_of_strangers_add_no_call_to_a_read() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://api.example.com/a', '1 h', headers => '{\"X-A\": \"b\"}')");
    http.ask("app", "SELECT awty_http.send('https://api.example.com/send', key => 'k')");
    http.claim();
    http.ask("gateway", "SELECT awty.fail(lease, 'no', final => true) FROM awty.lease");
    let mut client = http.counting("app");
    http.strangers(2);
    let few = READ.map(|table| (table, read(&mut client, table)));
    http.strangers(200);
    let many = READ.map(|table| (table, read(&mut client, table)));
    assert_eq!(few, many);
    assert!(few.iter().any(|(_, (_, calls))| *calls > 0), "no call is counted");
}

#[test]
fn content_is_read_with_few_plans_however_many_tenants_there_are() {
    let http = Http::open();
    http.ask("app", "SELECT awty_http.schedule('https://api.example.com/a', '1 h', headers => '{\"X-A\": \"b\"}')");
    http.ask("app", "SELECT awty_http.send('https://api.example.com/send', key => 'k')");
    let mut client = http.counting("gateway");
    let mut owner = http.counting("app");
    let mut read_all = || {
        [
            ("content", read(&mut client, "awty_http_internal.content")),
            ("endpoints", read(&mut client, "awty_http.endpoint")),
            ("sends", read(&mut owner, "awty_http_internal.sent")),
        ]
    };
    let few = read_all();
    for n in 0..30 {
        http.cluster.execute(
            "postgres",
            &[
                &format!("CREATE ROLE tenant{n}"),
                &format!("SELECT awty_http.add_tenant('tenant{n}')"),
                &format!(
                    "SELECT awty.allow('http.tenant{n}', 'gateway', 'claim'), awty.allow('http.tenant{n}', 'app')"
                ),
            ],
        );
    }
    let many = read_all();
    assert_eq!(few, many);
    let rows = few.map(|(_, (rows, _))| rows);
    assert_eq!(rows, [2, 1, 1]);
}
