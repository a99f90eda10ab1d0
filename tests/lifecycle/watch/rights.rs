//! Roles that distrust each other can share a watched table (promise P6).

use super::{LATE, await_state, await_walked, expect, refusal, state, watched};
use awty_testkit::fixture::Shop;

fn with_mallory(more: &str) -> Shop {
    let shop = watched(more);
    shop.cluster.execute("postgres", &["CREATE ROLE mallory LOGIN", "CREATE SCHEMA mallory AUTHORIZATION mallory"]);
    shop.run("GRANT USAGE ON SCHEMA shop TO mallory; GRANT SELECT, INSERT, UPDATE, DELETE ON shop.orders TO mallory");
    shop
}

fn as_mallory(shop: &Shop, script: &str) {
    if let Err(error) = shop.cluster.client("postgres", "mallory").batch_execute(script) {
        panic!("{script}: {error:?}");
    }
}

#[test]
fn a_hostile_writer_is_watched_like_any_other() {
    let shop = with_mallory("");
    as_mallory(&shop, &format!(
        "CREATE FUNCTION mallory.no(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
         CREATE OPERATOR mallory.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = mallory.no);
         CREATE OPERATOR mallory.= (LEFTARG = text, RIGHTARG = text, FUNCTION = mallory.no);
         CREATE FUNCTION mallory.unnest(anyarray) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
         SET search_path = mallory, pg_catalog; SET DateStyle = 'German';
         INSERT INTO shop.orders VALUES (1, {LATE}), (2, now());
         UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 2"
    ));
    await_state(&shop, "late 1:1; pending -");
    as_mallory(
        &shop,
        "SET search_path = mallory, pg_catalog; SET row_security = on; UPDATE shop.orders SET status = 'SHIPPED'",
    );
    assert_eq!(state(&shop), "late -; pending -");
    assert_eq!(refusal(&shop, "mallory", "SELECT count(*) FROM awty.alert").0, "42501");
}

#[test]
fn a_function_of_the_same_name_is_not_called() {
    let shop = with_mallory("");
    shop.run("SELECT awty.unwatch('orders')");
    as_mallory(&shop, "CREATE FUNCTION mallory.awty_orders(status text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
                       CREATE FUNCTION mallory.awty_orders_since(placed_at timestamptz) RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$;
                       GRANT USAGE ON SCHEMA mallory TO PUBLIC");
    super::watch(&shop, "escalate => '{1 day}'");
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE}, DEFAULT), (2, {LATE}, 'SHIPPED')"));
    await_state(&shop, "late 1:1; pending 1");
    expect(&shop, "UPDATE shop.orders SET status = 'SHIPPED'", "late -; pending -");
    shop.run("UPDATE shop.orders SET status = 'UNSHIPPED' WHERE id = 1");
    await_state(&shop, "late 1:1; pending 1");
    shop.cluster.execute(
        "postgres",
        &[
            "ALTER EVENT TRIGGER awty_refuse_drop DISABLE",
            "DROP FUNCTION shop.awty_orders(text) CASCADE",
            "ALTER EVENT TRIGGER awty_refuse_drop ENABLE",
        ],
    );
    as_mallory(
        &shop,
        "CREATE OR REPLACE FUNCTION mallory.awty_orders(status text) RETURNS boolean LANGUAGE sql AS $$ SELECT set_config('awty.x', current_user, false) IS NULL OR 1 / 0 = 1 $$",
    );
    shop.run("SELECT awty.check_now('orders', 1, 'orders')");
    let failed = "SELECT count(*) = 1 FROM awty.failing WHERE entity_key = '1' AND sqlstate = '42501'";
    shop.await_true("the check to fail, because only mallory's function is left", failed);
    shop.run("SELECT awty.unwatch('orders')");
    let left: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM pg_proc WHERE proname LIKE 'awty\\_orders%'");
    assert_eq!(left, 2, "mallory's own");
}

#[test]
fn a_copied_trigger_is_useless() {
    let shop = with_mallory("");
    as_mallory(&shop, "CREATE TABLE mallory.t (id bigint PRIMARY KEY)");
    let trigger =
        "CREATE TRIGGER t AFTER INSERT ON mallory.t FOR EACH ROW EXECUTE FUNCTION awty_internal.row_changed('orders')";
    assert_eq!(refusal(&shop, "mallory", trigger).0, "42501");
    assert_eq!(refusal(&shop, "shop", &trigger.replace("mallory.t", "shop.note")).0, "42501");
    shop.cluster.execute("postgres", &[trigger]);
    let (code, text) = refusal(&shop, "mallory", "INSERT INTO mallory.t VALUES (1)");
    assert!(code == "39P01" && text.contains("orders"), "{code} {text}");
    assert_eq!(refusal(&shop, "mallory", "SELECT awty_internal.row_changed()").0.len(), 5);
    assert_eq!(state(&shop), "late -; pending -");
}

#[test]
fn a_forged_call_raises_nothing() {
    let shop = with_mallory("");
    shop.cluster.execute("postgres", &["GRANT USAGE ON SCHEMA awty, awty_internal TO mallory"]);
    shop.run("INSERT INTO shop.orders (id) VALUES (1)");
    let forged = "SELECT awty_internal.check_rows(ARRAY[jsonb_populate_record(NULL::awty.future_job,
        '{\"job\": \"orders\", \"entity_name\": \"orders\", \"entity_key\": \"1\", \"scheduled_at\": \"2000-01-01\",
          \"id\": 1, \"next_check_at\": \"2000-01-01\", \"attempt\": 1}')])";
    assert_eq!(refusal(&shop, "mallory", forged).0, "42501");
    assert_eq!(state(&shop), "late -; pending 1");
    assert_eq!(refusal(&shop, "mallory", "SELECT awty.unwatch('orders')").0, "42704");
    assert_eq!(
        refusal(&shop, "mallory", "SELECT awty.watch('shop.orders', until => 'true', within => '1 s')").0,
        "42501"
    );
}

#[test]
fn policies_hide_no_row_in_silence() {
    let shop = Shop::open();
    shop.run(super::ORDERS);
    shop.run(
        "ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON shop.orders USING (note = 'public')",
    );
    let force = "ALTER TABLE shop.orders FORCE ROW LEVEL SECURITY";
    let watch = "SELECT awty.watch('shop.orders', since => 'placed_at', until => $$status <> 'UNSHIPPED'$$, within => '3 hours')";
    shop.run(force);
    let (code, text) = refusal(&shop, "shop", watch);
    assert!(code == "42501" && text.contains("policies"), "{code} {text}");
    shop.run(&format!("ALTER TABLE shop.orders NO FORCE ROW LEVEL SECURITY; {watch}"));
    await_walked(&shop);
    shop.run(&format!("INSERT INTO shop.orders VALUES (1, {LATE})"));
    await_state(&shop, "late 1:1; pending -");
    shop.run("SELECT awty.alter('orders', retry_after => '1 s'); INSERT INTO shop.orders VALUES (2, now() - interval '3 hours' + interval '1 day')");
    shop.run(force);
    shop.run("SELECT awty.check_now('orders', 2, 'orders')");
    shop.await_true(
        "it to fail",
        "SELECT count(*) = 1 FROM awty.failing WHERE entity_key = '2' AND sqlstate = '42501'",
    );
    assert_eq!(refusal(&shop, "postgres", "UPDATE shop.orders SET status = 'SHIPPED' WHERE id = 1").0, "42501");
    shop.run("ALTER TABLE shop.orders NO FORCE ROW LEVEL SECURITY");
    shop.run("UPDATE shop.orders SET status = 'SHIPPED'");
    await_state(&shop, "late -; pending -");
}
