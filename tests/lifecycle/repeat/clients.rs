use super::{await_ends, expect_each_has_its_check, plan, repeat, repeat_at_gate, seconds, slots};
use awty_testkit::fixture::{GATE, NOTE, Shop};
use chrono::Utc;

#[test]
fn an_earlier_check_is_an_extra_run() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let extra = "SELECT awty.schedule('orders', '1', 'note', after => '0')";
    let first = shop.ahead(6, &(plan("1", "note", "every => '1 hour', starts => {first}") + extra));
    let ends = await_ends(&shop, "1", 3);
    assert_eq!(ends[0].why(), ("replaced", None));
    assert!(ends[1].first < first && ends[1].why() == ("done", None), "{ends:?}");
    assert_eq!((ends[2].first, ends[2].why()), (first, ("done", None)), "{ends:?}");
    assert_eq!(shop.slot_of("1"), first + seconds(3600));
    expect_each_has_its_check(&shop);
}

#[test]
fn a_later_check_postpones() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let later = "SELECT awty.schedule('orders', '1', 'note', at => {first} + interval '5 s')";
    let first = shop.ahead(2, &(plan("1", "note", "every => '2 s', starts => {first}, catch_up => '1 hour'") + later));
    let ends = await_ends(&shop, "1", 3);
    assert_eq!(slots(&ends[..3]), [first, first + seconds(5), first + seconds(6)], "{ends:?}");
    assert_eq!((ends[0].why(), ends[1].why()), (("replaced", None), ("done", None)), "{ends:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn every_on_conflict_keeps_the_repetition() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "1", "note", "every => '1 hour', starts => now() + interval '2 hours'");
    for conflict in ["replace", "keep", "earliest", "latest"] {
        shop.schedule("1", "note", &format!("after => '90 min', on_conflict => '{conflict}'"));
        expect_each_has_its_check(&shop);
    }
    let refused = shop
        .client()
        .batch_execute("SELECT awty.schedule('orders', '1', 'note', after => '0', on_conflict => 'error')");
    assert_eq!(refused.unwrap_err().code().map(|code| code.code().to_owned()), Some("23505".into()));
}

#[test]
fn another_plan_leaves_what_is_due() {
    let shop = Shop::open();
    let gated = format!("BEGIN {GATE} INSERT INTO shop.note (entity_key) VALUES (j.entity_key); RETURN NULL; END");
    shop.job("gated", &gated, "");
    let gate = shop.close_gate();
    repeat(&shop, "1", "gated", "every => '1 s'");
    shop.await_at_gate();
    let id = |shop: &Shop| shop.cluster.value::<i64>("postgres", "SELECT id FROM awty.future_job");
    let due = id(&shop);
    repeat(&shop, "1", "gated", "every => '1 s'");
    repeat(&shop, "1", "gated", "every => '1 hour', starts => now() + interval '2 hours'");
    assert_eq!(id(&shop), due);
    drop(gate);
    let ends = await_ends(&shop, "1", 1);
    assert_eq!((ends[0].id, ends[0].why(), shop.notes("1")), (due, ("done", None), 1), "{ends:?}");
    assert!(shop.slot_of("1") > Utc::now() + seconds(7000));
    expect_each_has_its_check(&shop);
}

#[test]
fn a_check_that_replaces_a_held_one_is_held() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    repeat(&shop, "1", "note", "every => '1 s', starts => now() + interval '1 hour'");
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET held = true"]);
    shop.schedule("1", "note", "after => '0'");
    let held: bool = shop.cluster.value("postgres", "SELECT held FROM awty.future_job");
    assert!(held);
    repeat(&shop, "1", "note", "every => '2 s', starts => now() + interval '1 hour'");
    let held: bool = shop.cluster.value("postgres", "SELECT held FROM awty.future_job");
    assert!(held);
    shop.run("SELECT awty.release('orders', '1')");
    await_ends(&shop, "1", 1);
    expect_each_has_its_check(&shop);
}

#[test]
fn check_now_is_an_occurrence_of_its_own() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    let now = "CREATE TABLE shop.asked AS SELECT awty.check_now('orders', '1') AS id";
    let first = shop.ahead(5, &(plan("1", "note", "every => '1 hour', starts => {first}") + now));
    let id: i64 = shop.cluster.value("postgres", "SELECT id FROM shop.asked");
    let ends = await_ends(&shop, "1", 2);
    assert!(ends[0].id == id && ends[0].first < first && ends[0].slot == ends[0].first, "{ends:?}");
    assert_eq!((ends[1].first, ends[0].why(), ends[1].why()), (first, ("done", None), ("done", None)), "{ends:?}");
    assert_eq!(shop.slot_of("1"), first + seconds(3600));
    expect_each_has_its_check(&shop);
}

#[test]
fn a_hold_outlives_the_run_under_way() {
    let shop = Shop::open();
    let gate = repeat_at_gate(&shop);
    shop.run("SELECT awty.hold('orders', '1', note => 'invoice open')");
    drop(gate);
    let ends = await_ends(&shop, "1", 1);
    assert_eq!((ends[0].why(), shop.notes("1")), (("done", None), 1), "{ends:?}");
    let held = "SELECT f.held AND h.note = 'invoice open' AND h.held_by::text = 'shop'
                FROM awty.future_job AS f JOIN awty_internal.hold AS h ON h.check_id = f.id";
    assert!(shop.cluster.value::<bool>("postgres", held), "{}", shop.pending("1"));
    let slot = shop.slot_of("1");
    shop.await_time(slot, 2);
    assert_eq!(shop.notes("1"), 1);
    shop.run("SELECT awty.release('orders', '1')");
    let ends = await_ends(&shop, "1", 3);
    assert_eq!(ends[1].first, slot, "{ends:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_hold_that_is_committed_after_the_end_of_the_run_holds_the_next_occurrence() {
    let shop = Shop::open();
    shop.job("gated", &format!("BEGIN {GATE} RETURN NULL; END"), "");
    let held = "SELECT bool_and(f.held AND h.note = 'invoice open' AND h.held_by::text = 'shop')
                FROM awty.future_job AS f LEFT JOIN awty_internal.hold AS h ON h.check_id = f.id";
    for (key, released) in [("1", false), ("2", true)] {
        let gate = shop.close_gate();
        let first = shop.ahead(2, &plan(key, "gated", "every => '1 hour', starts => {first}"));
        shop.await_at_gate();
        let mut client = shop.client();
        let hold = format!("BEGIN; SELECT awty.hold('orders', '{key}', note => 'invoice open')");
        client.batch_execute(&hold).unwrap();
        drop(gate);
        let ends = await_ends(&shop, key, 1);
        assert_eq!((ends[0].why(), shop.slot_of(key)), (("done", None), first + seconds(3600)), "{ends:?}");
        if released {
            client.batch_execute(&format!("SELECT awty.release('orders', '{key}')")).unwrap();
        }
        client.batch_execute("COMMIT").unwrap();
        if released {
            shop.run("SELECT awty.pause('gated'), awty.resume('gated')");
            shop.await_true("the row to go", "SELECT NOT EXISTS (SELECT FROM awty_internal.hold)");
            assert!(!shop.cluster.value::<bool>("postgres", "SELECT held FROM awty.future_job"));
        } else {
            shop.await_true("it to be held", held);
            shop.run(&format!("SELECT awty.release('orders', '{key}')"));
            let left = "SELECT count(*) FROM awty_internal.hold";
            assert_eq!(shop.cluster.value::<i64>("postgres", left), 0, "released for good");
        }
        expect_each_has_its_check(&shop);
        shop.run(&format!("SELECT awty.cancel('orders', '{key}')"));
    }
}

#[test]
fn what_fell_due_while_held_follows_on_missed() {
    let shop = Shop::open();
    for policy in ["skip", "next_slot"] {
        shop.job(policy, NOTE, &format!(", on_missed => '{policy}'"));
        let hold = format!("SELECT awty.hold('orders', '{policy}')");
        shop.ahead(2, &(plan(policy, policy, "every => '1 s', starts => {first}") + &hold));
    }
    let slots = ["skip", "next_slot"].map(|policy| shop.slot_of(policy));
    shop.await_time(slots[0].max(slots[1]), 3);
    shop.run("SELECT awty.release('orders', 'skip'), awty.release('orders', 'next_slot')");
    let skip = await_ends(&shop, "skip", 2);
    assert_eq!((skip[0].first, skip[0].why()), (slots[0], ("missed", None)), "{skip:?}");
    assert!(skip[1].why() == ("done", None) && skip[1].first > slots[0] + seconds(2), "{skip:?}");
    let next = await_ends(&shop, "next_slot", 1);
    assert!(next[0].why() == ("done", None) && next[0].first > slots[1] + seconds(2), "{next:?}");
    expect_each_has_its_check(&shop);
}

#[test]
fn many_at_once_know_repetitions() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    shop.run("SELECT awty.repeat('note', every => '1 hour', starts => now() + interval '2 hours', entity_name => 'orders', entity_key => t::text) FROM generate_series(1, 5) AS t");
    shop.run("SELECT awty.schedule_many('orders', '{1,2,6}', 'note', after => '0')");
    for key in ["1", "2"] {
        await_ends(&shop, key, 2);
        assert!(shop.slot_of(key) > Utc::now() + seconds(3600), "the plan goes on");
    }
    expect_each_has_its_check(&shop);
    let cancelled: i64 = shop.client().query_one("SELECT awty.cancel_many('orders', '{1,3,4}')", &[]).unwrap().get(0);
    let left: i64 = shop.cluster.value("postgres", "SELECT count(*) FROM awty.repetition");
    assert_eq!((cancelled, left), (3, 2));
    expect_each_has_its_check(&shop);
}

#[test]
fn sessions_that_repeat_at_once_make_one_repetition() {
    let shop = Shop::open();
    shop.job("note", NOTE, "");
    for round in 0..20 {
        std::thread::scope(|scope| {
            for hours in 1..=4 {
                let shop = &shop;
                scope.spawn(move || repeat(shop, &round.to_string(), "note", &format!("every => '{hours} hours'")));
            }
        });
    }
    let counts: String = shop.cluster.value(
        "postgres",
        "SELECT (SELECT count(*) FROM awty.repetition) || ' ' || (SELECT count(*) FROM awty.future_job)",
    );
    assert_eq!(counts, "20 20");
    expect_each_has_its_check(&shop);
}

#[test]
fn a_repetition_is_whose_rights_it_was_made_with() {
    let shop = Shop::open();
    shop.job(
        "whoami",
        "BEGIN INSERT INTO shop.note VALUES (DEFAULT, j.entity_key, current_user); RETURN NULL; END",
        "",
    );
    shop.cluster.create_user("postgres", "app");
    shop.run("SELECT awty.allow('whoami', 'app')");
    shop.cluster
        .client("postgres", "app")
        .batch_execute("SELECT awty.repeat('whoami', every => '1 s', entity_name => 'orders', entity_key => 'app')")
        .unwrap();
    shop.cluster.execute("postgres", &[
        "CREATE TABLE public.tenant (id text)",
        "CREATE FUNCTION public.repeat_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM awty.repeat('whoami', every => '1 s', entity_name => 'orders', entity_key => NEW.id); RETURN NEW; END $$",
        "CREATE TRIGGER t AFTER INSERT ON public.tenant FOR EACH ROW EXECUTE FUNCTION public.repeat_it()",
        "INSERT INTO public.tenant VALUES ('super')",
    ]);
    for key in ["app", "super"] {
        await_ends(&shop, key, 2);
    }
    let who: String = shop.cluster.value("postgres", "SELECT string_agg(DISTINCT what, ' ') FROM shop.note");
    assert_eq!(who, "shop");
    let by: String = shop.cluster.value(
        "postgres",
        "SELECT string_agg(DISTINCT entity_key || ' by ' || scheduled_by, ', ') FROM awty.future_job_history",
    );
    assert!(by.contains("app by app") && by.contains("super by postgres"), "{by}");
}
