//! awty's runs are READ COMMITTED, whatever the default of the role, the database or the server.

use crate::clients::{self, NOTE_ID, Placing};
use awty_testkit::fixture::Shop;

#[test]
fn serializable_clients_lose_no_check_and_run_none_twice() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    let isolation = "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'";
    shop.cluster.execute("postgres", &[isolation]);
    let placing = [(); 2].map(|()| clients::place(&shop, &["40001"]));
    for _ in 0..4 {
        clients::await_more_runs(&shop.cluster, "postgres");
    }
    for log in placing.map(Placing::stop) {
        log.judge(&shop.cluster, "postgres");
    }
    let retried = "SELECT count(*) FROM awty.future_job_history WHERE attempts > 1";
    assert_eq!(shop.cluster.value::<i64>("postgres", retried), 0, "a run has failed");
}

#[test]
fn a_serializable_client_with_an_old_snapshot_cannot_undo_a_run() {
    let shop = Shop::open();
    shop.job("note", NOTE_ID, "");
    for (key, call) in [
        ("cancelled", "SELECT awty.cancel('orders', 'cancelled')::bigint"),
        ("scheduled", "SELECT awty.schedule('orders', 'scheduled', 'note', after => '0')"),
    ] {
        let mut client = shop.client();
        client.batch_execute("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM shop.note").unwrap();
        let id = shop.schedule(key, "note", "after => '0'");
        assert_eq!(shop.end_of(key).why(), ("done", None));
        let said = client.query_one(call, &[]).map(|row| row.get::<_, i64>(0));
        let committed = said.and_then(|number| client.batch_execute("COMMIT").map(|()| number));
        match committed {
            Ok(0) if key == "cancelled" => {}
            Ok(new) if key == "scheduled" && new > id => {}
            Err(error) if error.code().is_some_and(|code| code.code() == "40001") => {}
            other => panic!("{key}: {other:?}"),
        }
        clients::await_all_done(&shop.cluster, "postgres");
    }
    clients::judge_effects(&shop.cluster, "postgres");
}

#[test]
fn runs_are_read_committed_under_every_default() {
    let shop = Shop::open();
    let note = "BEGIN INSERT INTO shop.note (entity_key, what) VALUES (j.entity_key, current_setting('transaction_isolation'));
                SET default_transaction_isolation = 'serializable'; RETURN NULL; END";
    shop.job("note", note, "");
    for (key, default) in [
        ("role", "ALTER ROLE shop SET default_transaction_isolation = 'serializable'"),
        ("database", "ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'"),
        ("server", "ALTER SYSTEM SET default_transaction_isolation = 'serializable'"),
    ] {
        shop.cluster.execute("postgres", &[default, "SELECT pg_reload_conf()"]);
        for round in 1..=2 {
            let key = format!("{key} {round}");
            shop.schedule(&key, "note", "after => '0'");
            assert_eq!(shop.end_of(&key).why(), ("done", None));
        }
    }
    let seen = "SELECT string_agg(DISTINCT what, ', ') FROM shop.note";
    assert_eq!(shop.cluster.value::<String>("postgres", seen), "read committed");
}
