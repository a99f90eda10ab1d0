//! In plpgsql, `RAISE;` raises a caught error again. awty's hook must not report this error twice.

use awty_testkit::fixture::Shop;

fn reraising(statement: &str, say: &str) -> String {
    format!("BEGIN {statement}; RETURN NULL; EXCEPTION WHEN OTHERS OR query_canceled THEN {say} RAISE; END")
}

#[test]
fn a_timeout_that_is_raised_again_is_a_timeout() {
    let shop = Shop::open();
    for (key, say) in [
        ("silent", ""),
        ("warning", "RAISE WARNING 'still here';"),
        ("log", "RAISE LOG 'still here';"),
        ("caught", "BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;"),
    ] {
        let name = format!("slow_{key}");
        shop.job(&name, &reraising("PERFORM pg_sleep(60)", say), ", max_attempts => 1, timeout => '300 ms'");
        shop.schedule(key, &name, "after => '0'");
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.attempts), (("timed_out", Some("57014")), 1), "{key}: {end:?}");
    }
}

#[test]
fn an_error_that_is_raised_again_keeps_its_sqlstate() {
    let shop = Shop::open();
    let says = [
        ("warning", "RAISE WARNING 'still here';"),
        ("notice", "RAISE NOTICE 'still here';"),
        ("own", "RAISE WARNING 'still here' USING ERRCODE = 'AW999';"),
        ("caught", "BEGIN PERFORM 'x'::int; EXCEPTION WHEN invalid_text_representation THEN NULL; END;"),
    ];
    for (key, statement, sqlstate) in
        [("zero", "PERFORM 1 / 0", "22012"), ("code", "RAISE 'no' USING ERRCODE = 'AW001'", "AW001")]
    {
        for (name, say) in says {
            let name = format!("{key}_{name}");
            shop.job(&name, &reraising(statement, say), ", max_attempts => 1");
            shop.schedule(&name, &name, "after => '0'");
        }
        for (name, _) in says {
            let end = shop.end_of(&format!("{key}_{name}"));
            assert_eq!(end.why(), ("failed", Some(sqlstate)), "{name}: {end:?}");
            let message = end.message.clone().unwrap_or_default();
            assert!(["no", "division by zero"].contains(&message.as_str()), "{end:?}");
        }
    }
}
