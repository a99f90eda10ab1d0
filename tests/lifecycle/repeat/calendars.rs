use super::{await_ends, expect_each_has_its_check, repeat};
use awty_testkit::fixture::{NOTE, Shop};

fn calendar(shop: &Shop, hours: &str, closed: &str) {
    shop.run(&format!("SELECT awty.create_calendar('c', '{{{hours}}}', 'UTC', closed => {closed}, replace => true)"));
}

const NONE: &str = "'{}'";
const NOW: &str = "ARRAY(SELECT (now() AT TIME ZONE 'UTC')::date + day FROM generate_series(-1, 1) AS day)";

#[test]
fn nothing_runs_while_the_calendar_is_closed() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    repeat(&shop, "1", "note", "every => '1 s', calendar => 'c'");
    await_ends(&shop, "1", 2);
    calendar(&shop, "mon-sun 00:00-24:00", NOW);
    shop.await_true(
        "the next occurrence to wait for the opening",
        "SELECT next_check_at AT TIME ZONE 'UTC' = (now() AT TIME ZONE 'UTC')::date + 2 FROM awty.repetition",
    );
    let before = shop.ends("1").len();
    repeat(&shop, "other", "note", "every => '1 s'");
    await_ends(&shop, "other", 3);
    assert_eq!(shop.ends("1").len(), before, "something ran in closed time");
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    let ends = await_ends(&shop, "1", before + 2);
    assert!(ends.iter().all(|end| end.outcome == "done" || end.outcome == "replaced"), "{ends:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_calendar_without_a_moment_stops_its_repetition_until_it_is_replaced() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    repeat(&shop, "1", "note", "every => '1 hour', calendar => 'c'");
    repeat(&shop, "2", "note", "every => '1 s', calendar => 'c'");
    calendar(&shop, "mon 09:01-09:02", NOW);
    shop.await_true("it to stop", "SELECT next_check_at IS NULL FROM awty.repetition WHERE entity_key = '1'");
    let named = "SELECT count(*) = 1 FROM awty.doctor() WHERE detail = 'calendar \"c\" is closed at all its moments'";
    shop.await_true("doctor to name it", named);
    shop.await_true("it to stay", "SELECT count(*) = 2 FROM awty.repetition");
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    await_ends(&shop, "2", 2);
    shop.await_true("it to go on", "SELECT next_check_at > now() FROM awty.repetition WHERE entity_key = '1'");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_hold_outlives_the_time_in_which_the_calendar_is_closed() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    repeat(&shop, "1", "note", "every => '1 hour', calendar => 'c'");
    shop.run("SELECT awty.hold('orders', '1')");
    shop.await_true("the hold", "SELECT held FROM awty.future_job");
    calendar(&shop, "mon 09:01-09:02", NOW);
    calendar(&shop, "mon-sun 00:00-24:00", NONE);
    let held = "SELECT count(*) = 1 FROM awty.future_job WHERE held";
    assert!(shop.cluster.value::<bool>("postgres", held));
    shop.run("SELECT awty.release('orders', '1')");
    expect_each_has_its_check(&shop);
}
