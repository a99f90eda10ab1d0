use crate::cpu::session;
use crate::options::Options;
use crate::results::{Outcome, Wanted};
use crate::rivals::hand_out;
use crate::shop::{Shop, one};
use crate::stats::Pairs;
use crate::work::{rates, speeds};
use awty_testkit::postgres::Client;

const BATCH: i32 = 500;
const FILL: &str = "SELECT count(*) FROM (SELECT awty.schedule_many('orders', array_agg(n::text), 'mail', after => '0') FROM generate_series(1, $1) AS n) AS s";
const FILL_PLAIN: &str = "WITH put AS (INSERT INTO plain.pending (id, job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
    OVERRIDING SYSTEM VALUE SELECT n, 'mail', 'orders', n::text, now(), now(), 'postgres'::regrole, now() FROM generate_series(1, $1) AS n RETURNING 1)
    SELECT count(*) FROM put";
const FILL_QUEUE: &str = "WITH put AS (INSERT INTO plain.queue SELECT n, n::text, NULL, now() FROM generate_series(1, $1) AS n RETURNING 1) SELECT count(*) FROM put";

fn drain(client: &mut Client, claim: &str, complete: &str, n: u32) {
    let mut done = 0;
    while done < n as usize {
        let leases: Vec<i64> = client.query(claim, &[&BATCH]).unwrap().iter().map(|row| row.get(0)).collect();
        assert!(!leases.is_empty(), "{done} of {n} were handed out");
        client.execute(complete, &[&leases]).unwrap();
        done += leases.len();
    }
}

pub fn outside(options: &Options) -> Outcome {
    let mut outcome = Outcome::new("outside");
    let n = options.size(10_000, 100_000);
    let shop = Shop::open(&[]);
    let mut client = shop.cluster.superuser("postgres");
    client.batch_execute(include_str!("outside.sql")).unwrap();
    client.batch_execute("SELECT awty.register('mail'); SET synchronous_commit = off").unwrap();
    let client = std::cell::RefCell::new(client);
    let awty = || {
        let client = &mut *client.borrow_mut();
        one(client, FILL, &[&(n as i32)]);
        client.batch_execute("VACUUM awty.future_job, awty_internal.lease").unwrap();
        client.batch_execute("SELECT pg_sleep(2)").unwrap();
        let claim = "SELECT lease FROM awty.claim('{mail}', 'bench', $1)";
        session(client, |client| drain(client, claim, "SELECT awty.complete_many($1)", n))
    };
    let plain = || {
        let client = &mut *client.borrow_mut();
        one(client, FILL_PLAIN, &[&(n as i32)]);
        client.batch_execute("VACUUM ANALYZE plain.pending, plain.lease").unwrap();
        let [claim, complete] = ["SELECT lease FROM plain.claim($1)", "SELECT plain.complete($1)"];
        let spent = session(client, |client| drain(client, claim, complete, n));
        client.batch_execute("TRUNCATE plain.history, plain.attempt").unwrap();
        spent
    };
    let times = Pairs::with_cpu("claim 500 + complete 500, plain SQL", options.rounds(), awty, plain);
    let detail = rates(n, ["awty", "plain SQL"], &times[0]);
    let what = ["external workers: claim 500 + complete 500, one connection", "plain SQL with the same bookkeeping"];
    outcome.ratios(what, &speeds(times), Wanted::AtLeast(0.6), detail);
    let queue = || {
        let client = &mut *client.borrow_mut();
        one(client, FILL_QUEUE, &[&(n as i32)]);
        client.batch_execute("VACUUM ANALYZE plain.queue").unwrap();
        let claim =
            "SELECT id FROM plain.queue WHERE due <= now() ORDER BY due, id LIMIT $1::int FOR UPDATE SKIP LOCKED";
        client.batch_execute("BEGIN").unwrap();
        let complete = "DELETE FROM plain.queue WHERE id = ANY ($1)";
        let spent = session(client, |client| drain(client, claim, complete, n));
        client.batch_execute("COMMIT").unwrap();
        spent
    };
    let times = Pairs::with_cpu("the same, FOR UPDATE SKIP LOCKED", options.rounds(), awty, queue);
    let detail = rates(n, ["awty", "the queue"], &times[0]);
    let what = ["for comparison: the same", "a table and FOR UPDATE SKIP LOCKED, without leases, history or keys"];
    outcome.ratios(what, &speeds(times), Wanted::Nothing, detail);
    match hand_out(&shop, 1_000) {
        Err(error) => outcome.note(format!("graphile-worker is missing here and was not measured: {error}")),
        Ok((_, version)) => {
            let graphile = || hand_out(&shop, n).unwrap_or_else(|error| panic!("graphile-worker: {error}")).0;
            let times = Pairs::measure("the same, graphile-worker", options.rounds(), || awty().clock, graphile);
            let detail = rates(n, ["awty", "graphile-worker"], &times);
            let against =
                format!("graphile-worker {version}, 24 at once, 1000 fetched at a time, whose task is nothing");
            let [times] = speeds([times]);
            outcome.ratio(["for comparison: the same", &against], &times, Wanted::Nothing, detail);
        }
    }
    outcome
}
