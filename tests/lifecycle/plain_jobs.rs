use awty_testkit::fixture::Shop;

#[test]
fn a_job_without_an_argument_or_an_answer_runs() {
    let shop = Shop::open();
    shop.run(
        "CREATE FUNCTION shop.tidy() RETURNS void BEGIN ATOMIC INSERT INTO shop.note (entity_key) VALUES ('tidy'); END;
         CREATE FUNCTION shop.twice() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO shop.note (entity_key) VALUES ('twice');
             RETURN CASE WHEN (SELECT count(*) FROM shop.note WHERE entity_key = 'twice') < 2 THEN clock_timestamp() END; END $$;
         CREATE FUNCTION shop.one(j awty.future_job) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO shop.note (entity_key) VALUES (j.entity_key); END $$;
         CREATE FUNCTION shop.bad() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = 'AW001'; END $$;
         SELECT awty.register('tidy', 'shop.tidy'), awty.register('twice', 'shop.twice'), awty.register('one', 'shop.one'),
                awty.register('bad', 'shop.bad', max_attempts => 1)",
    );
    for job in ["tidy", "twice", "one", "bad"] {
        shop.schedule(job, job, "after => '0'");
    }
    for (job, why, checks, notes) in [
        ("tidy", ("done", None), 1, 1),
        ("twice", ("done", None), 2, 2),
        ("one", ("done", None), 1, 1),
        ("bad", ("failed", Some("AW001")), 0, 0),
    ] {
        let end = shop.end_of(job);
        assert_eq!((end.why(), end.check_count, shop.notes(job)), (why, checks, notes), "{end:?}");
    }
}

#[test]
fn a_set_based_job_may_return_void() {
    let shop = Shop::open();
    shop.run(
        "CREATE FUNCTION shop.many(j awty.future_job[]) RETURNS void LANGUAGE sql AS
             $$ INSERT INTO shop.note (entity_key) SELECT c.entity_key FROM unnest(j) AS c $$;
         SELECT awty.register('many', 'shop.many');
         SELECT awty.schedule('orders', n::text, 'many', after => '1 s') FROM generate_series(1, 5) AS n",
    );
    for key in ["1", "2", "3", "4", "5"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.check_count, shop.notes(key)), (("done", None), 1, 1), "{end:?}");
    }
}

#[test]
fn a_job_without_limits_is_asked_and_tried_until_it_is_done() {
    let shop = Shop::open();
    let body = "BEGIN
        IF j.attempt < 4 AND j.check_count = 0 THEN RAISE 'not yet'; END IF;
        RETURN CASE WHEN j.check_count < 6 THEN clock_timestamp() END; END";
    shop.job("patient", body, ", max_checks => 0, max_attempts => 0, retry_after => '1 ms'");
    shop.schedule("1", "patient", "after => '0'");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.check_count, end.attempts), (("done", None), 7, 11), "{end:?}");
}

#[test]
fn a_function_may_change_its_argument_and_result_between_runs() {
    let shop = Shop::open();
    shop.run(
        "CREATE FUNCTION shop.fickle() RETURNS void LANGUAGE sql AS $$ INSERT INTO shop.note (entity_key) VALUES ('none') $$;
         SELECT awty.register('fickle', 'shop.fickle')",
    );
    shop.schedule("1", "fickle", "after => '0'");
    assert_eq!(shop.end_of("1").why(), ("done", None));
    shop.run(
        "DROP FUNCTION shop.fickle;
         CREATE FUNCTION shop.fickle(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS
             $$ INSERT INTO shop.note (entity_key) VALUES (j.entity_key); SELECT NULL::timestamptz $$",
    );
    shop.schedule("2", "fickle", "after => '0'");
    assert_eq!(shop.end_of("2").why(), ("done", None));
    assert_eq!((shop.notes("none"), shop.notes("2")), (1, 1));
}
