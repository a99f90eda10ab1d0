use awty_testkit::Cluster;
use awty_testkit::fixture::{GATE, Shop};

fn schedule(shop: &Shop, n: i32) {
    shop.run(&format!(
        "SELECT awty.schedule('orders', n::text, 'many', at => now() + interval '1 s') FROM generate_series(1, {n}) AS n"
    ));
}

const NOTE_ALL: &str =
    "INSERT INTO shop.note (entity_key, what) SELECT c.entity_key, cardinality(j) FROM unnest(j) AS c;";

#[test]
fn the_checks_of_a_slot_come_in_one_call_and_are_answered_in_order() {
    let shop = Shop::on(Cluster::builder().set("awty.max_workers_per_role", "1").start());
    let even_again = format!(
        "BEGIN {NOTE_ALL}
         RETURN ARRAY(SELECT CASE WHEN c.entity_key::integer % 2 = 0 AND c.check_count = 0 THEN clock_timestamp() END
                      FROM unnest(j) WITH ORDINALITY AS c ORDER BY c.ordinality); END"
    );
    shop.set_job("many", &even_again, "");
    schedule(&shop, 10);
    shop.await_all_ended();
    for key in 1..=10 {
        let end = shop.end_of(&key.to_string());
        let checks = if key % 2 == 0 { 2 } else { 1 };
        assert_eq!((end.why(), end.check_count), (("done", None), checks), "{end:?}");
    }
    let calls =
        "SELECT string_agg(DISTINCT what, ' ') FROM (SELECT what FROM shop.note ORDER BY n LIMIT 10) AS first_ten";
    assert_eq!(shop.cluster.psql("postgres", calls).trim(), "10");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM shop.note"), 15);
}

#[test]
fn one_bad_row_fails_alone() {
    let shop = Shop::open();
    let picky = format!(
        "BEGIN {NOTE_ALL}
         IF EXISTS (SELECT FROM unnest(j) AS c WHERE c.entity_key = '7') THEN RAISE 'seven' USING ERRCODE = 'AW007'; END IF;
         RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END"
    );
    shop.set_job("many", &picky, ", max_attempts => 1");
    schedule(&shop, 12);
    shop.await_all_ended();
    for key in 1..=12 {
        let end = shop.end_of(&key.to_string());
        let (why, notes) = if key == 7 { (("failed", Some("AW007")), 0) } else { (("done", None), 1) };
        assert_eq!((end.why(), end.attempts, shop.notes(&key.to_string())), (why, 1, notes), "{end:?}");
    }
}

#[test]
fn a_wrong_number_of_answers_is_an_array_element_error() {
    for answer in ["'{}'", "NULL", "ARRAY[NULL, NULL, NULL, NULL]::timestamptz[]"] {
        let shop = Shop::open();
        shop.set_job("many", &format!("BEGIN {NOTE_ALL} RETURN {answer}; END"), ", max_attempts => 1");
        schedule(&shop, 3);
        for key in ["1", "2", "3"] {
            let end = shop.end_of(key);
            assert_eq!((end.why(), shop.notes(key)), (("failed", Some("2202E")), 0), "{answer}: {end:?}");
            assert!(end.message.as_deref().is_some_and(|message| message.contains("\"many\"")), "{end:?}");
        }
    }
}

#[test]
fn a_check_that_is_cancelled_meanwhile_leaves_its_set() {
    let shop = Shop::open();
    let body = format!("BEGIN {NOTE_ALL} {GATE} RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END");
    shop.set_job("many", &body, "");
    let gate = shop.close_gate();
    schedule(&shop, 8);
    shop.await_at_gate();
    shop.run("SELECT awty.cancel('orders', '3')");
    assert!(shop.is_at_gate(), "the cancelling client waited for the run");
    drop(gate);
    shop.await_all_ended();
    shop.await_workers_gone();
    for key in 1..=8 {
        let end = shop.end_of(&key.to_string());
        let (outcome, notes) = if key == 3 { ("cancelled", 0) } else { ("done", 1) };
        assert_eq!((end.why(), shop.notes(&key.to_string())), ((outcome, None), notes), "{end:?}");
    }
}

#[test]
fn of_a_set_that_ignores_its_timeout_only_the_bad_check_is_timed_out() {
    let shop = Shop::open();
    let stubborn = format!(
        "BEGIN {NOTE_ALL}
         WHILE EXISTS (SELECT FROM unnest(j) AS c WHERE c.entity_key = '2') LOOP
             BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END;
         END LOOP;
         RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END"
    );
    shop.set_job("many", &stubborn, ", max_attempts => 1, timeout => '2 s'");
    schedule(&shop, 3);
    for (key, why, notes) in
        [("1", ("done", None), 1), ("2", ("timed_out", Some("57014")), 0), ("3", ("done", None), 1)]
    {
        let end = shop.end_of(key);
        assert_eq!((end.why(), shop.notes(key)), (why, notes), "{end:?}");
    }
}

#[test]
fn the_history_of_a_set_with_long_arguments_is_found_by_its_indexes() {
    let shop = Shop::open();
    shop.set_job("many", "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END", "");
    shop.run(
        "SELECT awty.schedule('orders', g::text, 'many', after => '1 s', args => to_jsonb((
             SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 200) AS h WHERE h + g > 0)))
         FROM generate_series(1, 10) AS g",
    );
    shop.await_all_ended();
    for (what, condition) in [("entity", "entity_name = 'orders' AND entity_key >= '0'"), ("id", "id > 0")] {
        let by_index = format!(
            "SET enable_seqscan = off; SET enable_bitmapscan = off;
             SELECT count(*), min(length(args::text)) FROM awty.future_job_history WHERE {condition}"
        );
        assert_eq!(shop.cluster.psql("postgres", &by_index).trim(), "10|6402", "by {what}");
    }
    shop.cluster.verify("postgres");
}
