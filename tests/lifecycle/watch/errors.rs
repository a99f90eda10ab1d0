//! If a user's function in a rule raises an error, awty passes on the SQLSTATE and the CONTEXT of this error (promise
//! P9).

use super::{LATE, await_state, watched};
use awty_testkit::Cluster;
use awty_testkit::fixture::{Shop, refusal};

const JUDGE: &str = "CREATE FUNCTION shop.judge(n integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
        IF n = 7 THEN RAISE 'seven' USING ERRCODE = 'AW042', DETAIL = 'the detail', HINT = 'the hint', COLUMN = 'n'; END IF;
        RETURN n > 100; END $$;
    CREATE TABLE shop.numbers (id integer PRIMARY KEY, n integer);
    SELECT awty.watch('shop.numbers', until => 'shop.judge(n)', within => '1 h');";

#[test]
fn a_write_that_the_expression_refuses_fails_with_its_error() {
    let shop = Shop::on(Cluster::builder().start());
    shop.run(JUDGE);
    shop.run("INSERT INTO shop.numbers VALUES (1, 1)");
    for script in [
        "INSERT INTO shop.numbers VALUES (2, 7)",
        "INSERT INTO shop.numbers SELECT n, 7 FROM generate_series(2, 20000) AS n",
        "UPDATE shop.numbers SET n = 7",
    ] {
        let refused = refusal(&mut shop.client(), script);
        let found = [refused.sqlstate, refused.message, refused.detail, refused.hint];
        assert_eq!(found, ["AW042", "seven", "the detail", "the hint"], "{script}");
    }
    let caught = "DO $$ DECLARE found text; BEGIN INSERT INTO shop.numbers VALUES (2, 7);
        EXCEPTION WHEN SQLSTATE 'AW042' THEN
            GET STACKED DIAGNOSTICS found = PG_EXCEPTION_CONTEXT;
            INSERT INTO shop.note (what) VALUES (found); END $$";
    shop.run(caught);
    let context: String = shop.cluster.value("postgres", "SELECT what FROM shop.note");
    assert!(context.contains("PL/pgSQL function shop.judge(integer) line 2 at RAISE"), "{context}");
}

#[test]
fn a_failing_call_keeps_its_error() {
    let shop = watched("");
    shop.run(
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
             RAISE 'no line' USING ERRCODE = 'AW077'; END $$",
    );
    super::watch(&shop, "call => 'shop.tell', replace => true");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    shop.await_true("the failure", "SELECT EXISTS (SELECT FROM awty.failing)");
    let failing: String =
        shop.cluster.value("postgres", "SELECT concat_ws(' ', sqlstate, message, context) FROM awty.failing");
    let place = "tell(awty.alert) line 2 at RAISE\nSQL statement";
    assert!(failing.starts_with("AW077 no line PL/pgSQL function ") && failing.contains(place), "{failing}");
    shop.await_true("the end of the run", "SELECT NOT EXISTS (SELECT FROM awty.running)");
    shop.run("CREATE OR REPLACE FUNCTION shop.tell(a awty.alert) RETURNS void LANGUAGE sql AS ''; SELECT awty.check_now('orders', 1)");
    await_state(&shop, "late 1:1; pending -");
}
