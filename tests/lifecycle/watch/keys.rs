use super::{LATE, await_state, expect, state};
use awty_testkit::fixture::Shop;

/// These settings change the text form of values and the meaning of names, but must not change the keys that awty
/// stores for rows.
const ODD: &str = "SET DateStyle = 'German, DMY'; SET IntervalStyle = 'sql_standard'; SET TimeZone = 'Asia/Kolkata';
    SET extra_float_digits = -10; SET bytea_output = 'escape'; SET search_path = public;
    SET standard_conforming_strings = off; SET quote_all_identifiers = on; SET array_nulls = off; SET transform_null_equals = on;";

#[test]
fn keys_of_any_type_are_found_from_any_session() {
    let shop = Shop::open();
    shop.run(
        "CREATE TYPE shop.colour AS ENUM ('red', 'dark blue'); CREATE DOMAIN shop.code AS char(4) CHECK (VALUE <> '');
              CREATE COLLATION shop.caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    );
    let kinds = [
        ("date", "'2026-03-04'"),
        ("timestamptz", "'2026-03-04 05:06:07.000001+01'"),
        ("timestamp", "'2026-03-04 05:06:07'"),
        ("timetz", "'05:06:07+02'"),
        ("interval", "'1 mon -2 days 03:04:05.6'"),
        ("float8", "0.1::float8 + 0.2::float8"),
        ("real", "1e-30"),
        ("numeric", "1.50"),
        ("numeric(10,3)", "2.5"),
        ("bytea", r"'\x00ff5c27'::bytea"),
        ("boolean", "true"),
        ("char(5)", "'ab'"),
        ("\"char\"", "'x'"),
        ("varchar(7)", "' a b '"),
        ("bit(3)", "B'101'"),
        ("varbit", "B'10111'"),
        ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
        ("inet", "'10.0.0.1/8'"),
        ("money", "12.5::money"),
        ("name", "'x y'"),
        ("text", r#"E'a''b"c\\d\n{,}NULL\u00e4%_'"#),
        ("text COLLATE shop.caseless", "'AbC'"),
        ("jsonb", r#"'{"b": 1, "a": [null]}'"#),
        ("shop.colour", "'dark blue'"),
        ("shop.code", "'xy'"),
        ("int4range", "'[1,5)'"),
        ("oid", "4294967295"),
        ("smallint", "-3"),
        ("tsvector", "'a:1 b'"),
    ];
    for (number, (kind, _)) in kinds.iter().enumerate() {
        for (name, columns, key) in
            [("one", format!("k {kind}"), "k"), ("two", format!("n integer, k {kind}, m text"), "m, k, n")]
        {
            let prepared = format!(
                "CREATE TABLE shop.{name}_{number} ({columns}, at timestamptz NOT NULL, there boolean NOT NULL DEFAULT false, PRIMARY KEY ({key}));
                 SELECT awty.watch('shop.{name}_{number}', since => 'at', until => 'there', within => '3 hours', escalate => '{{1 day}}')"
            );
            if let Err(error) = shop.client().batch_execute(&prepared) {
                panic!("{kind}: {error:?}");
            }
        }
    }
    let each = |sql: &dyn Fn(usize, &str) -> String| {
        kinds.iter().enumerate().map(|(number, (_, value))| sql(number, value)).collect::<String>()
    };
    // A literal with a backslash needs `standard_conforming_strings = on`.
    let odd = ODD.replace("SET standard_conforming_strings = off;", "");
    shop.run(&format!("{odd} {}", each(&|number, value| format!(
        "INSERT INTO shop.one_{number} VALUES ({value}, {LATE}); INSERT INTO shop.two_{number} VALUES (7, {value}, '\"[', {LATE});"
    ))));
    let all = kinds.len() as i64 * 2;
    shop.await_true("all to be late", &format!("SELECT count(*) = {all} FROM awty.alert WHERE cleared_at IS NULL"));
    let wrong =
        "SELECT coalesce(string_agg(a.entity_key, ' '), '-') FROM awty.alert AS a LEFT JOIN awty.future_job AS f
                 ON (f.entity_name, f.entity_key, f.job) = (a.entity_name, a.entity_key, a.rule) WHERE f.id IS NULL";
    assert_eq!(shop.cluster.value::<String>("postgres", wrong), "-", "each has its check of level 2");
    shop.cluster.execute(
        "postgres",
        &[
            "UPDATE awty.rule SET swept_at = NULL",
            "SELECT awty.adopt()",
            "SELECT awty.register('wake', 'awty_internal.check_rows') WHERE false",
        ],
    );
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.alert WHERE cleared_at IS NULL"), all);
    shop.run(&each(&|number, _| {
        format!("UPDATE shop.one_{number} SET there = true; UPDATE shop.two_{number} SET there = true;")
    }));
    assert_eq!(state(&shop), "late -; pending -");
    shop.run(&each(&|number, _| {
        format!("UPDATE shop.one_{number} SET there = false; UPDATE shop.two_{number} SET there = false;")
    }));
    shop.run(&format!(
        "{ODD} {}",
        each(&|number, _| format!("DELETE FROM shop.one_{number}; DELETE FROM shop.two_{number};"))
    ));
    assert_eq!(state(&shop), "late -; pending -");
}

#[test]
fn equal_keys_that_are_written_otherwise_are_one() {
    let shop = Shop::open();
    shop.run(&format!(
        "CREATE TABLE shop.item (k numeric PRIMARY KEY, at timestamptz DEFAULT {LATE}, there boolean DEFAULT false);
         SELECT awty.watch('shop.item', since => 'at', until => 'there', within => '3 hours', escalate => '{{1 day}}');
         INSERT INTO shop.item VALUES (1.0), (2.0); UPDATE shop.item SET at = now() WHERE k = 2"
    ));
    await_state(&shop, "late 1.0:1; pending 1.0 2.0");
    expect(&shop, "UPDATE shop.item SET k = k + 0.00", "late 1.00:1; pending 1.00 2.00");
    let count: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.alert");
    assert_eq!(count, 1);
    expect(&shop, "DELETE FROM shop.item WHERE k = 1", "late -; pending 2.00");
    expect(
        &shop,
        "INSERT INTO shop.item VALUES (2.000) ON CONFLICT (k) DO UPDATE SET there = true",
        "late -; pending -",
    );
}

#[test]
fn quoted_names_are_watched() {
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE ROLE \"Odd role\" LOGIN",
            "GRANT \"Odd role\" TO shop",
            "CREATE SCHEMA \"Sch\"\"ema\" AUTHORIZATION shop",
        ],
    );
    shop.run(&format!(
        "CREATE TABLE \"Sch\"\"ema\".\"Ta ble'\" (\"K 1\" text, \"select\" text, \"At\" timestamptz DEFAULT {LATE}, \"t\" text, PRIMARY KEY (\"select\", \"K 1\"));
         SELECT awty.watch('\"Sch\"\"ema\".\"Ta ble''\"', since => '\"At\"', until => 't IS NOT NULL', within => '3 hours', rule => 'It''s \"a\" rule');
         INSERT INTO \"Sch\"\"ema\".\"Ta ble'\" (\"K 1\", \"select\") VALUES ('a\"b', '[1]')"
    ));
    await_state(&shop, r#"late ["[1]", "a\"b"]:1; pending -"#);
    let key: bool = shop.cluster.value(
        "postgres",
        r#"SELECT entity_key = awty.key('[1]'::text, 'a"b'::text) AND entity_name = 'Ta ble''' FROM awty.alert"#,
    );
    assert!(key);
    expect(&shop, "UPDATE \"Sch\"\"ema\".\"Ta ble'\" SET t = ''", "late -; pending -");
    shop.run("SELECT awty.unwatch('It''s \"a\" rule')");
}

#[test]
fn a_key_that_is_too_long_fails_the_write() {
    let shop = Shop::open();
    shop.run("CREATE TABLE shop.item (k text PRIMARY KEY, there boolean DEFAULT false); SELECT awty.watch('shop.item', until => 'there', within => '3 hours')");
    let (code, text) = super::refusal(&shop, "shop", "INSERT INTO shop.item VALUES (repeat('x', 1025))");
    assert!(code == "54000" && text.contains("\"item\"") && text.contains("shop.item"), "{code} {text}");
    shop.run("INSERT INTO shop.item VALUES (repeat('x', 1024), false), (repeat('y', 1025), true)");
    let (code, text) = super::refusal(&shop, "shop", "UPDATE shop.item SET k = k || 'x' WHERE NOT there");
    assert!(code == "54000" && text.contains("\"item\""), "{code} {text}");
    shop.run("UPDATE shop.item SET k = k || 'z' WHERE there; DELETE FROM shop.item WHERE there");
}
