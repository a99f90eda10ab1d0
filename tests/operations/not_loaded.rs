//! The server starts without awty's library, because a package update may have removed awty from postgresql.conf.

use awty_testkit::fixture::{NOTE, Shop};

/// The first statement fires a trigger, so that the session first loads awty's library inside a trigger.
const CALLS: &str = "
    INSERT INTO shop.orders SELECT n FROM generate_series(1, 3) AS n;
    SELECT awty.schedule('orders', 4, 'note', after => '0');
    SELECT awty.schedule_many('orders', '{5,6}', 'note', after => '1 hour');
    SELECT awty.check_now('orders', 5, 'note');
    SELECT awty.hold('orders', 6, note => 'later');
    SELECT awty.cancel('orders', 2), awty.cancel_many('orders', '{3}');
    SELECT awty.pause('note'), awty.resume('note');
    SELECT outcome FROM awty.dry_run('orders', 7, 'note');
    SELECT awty.next_slot(now(), 'note'), awty.key(1, 2);";

#[test]
fn writes_go_on_without_the_library_and_run_once_it_is_loaded() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.run(
        "CREATE TABLE shop.orders (id integer PRIMARY KEY);
         CREATE FUNCTION shop.placed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM awty.schedule('orders', NEW.id, 'note', after => '0'); RETURN NULL; END $$;
         CREATE TRIGGER placed AFTER INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.placed()",
    );
    shop.cluster.configure("shared_preload_libraries = ''");
    shop.cluster.restart();

    let mut psql = shop.cluster.tool("psql");
    let psql = psql.args(["-XAtq", "-U", "shop", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]);
    let output = psql.args(["-v", "SHOW_CONTEXT=never", "-c", CALLS]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("WARNING:").count(), 1, "{said}");
    assert!(said.contains("WARNING:  55000:") && said.contains("shared_preload_libraries = 'awty'"), "{said}");
    for call in [
        "SELECT awty.register('more', 'shop.note')",
        "SELECT awty.alter('note', timeout => '1 s')",
        "SELECT awty.adopt()",
    ] {
        let error = shop.client().batch_execute(call).unwrap_err();
        assert_eq!(error.as_db_error().unwrap().code().code(), "55000", "{call}: {error:?}");
    }
    let mut client = shop.client();
    client.batch_execute("SELECT awty.release('orders', 6); SELECT awty.hold('orders', 6)").unwrap();
    assert_eq!(
        shop.cluster
            .psql("postgres", "SELECT string_agg(entity_key, '' ORDER BY entity_key) FROM awty.future_job")
            .trim(),
        "1456"
    );

    shop.cluster.configure("shared_preload_libraries = 'awty'");
    shop.cluster.restart();
    for key in ["1", "4", "5"] {
        let end = shop.end_of(key);
        assert_eq!((end.why(), shop.notes(key)), (("done", None), 1), "{end:?}");
    }
    for key in ["2", "3"] {
        assert_eq!((shop.end_of(key).why(), shop.notes(key)), (("cancelled", None), 0));
    }
    assert!(shop.pending("6").contains(",t,"), "it is held: {}", shop.pending("6"));
}
