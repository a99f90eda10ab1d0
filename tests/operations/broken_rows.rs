//! Rows that no function of awty would have written: a superuser may write anything.

use crate::shop::{NOTE, Shop};

/// Each breaks one row of the check or job `bad`; constraints that would refuse it are dropped before.
const BREAKS: [&str; 30] = [
    "UPDATE awty.job SET function_name = 'missing' WHERE name = 'bad'",
    "UPDATE awty.job SET function_schema = '' WHERE name = 'bad'",
    "UPDATE awty.job SET role = 0 WHERE name = 'bad'",
    "UPDATE awty.job SET role = 4294967295 WHERE name = 'bad'",
    "UPDATE awty.job SET set_based = true WHERE name = 'bad'",
    "UPDATE awty.job SET slot = '7 s' WHERE name = 'bad'",
    "UPDATE awty.job SET slot = '-1 s' WHERE name = 'bad'",
    "UPDATE awty.job SET slot = '178000000 years' WHERE name = 'bad'",
    "UPDATE awty.job SET timeout = '-1 s' WHERE name = 'bad'",
    "UPDATE awty.job SET timeout = '178000000 years' WHERE name = 'bad'",
    "UPDATE awty.job SET max_checks = -1 WHERE name = 'bad'",
    "UPDATE awty.job SET max_horizon = '-1 s' WHERE name = 'bad'",
    "UPDATE awty.job SET max_attempts = 0 WHERE name = 'bad'",
    "UPDATE awty.job SET retry_after = '-178000000 years' WHERE name = 'bad'",
    "UPDATE awty.job SET on_missed = 'never' WHERE name = 'bad'",
    "UPDATE awty.job SET keep_history = '' WHERE name = 'bad'",
    "UPDATE awty.job SET max_lateness = '-1 s' WHERE name = 'bad'",
    "UPDATE awty.job SET allowed = '{0,4294967295}' WHERE name = 'bad'",
    "UPDATE awty.job SET resumed_at = 'infinity' WHERE name = 'bad'",
    "UPDATE awty.job SET name = repeat('x', 100000) WHERE name = 'bad'",
    "UPDATE awty.future_job SET job = 'nobody''s' WHERE job = 'bad'",
    "UPDATE awty.future_job SET entity_name = '', entity_key = repeat('x', 2000) WHERE job = 'bad'",
    "UPDATE awty.future_job SET args = 'null' WHERE job = 'bad'",
    "UPDATE awty.future_job SET first_check_at = 'infinity' WHERE job = 'bad'",
    "UPDATE awty.future_job SET next_check_at = '-infinity' WHERE job = 'bad'",
    "UPDATE awty.future_job SET next_check_at = '4713-01-01 BC' WHERE job = 'bad'",
    "UPDATE awty.future_job SET check_count = -5, attempt = -2147483648 WHERE job = 'bad'",
    "UPDATE awty.future_job SET scheduled_by = 0 WHERE job = 'bad'",
    "INSERT INTO awty.tally SELECT id, -1, 2147483647 FROM awty.future_job WHERE job = 'bad'",
    "INSERT INTO awty.intent VALUES (2147483647, '{}'), (-1, '{-1,0}')",
];

/// P7: a row that was broken by hand stops itself at most, and nothing that is said of it is an internal error.
#[test]
fn a_broken_row_stops_only_itself() {
    let shop = Shop::open();
    shop.job("bad", NOTE, "");
    shop.job("good", NOTE, "");
    shop.cluster.execute(
        "postgres",
        &["DO $$
           DECLARE c record;
           BEGIN
               FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
                        WHERE contype = 'c' AND conrelid IN ('awty.job'::regclass, 'awty.future_job'::regclass) LOOP
                   EXECUTE format('ALTER EXTENSION awty DROP TABLE %s', c.t);
                   EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname);
                   EXECUTE format('ALTER EXTENSION awty ADD TABLE %s', c.t);
               END LOOP;
           END $$"],
    );
    for (number, script) in BREAKS.iter().enumerate() {
        println!("{script}");
        shop.schedule("bad", "bad", "after => '0'");
        let mut dba = shop.cluster.superuser("postgres");
        // Some are refused all the same; then there is nothing broken.
        if let Err(error) = dba.batch_execute(script) {
            println!("  refused: {error}");
        }
        let key = format!("good {number}");
        shop.schedule(&key, "good", "after => '0'");
        assert_eq!(shop.end_of(&key).outcome, "done", "{script}");
        // What reads all of it does so.
        shop.cluster.psql("postgres", "SELECT * FROM awty.status");
        // As it was.
        dba.batch_execute(
            "TRUNCATE awty.future_job, awty.tally, awty.intent; DELETE FROM awty.job WHERE name <> 'good'",
        )
        .unwrap();
        shop.run("SELECT awty.register('bad', 'shop.bad')");
    }
    let log = shop.cluster.log_since(0);
    assert!(!log.contains("XX000") && !log.contains("PANIC") && !log.contains("terminated by signal"), "{log}");
}

/// P5: a slot that no clock reaches back to is due, and does not hide from the launcher what else its role has to run.
#[test]
fn a_slot_of_minus_infinity_is_due() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.schedule("ancient", "note", "after => '1 hour'");
    // Written behind the engine's back: a visit finds it.
    shop.cluster
        .execute("postgres", &["UPDATE awty.future_job SET first_check_at = '-infinity', next_check_at = '-infinity'"]);
    shop.job("other", NOTE, "");
    shop.await_true("its run", "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE outcome = 'done')");
}
