use super::{await_ends, expect_each_has_its_check, repeat, seconds};
use awty_testkit::fixture::{NOTE, Shop};
use chrono::{DateTime, Utc};

#[test]
fn pending_occurrences_follow_new_zone_data_after_a_restart() {
    let mut shop = Shop::open();
    shop.job("note", NOTE, "");
    let plan = "cron => '30 3 * * *', zone => 'Europe/Berlin', starts => now() + interval '2 days'";
    for key in ["moved", "same"] {
        repeat(&shop, key, "note", plan);
    }
    repeat(&shop, "utc", "note", "cron => '30 3 * * *', zone => 'UTC', starts => now() + interval '2 days'");
    let slot = shop.slot_of("moved");
    let before: String =
        shop.cluster.value("postgres", "SELECT string_agg(id::text, ' ' ORDER BY id) FROM awty.future_job");
    // Moves the due times by an hour, as if Berlin's time zone had changed.
    shop.cluster.execute("postgres", &[
        "UPDATE awty.future_job SET first_check_at = first_check_at + interval '1 hour', next_check_at = next_check_at + interval '1 hour' WHERE entity_key IN ('moved', 'utc')",
    ]);
    let utc = shop.slot_of("utc");
    shop.cluster.restart();
    shop.await_true("it to move", &format!("SELECT next_check_at = '{slot}' AND first_check_at = '{slot}' FROM awty.future_job WHERE entity_key = 'moved'"));
    assert_eq!((shop.slot_of("same"), shop.slot_of("utc")), (slot, utc));
    let after: String =
        shop.cluster.value("postgres", "SELECT string_agg(id::text, ' ' ORDER BY id) FROM awty.future_job");
    assert_eq!(after, before);
}

#[test]
fn a_zone_that_is_gone_stops_its_repetition_alone() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "gone", "note", "every => '1 s', zone => 'Europe/Berlin'");
    repeat(&shop, "other", "note", "every => '1 s', zone => 'Europe/Berlin'");
    await_ends(&shop, "gone", 1);
    shop.cluster.execute(
        "postgres",
        &["UPDATE awty_internal.repetition SET zone = 'Atlantis/Capital' WHERE entity_key = 'gone'"],
    );
    shop.await_true("it to stop", "SELECT next_check_at IS NULL FROM awty.repetition WHERE entity_key = 'gone'");
    let ends = shop.ends("gone");
    assert!(ends.iter().all(|end| end.why() == ("done", None)), "{ends:?}");
    shop.cluster.await_log(&["repetition of job \"note\" for \"orders\" \"gone\" has stopped", "Atlantis/Capital"], 0);
    let others = shop.ends("other").len();
    await_ends(&shop, "other", others + 2);
    repeat(&shop, "gone", "note", "every => '1 s', zone => 'Europe/Rome'");
    await_ends(&shop, "gone", ends.len() + 2);
    expect_each_has_its_check(&shop);
    for call in
        ["cancel('orders', 'gone')", "cancel_many('orders', '{gone,none}')", "cancel_many('orders', '{gone}', 'note')"]
    {
        repeat(&shop, "gone", "note", "every => '1 s', zone => 'Europe/Rome'");
        shop.cluster.execute(
            "postgres",
            &["UPDATE awty_internal.repetition SET zone = 'Atlantis/Capital' WHERE entity_key = 'gone'"],
        );
        shop.await_true("it to stop", "SELECT next_check_at IS NULL FROM awty.repetition WHERE entity_key = 'gone'");
        shop.run(&format!("SELECT awty.{call}"));
        shop.await_true("it to go", "SELECT count(*) = 1 FROM awty.repetition");
    }
}

#[test]
fn wider_slots_are_shared_by_moments() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    // With `catch_up`, awty skips no occurrence, even if the machine is slow.
    repeat(&shop, "1", "note", "every => '1 s', catch_up => '1 hour'");
    await_ends(&shop, "1", 1);
    shop.run("SELECT awty.alter('note', slot => '5 s')");
    let count = shop.ends("1").len();
    let ends = await_ends(&shop, "1", count + 3);
    let last: Vec<DateTime<Utc>> = ends[ends.len() - 2..].iter().map(|end| end.first).collect();
    assert_eq!(last[1] - last[0], seconds(5), "{ends:?}");
    assert_eq!(last[0].timestamp() % 5, 0, "{ends:?}");
    expect_each_has_its_check(&shop);
}
