use awty_testkit::fixture::{NOTE, Shop};
use chrono::{DateTime, Timelike, Utc};

fn reload(shop: &Shop, lines: &str) {
    shop.cluster.configure(lines);
    shop.cluster.reload();
}

#[test]
fn checks_at_old_boundaries_are_still_due_after_the_slot_has_changed() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.job("every_other", NOTE, ", slot => '2 s'");
    let slots = [("old", "note"), ("old and coarse", "every_other")]
        .map(|(key, job)| shop.schedule_for(key, job, "at => now() + interval '3 s'"));
    reload(&shop, "awty.slot = '1h'");
    shop.await_true("the new width", "SELECT slot = '1 h' FROM awty.status");
    for (key, slot) in ["old", "old and coarse"].into_iter().zip(slots) {
        let end = shop.end_of(key);
        assert_eq!((end.why(), end.slot, shop.notes(key)), (("done", None), slot, 1), "{end:?}");
    }
    let next: DateTime<Utc> = shop.cluster.value("postgres", "SELECT awty.next_slot(now() + interval '1 s')");
    assert_eq!((next.minute(), next.second()), (0, 0), "{next}");

    // The job's slot width of 2 s is no multiple of the new slot width, 3 s.
    shop.schedule("new", "note", "at => now() + interval '1 s'");
    shop.run("SELECT awty.cancel('orders', 'new')");
    reload(&shop, "awty.slot = '3s'");
    shop.await_true("the new width", "SELECT slot = '3 s' FROM awty.status");
    shop.schedule("three", "every_other", "after => '0'");
    assert_eq!(shop.end_of("three").outcome, "done");
}

#[test]
fn a_slot_that_does_not_divide_a_day_is_refused() {
    let shop = Shop::open();
    let position = shop.cluster.log_position();
    reload(&shop, "awty.slot = '7s'");
    shop.cluster.await_log(&["invalid value for parameter \"awty.slot\""], position);
    assert_eq!(shop.cluster.psql("postgres", "SELECT slot FROM awty.status").trim(), "00:00:01");
    shop.job("note", NOTE, "");
    shop.schedule("1", "note", "after => '0'");
    assert_eq!(shop.end_of("1").outcome, "done");
}

#[test]
fn a_waiting_worker_heeds_a_reload() {
    let shop = Shop::open();
    shop.job(
        "again",
        "BEGIN INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN clock_timestamp(); END",
        ", max_checks => 1000",
    );
    shop.schedule("1", "again", "after => '0'");
    shop.await_true("two runs", "SELECT count(*) >= 2 FROM shop.note");
    reload(&shop, "awty.enabled = off");
    shop.await_workers_gone();
    let notes = shop.notes("1");
    shop.await_time(shop.slot_of("1"), 2);
    assert_eq!(shop.notes("1"), notes);
    reload(&shop, "awty.enabled = on");
    shop.await_true("another run", &format!("SELECT count(*) > {notes} FROM shop.note"));
}

#[test]
fn runs_are_as_durable_as_the_server_once_they_are_to_be() {
    let shop = Shop::open();
    shop.job(
        "durable",
        "BEGIN INSERT INTO shop.note VALUES (DEFAULT, j.entity_key, current_setting('synchronous_commit')); RETURN NULL; END",
        "",
    );
    let how = |key: &str| {
        shop.schedule(key, "durable", "after => '0'");
        shop.end_of(key);
        shop.cluster.value::<String>("postgres", &format!("SELECT what FROM shop.note WHERE entity_key = '{key}'"))
    };
    assert_eq!(how("by batch"), "off");
    reload(&shop, "synchronous_commit = remote_write\nawty.synchronous_commit = on");
    shop.await_true("the reload", "SELECT current_setting('awty.synchronous_commit') = 'on'");
    assert_eq!([how("first batch"), how("second"), how("third")], ["remote_write"; 3]);
    reload(&shop, "awty.synchronous_commit = off");
    shop.await_true("the reload", "SELECT current_setting('awty.synchronous_commit') = 'off'");
    how("perhaps the last of its batch");
    assert_eq!(how("by batch again"), "off");
}
