//! A refused call has the expected SQLSTATE, position and hint, and changes nothing.

use super::{ORDERS, tables};
use awty_testkit::fixture::{NOTE, Shop, refusal};

const FURNITURE: &str = "CREATE VIEW shop.v AS TABLE shop.orders; CREATE TABLE shop.keyless (a integer);
    CREATE TABLE shop.events (id bigint PRIMARY KEY, at timestamptz) PARTITION BY RANGE (id);
    CREATE TABLE shop.secret (id bigint PRIMARY KEY, status text); ALTER TABLE shop.secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    CREATE FUNCTION shop.awty_own() RETURNS boolean LANGUAGE sql RETURN true;
    CREATE FUNCTION shop.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER awty_own_trigger_delete AFTER DELETE ON shop.orders EXECUTE FUNCTION shop.nothing();
    CREATE FUNCTION shop.tell(a integer) RETURNS void LANGUAGE sql AS ''";
const FOREIGN: &str = "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; CREATE TABLE public.others (id bigint PRIMARY KEY);
    CREATE FOREIGN TABLE shop.f (id bigint) SERVER files OPTIONS (filename '/dev/null'); ALTER FOREIGN TABLE shop.f OWNER TO shop;
    CREATE SCHEMA locked; CREATE TABLE locked.t (id bigint PRIMARY KEY); ALTER TABLE locked.t OWNER TO shop; GRANT USAGE ON SCHEMA locked TO shop";

const OBJECTS: &str = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_depend WHERE classid = 'pg_proc'::regclass AND deptype = 'a'),
     (SELECT count(*) FROM awty.rule), (SELECT count(*) FROM awty.job), (SELECT count(*) FROM awty.future_job))";

const SEVERAL_TABLES: &str = "write a job and schedule it: awty.register() and awty.schedule()";
const CLOCK: &str = "Use \"since\" and \"within\" instead.";
const COLUMNS: &str = "Write columns without the table's name";
const UNTIL: &str = "until => $$status IS NOT NULL$$";

/// Describes refused calls by the arguments, the SQLSTATE, a part of the message or detail, and a part of the hint.
const REFUSED: &[[&str; 4]] = &[
    ["'shop.v', until => 'true', within => '1 s'", "42809", "shop.v", "Watch an ordinary or a partitioned table"],
    ["'shop.f', until => 'true', within => '1 s'", "42809", "a foreign table", "Watch an ordinary"],
    ["'pg_class', until => 'true', within => '1 s'", "42501", "pg_class", "as \"postgres\""],
    ["'public.others', until => 'true', within => '1 s'", "42501", "must be owner", "as \"postgres\""],
    [
        "'shop.keyless', until => 'true', within => '1 s'",
        "42704",
        "no primary key",
        "ALTER TABLE shop.keyless ADD PRIMARY KEY",
    ],
    ["'shop.orders', until => 'status', within => '1 s'", "42804", "boolean", UNTIL],
    [
        "'shop.orders', since => 'id', until => 'true', within => '1 s'",
        "42804",
        "\"since\"",
        "since => $$to_timestamp(id)$$",
    ],
    ["'shop.orders', until => 'awty.now() > placed_at', within => '1 s'", "0A000", "awty.now()", CLOCK],
    ["'shop.orders', until => '(SELECT true)', within => '1 s'", "0A000", "\"until\"", SEVERAL_TABLES],
    ["'shop.orders', until => 'count(*) > 1', within => '1 s'", "0A000", "aggregate", SEVERAL_TABLES],
    ["'shop.orders', until => 'row_number() OVER () > 1', within => '1 s'", "0A000", "window", SEVERAL_TABLES],
    ["'shop.orders', until => 'generate_series(1, 2) > 1', within => '1 s'", "0A000", "set", SEVERAL_TABLES],
    ["'shop.orders', until => '$1', within => '1 s'", "0A000", "$1", SEVERAL_TABLES],
    [
        "'shop.orders', until => 'orders IS NOT NULL', within => '1 s'",
        "0A000",
        "use the whole row",
        "Name the columns, such as until =>",
    ],
    [
        "'shop.orders', until => '(orders.*) IS NOT NULL', within => '1 s'",
        "0A000",
        "use the whole row",
        "Name the columns",
    ],
    [
        "'shop.orders', until => $$tableoid = 'shop.orders'::regclass$$, within => '1 s'",
        "0A000",
        "system column",
        SEVERAL_TABLES,
    ],
    ["'shop.orders', until => 'true', within => '1 s', rule => 'own'", "42710", "awty_own", "rule => 'own_2'"],
    [
        "'shop.orders', until => 'true', within => '1 s', rule => 'own_trigger'",
        "42710",
        "trigger awty_own_trigger_delete",
        "rule => 'own_trigger_2'",
    ],
    [
        "'locked.t', until => 'true', within => '1 s'",
        "42501",
        "permission denied for schema locked",
        "GRANT CREATE ON SCHEMA locked TO \"shop\";",
    ],
    ["'shop.orders', until => 'xmin IS NULL', within => '1 s'", "0A000", "xmin", SEVERAL_TABLES],
    ["'shop.orders', until => 'true FROM shop.orders', within => '1 s'", "0A000", "\"until\"", SEVERAL_TABLES],
    ["'shop.orders', until => 'random() > 0.5', within => '1 s'", "0A000", "volatile", CLOCK],
    ["'shop.orders', until => 'placed_at < now()', within => '1 s'", "0A000", "now()", CLOCK],
    ["'shop.orders', until => 'placed_at < CURRENT_DATE', within => '1 s'", "0A000", "CURRENT_DATE", CLOCK],
    ["'shop.orders', until => $$age(placed_at) > '1 day'$$, within => '1 s'", "0A000", "age", CLOCK],
    ["'shop.orders', since => 'clock_timestamp()', until => 'true', within => '1 s'", "0A000", "\"since\"", CLOCK],
    [
        "'shop.orders', until => 'true; DROP TABLE shop.orders', within => '1 s'",
        "42601",
        "at character 5: true>>>; DROP",
        COLUMNS,
    ],
    [
        "'shop.orders', until => 'status <', within => '1 s'",
        "42601",
        "In \"until\", at character 9: status <>>>",
        COLUMNS,
    ],
    [
        "'shop.orders', until => 'NOT statos IS NULL', within => '1 s'",
        "42703",
        "at character 5: NOT >>>statos",
        "orders.status",
    ],
    [
        "'shop.orders', since => 'placed', until => 'true', within => '1 s'",
        "42703",
        "In \"since\", at character 1: >>>placed",
        "orders.placed_at",
    ],
    ["'shop.orders', until => 'true', within => '0'", "22023", "within", "within => '3 hours'"],
    [
        "'shop.orders', until => 'true', within => '3 hours', escalate => '{6 hours, 5 hours}'",
        "22023",
        "element 2",
        "escalate => '{6 hours, 1 day}'",
    ],
    ["'shop.orders', until => 'true', within => '1 s', rule => repeat('x', 64)", "22023", "63 bytes", "shorter"],
    ["'shop.events', until => 'true', within => '1 s'", "22023", "partitioned", "since => 'placed_at'"],
    ["'shop.orders', until => 'true', within => '1 s', existing => 'some'", "22023", "existing", "upcoming"],
    [
        "'shop.orders', until => 'true', within => '1 s', call => 'shop.tell'",
        "42883",
        "shop.tell",
        "CREATE FUNCTION shop.tell(a awty.alert) RETURNS void",
    ],
    ["'shop.orders', until => 'true', within => '1 s', run_as => 'postgres'", "42501", "postgres", "run_as => 'shop'"],
    [
        "'shop.secret', until => 'true', within => '1 s'",
        "42501",
        "policies",
        "ALTER TABLE shop.secret NO FORCE ROW LEVEL SECURITY;",
    ],
    ["'shop.orders', until => 'true', within => '1 s', rule => 'taken'", "42710", "taken", "rule => 'taken_2'"],
    [
        "'shop.orders', until => 'false', within => '1 s', rule => 'mine'",
        "42710",
        "mine",
        "rule => 'mine_2' for a second rule, or replace => true",
    ],
];

#[track_caller]
fn refused(shop: &Shop, script: &str, [code, text, hint]: [&str; 3]) {
    let refusal = refusal(&mut shop.client(), script);
    let said = format!("{} {}", refusal.message, refusal.detail);
    let found = (refusal.sqlstate.as_str(), said.contains(text), refusal.hint.contains(hint));
    let said: String = said.chars().take(300).collect();
    assert_eq!(found, (code, true, true), "{script}: {said}; hint: {:?}", refusal.hint);
}

#[test]
fn each_refusal_says_where_and_what_to_write_and_leaves_nothing() {
    let shop = Shop::open();
    shop.run(ORDERS);
    shop.run(FURNITURE);
    shop.cluster.execute("postgres", &[FOREIGN]);
    shop.job("taken", NOTE, "");
    shop.schedule("1", "taken", "after => '1 day'"); // a refusal does not tell whether the job has checks
    shop.run("SELECT awty.watch('shop.orders', until => 'true', within => '1 s', rule => 'mine', existing => 'none')");
    let (before, count) = (tables::dump(&shop), shop.cluster.value::<String>("postgres", OBJECTS));
    for [arguments, code, text, hint] in REFUSED {
        refused(&shop, &format!("SELECT awty.watch({arguments})"), [code, text, hint]);
        assert_eq!(shop.cluster.value::<String>("postgres", OBJECTS), count, "after {arguments}");
    }
    refused(&shop, "SELECT awty.unwatch('none')", ["42704", "none", "SELECT rule, relation FROM awty.rule"]);
    refused(&shop, "SELECT awty.unregister('mine')", ["2BP01", "mine", "awty.unwatch('mine')"]);
    refused(
        &shop,
        "CREATE TEMP TABLE t (id bigint PRIMARY KEY); SELECT awty.watch('t', until => 'true', within => '1 s')",
        ["42809", "temporary", "Watch an ordinary"],
    );
    assert_eq!(tables::dump(&shop), before);
}

#[test]
fn no_table_of_awtys_is_watched() {
    let shop = Shop::open();
    for table in ["awty.future_job", "awty_internal.hold"] {
        let refused = refusal(
            &mut shop.cluster.superuser("postgres"),
            &format!("SELECT awty.watch('{table}', until => 'true', within => '1 h')"),
        );
        assert_eq!(refused.sqlstate, "42809", "{refused:?}");
        assert!(refused.message.ends_with("it is one of awty's own"), "{refused:?}");
    }
}

#[test]
fn no_table_is_named_like_a_check_of_awtys() {
    let shop = Shop::open();
    for name in ["awty.sweep", "awty.backfill", "awty.cleared"] {
        shop.run(&format!("CREATE TABLE shop.\"{name}\" (id bigint PRIMARY KEY)"));
        let watch = format!("SELECT awty.watch('shop.\"{name}\"', rule => 'r', until => 'true', within => '1 h')");
        refused(&shop, &watch, ["42809", "it is named like a check of awty's own", "Watch an ordinary"]);
    }
}

#[test]
fn a_hint_about_a_type_works_when_pasted() {
    let shop = Shop::open();
    shop.run("CREATE TABLE shop.bills (id integer PRIMARY KEY, due date, at timestamp, said text, seconds integer)");
    for (place, since) in ["due", "at", "said", "seconds", "due + 1", "at - interval '1 h'"].into_iter().enumerate() {
        let watch = |since: &str| {
            format!("SELECT awty.watch('shop.bills', rule => 'r{place}', {since}, until => 'false', within => '1 h')")
        };
        let refused = refusal(&mut shop.client(), &watch(&format!("since => $${since}$$")));
        assert_eq!(refused.sqlstate, "42804", "{refused:?}");
        let argument = refused.hint.strip_prefix("Use ").and_then(|hint| hint.strip_suffix('.')).unwrap();
        shop.run(&watch(argument));
    }
    let watch = "SELECT awty.watch('shop.bills', until => 'false', within => '1 h', call => 'shop.nix')";
    let refused = refusal(&mut shop.client(), watch);
    assert_eq!(refused.message, "function shop.nix(awty.alert) that returns void does not exist");
    shop.run(&refused.hint);
    shop.run(watch);
}

#[test]
fn the_hint_for_an_owner_without_login_is_another_role() {
    let shop = Shop::open();
    shop.cluster.execute(
        "postgres",
        &["CREATE ROLE owner NOLOGIN; GRANT owner TO shop; CREATE SCHEMA owned AUTHORIZATION owner; GRANT USAGE ON SCHEMA awty TO owner;
           SET ROLE owner; CREATE TABLE owned.t (id integer PRIMARY KEY)"],
    );
    let watch = |more: &str| format!("SELECT awty.watch('owned.t', until => 'false', within => '1 h'{more})");
    let mut client = shop.client();
    let Err(error) = client.batch_execute(&watch("")) else { return }; // from PostgreSQL 17 on, a worker needs no LOGIN
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code().code(), error.hint()), ("28000", Some("Use run_as => 'shop'.")));
    shop.run(&watch(", run_as => 'shop'"));
}
