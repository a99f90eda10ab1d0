//! awty writes history rows without SQL. Even after an administrator has changed the table, each row must equal the row
//! that an INSERT would write.

use awty_testkit::fixture::{NOTE, NOTE_SET, Shop};

fn open() -> Shop {
    let shop = Shop::open();
    shop.job("single", NOTE, "");
    shop.set_job("set", NOTE_SET, "");
    shop
}

fn administer(shop: &Shop, statements: &str) {
    shop.cluster.superuser("postgres").batch_execute(statements).unwrap();
}

#[track_caller]
fn expect_ends(shop: &Shop, name: &str, condition: &str) {
    shop.run(&format!(
        "SELECT awty.schedule('{name}', way, split_part(way, ' ', 1), after => '1 h', args => '{{}}')
         FROM unnest(ARRAY['single', 'set 1', 'set 2']) AS way;
         SELECT awty.check_now('{name}', way) FROM unnest(ARRAY['single', 'set 1', 'set 2']) AS way"
    ));
    let all =
        format!("SELECT count(*) = 3 FROM awty.future_job_history WHERE entity_name = '{name}' AND outcome = 'done'");
    shop.await_true(&format!("the checks of {name:?} to have ended"), &all);
    let met = format!("SELECT bool_and({condition}) FROM awty.future_job_history WHERE entity_name = '{name}'");
    let rows = shop.cluster.psql("postgres", "SELECT h FROM awty.future_job_history AS h ORDER BY id DESC LIMIT 3");
    assert!(shop.cluster.value::<bool>("postgres", &met), "{name}: {rows}");
}

fn partition(shop: &Shop) -> (String, String) {
    let name = "SELECT format('awty_internal.future_job_history_%s', to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))";
    let name: String = shop.cluster.value("postgres", name);
    shop.await_true("the day's partition", &format!("SELECT to_regclass('{name}') IS NOT NULL"));
    let bounds = format!("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = '{name}'::regclass");
    let bounds = shop.cluster.value("postgres", &bounds);
    (name, bounds)
}

#[test]
fn a_trigger_of_a_days_partition_fires() {
    let shop = open();
    expect_ends(&shop, "before", "message IS NULL");
    let (partition, _) = partition(&shop);
    administer(
        &shop,
        &format!(
            "CREATE FUNCTION public.mark() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN NEW.message := 'marked'; RETURN NEW; END $$;
             CREATE TRIGGER mark BEFORE INSERT ON {partition} FOR EACH ROW EXECUTE FUNCTION public.mark()"
        ),
    );
    expect_ends(&shop, "marked", "message = 'marked'");
}

#[test]
fn a_default_value_of_the_history_applies() {
    let shop = open();
    administer(&shop, "ALTER TABLE awty.future_job_history ALTER message SET DEFAULT 'no message'");
    expect_ends(&shop, "default", "message = 'no message'");
}

#[test]
fn a_column_of_the_history_keeps_its_type() {
    let shop = open();
    administer(&shop, "ALTER TABLE awty.future_job_history ALTER next_check_at TYPE timestamptz(0)");
    expect_ends(&shop, "seconds", "next_check_at = date_trunc('second', next_check_at)");
    administer(
        &shop,
        "ALTER TABLE awty.future_job_history ALTER next_check_at TYPE timestamptz, ALTER check_count TYPE text",
    );
    expect_ends(&shop, "text", "check_count = '1'");
}

#[test]
fn a_partition_may_have_its_columns_in_another_order() {
    let shop = open();
    let (partition, bounds) = partition(&shop);
    administer(
        &shop,
        &format!(
            "BEGIN; DROP TABLE {partition};
             CREATE TABLE {partition} AS
                 SELECT id, entity_key, entity_name, job, args, next_check_at, first_check_at, scheduled_by, scheduled_at,
                     started_at, finished_at, lateness, run_time, attempts, check_count, outcome, message, sqlstate, role,
                     context FROM awty.future_job_history LIMIT 0;
             DO $$ DECLARE c name; BEGIN
                 FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'awty.future_job_history'::regclass AND attnotnull AND attnum > 0 LOOP
                     EXECUTE format('ALTER TABLE {partition} ALTER %I SET NOT NULL', c);
                 END LOOP; END $$;
             ALTER TABLE awty.future_job_history ATTACH PARTITION {partition} {bounds}; COMMIT"
        ),
    );
    expect_ends(
        &shop,
        "ordered",
        "entity_key IN ('single', 'set 1', 'set 2') AND job = split_part(entity_key, ' ', 1)",
    );
    assert_eq!(shop.cluster.value::<i64>("postgres", &format!("SELECT count(*) FROM {partition}")), 3);
}

#[test]
fn a_partition_may_be_a_foreign_table() {
    let shop = open();
    let (partition, bounds) = partition(&shop);
    administer(
        &shop,
        &format!(
            "CREATE EXTENSION postgres_fdw; CREATE SCHEMA archive;
             DO $$ BEGIN EXECUTE format('CREATE SERVER archive FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
                 split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database()); END $$;
             CREATE USER MAPPING FOR CURRENT_USER SERVER archive OPTIONS (user 'postgres');
             BEGIN; DROP TABLE {partition};
             CREATE TABLE archive.day (LIKE awty.future_job_history);
             CREATE FOREIGN TABLE {partition} PARTITION OF awty.future_job_history {bounds}
                 SERVER archive OPTIONS (schema_name 'archive', table_name 'day'); COMMIT"
        ),
    );
    expect_ends(&shop, "foreign", "true");
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM archive.day"), 3);
}

/// If an ordinary role owns awty, FORCE ROW LEVEL SECURITY on a table makes the table's policies apply to this role.
#[test]
fn a_policy_that_applies_to_awtys_owner_is_honoured() {
    let shop = open();
    partition(&shop);
    administer(
        &shop,
        "CREATE ROLE keeper; CREATE ROLE archivist; GRANT ALL ON SCHEMA awty, awty_internal TO keeper, archivist;
         DO $$ DECLARE r regclass; BEGIN
             FOR r IN SELECT c.oid FROM pg_class AS c WHERE relnamespace IN ('awty'::regnamespace, 'awty_internal'::regnamespace)
                 AND relkind IN ('r', 'p', 'v') LOOP EXECUTE format('ALTER TABLE %s OWNER TO keeper', r);
             END LOOP; END $$;
         GRANT ALL ON ALL SEQUENCES IN SCHEMA awty, awty_internal TO keeper;
         CREATE POLICY refused ON awty.future_job_history AS RESTRICTIVE FOR INSERT WITH CHECK (entity_name <> 'refused');
         CREATE POLICY accepted ON awty.future_job_history FOR INSERT WITH CHECK (true);
         GRANT ALL ON awty.future_job_history TO keeper",
    );
    for (turn, applies) in [
        "ALTER TABLE awty.future_job_history FORCE ROW LEVEL SECURITY",
        "ALTER TABLE awty.future_job_history NO FORCE ROW LEVEL SECURITY, OWNER TO archivist; GRANT ALL ON awty.future_job_history TO keeper",
    ]
    .iter()
    .enumerate()
    {
        administer(&shop, applies);
        let key = format!("key {turn}");
        shop.run(&format!("SELECT awty.schedule('refused', '{key}', 'single', after => '0')"));
        // Does not wait for the log, because awty logs at most one failure of a job per second.
        let refused = format!(
            "SELECT EXISTS (SELECT FROM awty.failing WHERE entity_key = '{key}' AND message LIKE '%row-level security%')"
        );
        shop.await_true("the policy's refusal", &refused);
        assert_eq!((shop.notes(&key), shop.ends(&key).len()), (0, 0), "{applies}");
    }
}
