use awty_testkit::fixture::Shop;

const LATIN: &str = "latin";

fn latin() -> Shop {
    let shop = Shop::open();
    let create = format!("CREATE DATABASE {LATIN} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    shop.cluster.execute("postgres", &[&create]);
    shop.cluster.create_extension(LATIN);
    shop.cluster.execute(LATIN, &["GRANT USAGE ON SCHEMA awty TO shop", "CREATE SCHEMA shop AUTHORIZATION shop"]);
    shop
}

#[test]
fn names_of_rules_and_tables_are_kept_in_another_encoding() {
    let shop = latin();
    let mut client = shop.cluster.client(LATIN, "shop");
    let mut run = |sql: &str| client.batch_execute(sql).unwrap();
    let awaits = |what: &str, sql: &str| shop.cluster.await_sql(LATIN, what, sql);
    run("CREATE TABLE shop.größen (id int PRIMARY KEY, maß text, at timestamptz);
         SELECT awty.watch('shop.größen', since => 'at', until => 'maß IS NOT NULL', within => '1 s');
         SELECT awty.watch('shop.größen', rule => 'zu spät', since => 'at', until => $$maß = 'groß'$$, within => '1 s');
         INSERT INTO shop.größen VALUES (1, NULL, now()), (2, NULL, now())");
    awaits("four alerts", "SELECT count(*) = 4 FROM awty.late WHERE entity_name = 'größen'");
    awaits("no finding", "SELECT count(*) = 0 FROM awty.doctor() WHERE finding LIKE 'rule %'");
    run("UPDATE shop.größen SET maß = 'groß'");
    awaits("no late row", "SELECT count(*) = 0 FROM awty.late");
    run("DROP TRIGGER \"awty_zu spät_update\" ON shop.größen");
    let fix = "SELECT fix FROM awty.doctor() WHERE finding = 'rule \"zu spät\" has stopped'";
    let fix: String = shop.cluster.client(LATIN, "shop").query_one(fix, &[]).unwrap().get(0);
    run(&fix);
    awaits("the rule to be repaired", "SELECT count(*) = 0 FROM awty.doctor() WHERE finding LIKE 'rule %'");
    run("SELECT awty.unwatch('größen'), awty.unwatch('zu spät')");
    awaits("nothing to be left", "SELECT count(*) = 0 FROM pg_proc WHERE proname LIKE 'awty\\_%'");
}

#[test]
fn names_of_calendars_and_jobs_are_kept_in_another_encoding() {
    let shop = latin();
    let mut client = shop.cluster.client(LATIN, "shop");
    client
        .batch_execute(
            "SELECT awty.create_calendar('täglich', '{mon-sun 10:00-11:00}', 'UTC');
             SELECT awty.register('größe');
             SELECT awty.repeat('größe', cron => '0 * * * *', zone => 'UTC', calendar => 'täglich', entity_key => 'maß')",
        )
        .unwrap();
    let mut planned = || -> Vec<String> {
        let hours =
            "SELECT to_char(next_check_at AT TIME ZONE 'UTC', 'HH24:MI') FROM awty.repetition WHERE entity_key = 'maß'";
        client.query(hours, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(planned(), ["10:00"]);
    let replace = "SELECT awty.create_calendar('täglich', '{mon-sun 15:00-16:00}', 'UTC', replace => true)";
    shop.cluster.client(LATIN, "shop").batch_execute(replace).unwrap();
    assert_eq!(planned(), ["15:00"]);
}
