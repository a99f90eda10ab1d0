//! Each page says when its list may be incomplete because awty is off. All pages use the same word for the same state
//! of a row.

use crate::people::open;
use crate::shop::{Shop, until};
use crate::visitor::{Browser, watch};

const VIEWS: [&str; 9] = [
    "/",
    "/alerts",
    "/rules",
    "/jobs",
    "/schedules",
    "/slots",
    "/slots/2026-01-01T00%3A00%3A00Z",
    "/entity?name=orders",
    "/entity?name=orders&key=1",
];

fn switch(shop: &Shop, value: &str) {
    shop.cluster.execute("postgres", &[&format!("ALTER SYSTEM SET awty.enabled = {value}"), "SELECT pg_reload_conf()"]);
}

#[test]
fn each_list_says_that_awty_is_off() {
    let (shop, gateway, _) = open();
    watch(&shop);
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 h')");
    let schedule = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let views = VIEWS.into_iter().chain([schedule.as_str()]);
    let browser = Browser::of(&shop, &gateway, "app", "write");
    for view in views.clone() {
        let page = browser.shows(view, &[]);
        assert!(!page.contains("Something is stopped"), "{view}: {page}");
    }
    switch(&shop, "off");
    let told = |view: &str, texts: &[&str]| {
        until(view, || {
            let page = browser.get(view).text;
            if texts.iter().all(|text| page.contains(text)) { Ok(page) } else { Err(format!("{texts:?}: {page}")) }
        })
    };
    told("/alerts", &["awty.enabled is off. Rows that become late meanwhile are not in this list."]);
    shop.app("INSERT INTO orders VALUES (3, 'NEW', now() + interval '1 s')");
    for view in views.clone() {
        let page = told(view, &["awty.enabled is off", "ALTER SYSTEM SET awty.enabled = on; SELECT pg_reload_conf();"]);
        assert_eq!(page.matches("Something is stopped").count(), 1, "{view}: {page}");
    }
    let page = told("/alerts", &["At least 1 row is late.", "Rows that became late since ", " are not in this list."]);
    assert!(!page.contains("key=3"), "the list has grown: {page}");
    told("/", &["Rows that became late since ", " are not in the list of late rows."]);
    shop.app("UPDATE orders SET status = 'SENT' WHERE id = 1");
    told("/alerts", &["No row was late before "]);
    switch(&shop, "on");
    told("/alerts", &["1 row is late.", "key=3"]);
    for view in views {
        until(view, || {
            let page = browser.get(view).text;
            if page.contains("Something is stopped") { Err(page) } else { Ok(()) }
        });
    }
}

#[test]
fn a_row_is_late_since_a_time_or_due_at_a_time() {
    let (shop, gateway, _) = open();
    watch(&shop);
    shop.app("SELECT awty.hold('orders', '2', 'orders', 'not before Monday'); INSERT INTO orders VALUES (4, 'NEW', now() + interval '30 min')");
    shop.app("SELECT awty.register('mail'); SELECT awty.schedule('user', '1', 'mail', after => '0')");
    shop.app("SELECT awty.schedule('user', '2', 'mail', after => '30 min')");
    shop.cluster.execute("postgres", &["UPDATE awty.future_job SET next_check_at = now() - interval '5 min' WHERE entity_key = '1' AND job = 'mail'"]);
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let (late, due) = ("</span> late</span> since <time ", "</span> due</span> <time ");
    let slot = format!(
        "/slots/{}?width=1h",
        shop.text("SELECT to_char(now() AT TIME ZONE 'UTC' - interval '10 min', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
    );
    for (view, texts) in [
        ("/", &[late, due][..]),
        ("/alerts", &[late, due]),
        ("/entity?name=user", &[late, due]),
        ("/entity?name=user&key=1", &[late]),
        ("/entity?name=user&key=2", &[due]),
        ("/entity?name=orders&key=1", &[late]),
        ("/entity?name=orders&key=2", &[due]),
        ("/jobs", &["</span> 1 late</span> since <time "]),
        ("/why", &["the oldest is ", late]),
        (&slot, &[late, due]),
    ] {
        let page = browser.shows(view, texts);
        for word in ["overdue", "Was due", "not late yet"] {
            assert!(!page.contains(word), "{view} has the word {word}: {page}");
        }
    }
    shop.app("UPDATE orders SET status = 'SENT' WHERE id = 1");
    browser.shows("/alerts", &["No longer late", "Late since"]);
}
