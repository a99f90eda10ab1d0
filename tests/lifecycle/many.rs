use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::postgres::Client;
use std::thread;

const SESSIONS: usize = 5;
const STEPS: usize = 300;
const ON_CONFLICT: [&str; 4] = ["replace", "keep", "earliest", "latest"];

#[derive(Default, Debug)]
struct Told {
    written: i64,
    cancelled: i64,
}

fn call(session: usize, step: usize, jobs: &[&'static str]) -> (Option<&'static str>, String) {
    let job = jobs[step / 2 % jobs.len()];
    let on_conflict = ON_CONFLICT[(step / 6 + session) % 4];
    let when = format!("after => '{} s', on_conflict => '{on_conflict}'", if job == "beat" { 1 } else { 3600 + step });
    match (session + step) % 7 {
        0..=2 => (Some(job), format!("SELECT awty.schedule_many('orders', shop.some_keys(), '{job}', {when})")),
        3 => (None, format!("SELECT awty.cancel_many('orders', shop.some_keys(), '{job}')")),
        4 => (None, "SELECT awty.cancel_many('orders', shop.some_keys())".into()),
        5 if jobs.len() > 1 => {
            let sql = "SELECT count(awty.repeat('beat', every => '1 s', entity_name => 'orders', entity_key => k.keys[1])) * 0
                       FROM shop.some_keys() AS k (keys)";
            (None, sql.into())
        }
        5 => (None, "SELECT awty.cancel('orders', keys[1]) FROM shop.some_keys() AS k (keys)".into()),
        _ => {
            let sql = "SELECT count(awty.schedule('orders', keys[1], 'one', after => '1 day'))
                       FROM shop.some_keys() AS k (keys)";
            (Some("one"), sql.into())
        }
    }
}

fn work(mut client: Client, session: usize, jobs: &[&'static str]) -> Result<Told, String> {
    let seed = session as f64 / SESSIONS as f64;
    client.batch_execute(&format!("SET client_min_messages = warning; SELECT setseed({seed})")).unwrap();
    let mut told = Told::default();
    for step in 0..STEPS {
        let (job, sql) = call(session, step, jobs);
        let mut transaction = client.transaction().unwrap();
        let count: i64 =
            transaction.query_one(&sql, &[]).map_err(|error| format!("session {session}, {sql}: {error:?}"))?.get(0);
        if step % 8 == 7 {
            transaction.rollback().unwrap();
            continue;
        }
        transaction.commit().unwrap();
        match job {
            Some("one") => told.written += count,
            Some(_) => {}
            None => told.cancelled += count,
        }
    }
    Ok(told)
}

fn busy(jobs: &[&'static str]) -> (Shop, Told) {
    let shop = Shop::on(Cluster::builder().set("deadlock_timeout", "50ms").start());
    for job in jobs {
        shop.job(job, NOTE, "");
    }
    shop.run(
        "CREATE FUNCTION shop.some_keys() RETURNS text[] VOLATILE LANGUAGE sql AS $$
             SELECT array_agg(k::text) FROM
                 (SELECT k FROM generate_series(1, 60) AS k ORDER BY random() LIMIT 5 + (random() * 35)::integer) AS s $$",
    );
    let sessions: Vec<_> = thread::scope(|scope| {
        let spawn = |session| {
            let client = shop.client();
            scope.spawn(move || work(client, session, jobs))
        };
        let threads: Vec<_> = (0..SESSIONS).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all = Told::default();
    for told in sessions {
        let told = told.unwrap();
        all.written += told.written;
        all.cancelled += told.cancelled;
    }
    (shop, all)
}

fn expect_nothing_is_lost(shop: &Shop, told: &Told) {
    let pending: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.future_job WHERE job = 'one'");
    let ended = "SELECT count(*) FROM awty.future_job_history WHERE";
    let ended_of_one: i64 = shop.cluster.value("postgres", &format!("{ended} job = 'one'"));
    let cancelled: i64 = shop.cluster.value("postgres", &format!("{ended} outcome = 'cancelled'"));
    assert_eq!((pending + ended_of_one, cancelled), (told.written, told.cancelled), "{pending} pending");
}

#[test]
fn overlapping_sessions_neither_fail_nor_lose_anything() {
    let (shop, told) = busy(&["one"]);
    expect_nothing_is_lost(&shop, &told);
}

#[test]
fn overlapping_sessions_and_runs_of_repetitions_neither_fail_nor_lose_anything() {
    let (shop, told) = busy(&["one", "beat"]);
    expect_nothing_is_lost(&shop, &told);
    let alone = "SELECT count(*) FROM awty.repetition WHERE next_check_at IS NULL";
    assert_eq!(shop.cluster.value::<i64>("postgres", alone), 0, "repetitions without a check");
    shop.run("SELECT awty.cancel_many('orders', array_agg(k::text)) FROM generate_series(1, 60) AS k");
    let left = "SELECT (SELECT count(*) FROM awty.future_job) + (SELECT count(*) FROM awty.repetition)";
    assert_eq!(shop.cluster.value::<i64>("postgres", left), 0, "left after all are cancelled");
}
