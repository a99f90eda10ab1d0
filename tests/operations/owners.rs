use awty_testkit::fixture::{NOTE, Shop};
use awty_testkit::postgres::error::DbError;

#[test]
fn who_may_connect_as_the_databases_owner_has_its_checks_run() {
    let shop = Shop::open();
    shop.cluster.execute("postgres", &["CREATE DATABASE d OWNER shop"]);
    shop.cluster.create_extension("d");
    shop.cluster.execute(
        "d",
        &[
            "GRANT USAGE ON SCHEMA awty TO shop",
            "CREATE SCHEMA own AUTHORIZATION shop",
            "REVOKE ALL ON DATABASE d FROM PUBLIC, shop",
            "GRANT CONNECT ON DATABASE d TO pg_database_owner",
        ],
    );
    let mut client = shop.cluster.client("d", "shop");
    client
        .batch_execute(
            "CREATE FUNCTION own.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
             SELECT awty.register('note', 'own.note');
             SELECT awty.schedule('orders', '1', 'note', after => '0')",
        )
        .unwrap_or_else(|error| panic!("{error:?}"));
    shop.cluster.await_sql(
        "d",
        "the check",
        "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE outcome = 'done')",
    );
}

#[test]
fn tables_that_are_no_superusers_any_more_are_no_riddle() {
    let shop = Shop::open();
    // The role `boss` owns awty, because PostgreSQL cannot reassign the objects of the bootstrap superuser.
    shop.cluster.execute(
        "postgres",
        &["DROP EXTENSION awty", "CREATE ROLE boss SUPERUSER LOGIN", "CREATE ROLE successor LOGIN"],
    );
    shop.cluster
        .client("postgres", "boss")
        .batch_execute("CREATE EXTENSION awty; GRANT USAGE ON SCHEMA awty TO shop")
        .unwrap();
    shop.job("note", NOTE, "");
    shop.schedule("before", "note", "after => '2 s'");
    // REASSIGN OWNED fails, because only a superuser may own awty's event trigger.
    let reassign = shop.cluster.superuser("postgres").batch_execute("REASSIGN OWNED BY boss TO successor");
    assert!(reassign.unwrap_err().as_db_error().is_some_and(|error| error.message().contains("awty_refuse_drop")));
    shop.cluster.execute("postgres", &["ALTER ROLE boss NOSUPERUSER"]);

    let mut client = shop.client();
    let calls = [
        "SELECT awty.schedule('orders', 'after', 'note', after => '0')",
        "SELECT awty.cancel('orders', 'none')",
        "SELECT awty.next_slot(now(), 'note')",
        "SELECT pending FROM awty.status",
    ];
    for call in calls {
        if let Err(error) = client.batch_execute(call) {
            let refusal: &DbError = error.as_db_error().unwrap_or_else(|| panic!("{call}: {error:?}"));
            assert!(refusal.hint().is_some() && refusal.message().contains("boss"), "{call}: {refusal:?}");
        }
    }
    shop.await_true(
        "the check, or the reason",
        "SELECT EXISTS (SELECT FROM awty.future_job_history WHERE entity_key = 'before' AND outcome = 'done')
                OR lag > '0' AND coalesce(why, last_error) LIKE '%boss%' FROM awty.status",
    );
    shop.cluster.execute("postgres", &["ALTER ROLE boss SUPERUSER"]);
    shop.run("SELECT awty.pause('note'), awty.resume('note')");
    for key in ["before", "now"] {
        if key == "now" {
            shop.schedule(key, "note", "after => '0'");
        }
        assert_eq!(shop.end_of(key).why(), ("done", None));
    }
    shop.await_true("the end of it", "SELECT why IS NULL AND last_error IS NULL AND lag = '0' FROM awty.status");
}
