//! Tests the page in Chromium with JavaScript disabled. All visits share one server, one gateway and one browser.

use crate::chromium::Chromium;
use crate::people::open;
use crate::shop::{Gateway, Shop};
use crate::visitor::watch;
use crate::visits;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub const H1: &str = "document.querySelector('h1').innerText";
pub const WHERE: &str = "location.pathname";
pub const ALL: &str = "document.body.innerText";

pub struct Room {
    pub shop: Shop,
    pub gateway: Gateway,
    pub chromium: Chromium,
}

impl Room {
    pub fn page(&self, path: &str) -> String {
        format!("http://{}{path}", self.gateway.address())
    }

    pub fn go(&mut self, path: &str) {
        let page = self.page(path);
        self.chromium.go(&page);
    }

    pub fn all(&mut self) -> String {
        self.chromium.text(ALL)
    }

    pub fn sign_in(&mut self, role: &str, scope: &str) {
        self.sign_out();
        self.go("/");
        let token = self.shop.token(role, scope);
        self.chromium.send("form[action='/login']", &[("token", &token)]);
        assert_eq!(self.chromium.text(WHERE), "/");
    }

    pub fn sign_out(&mut self) {
        self.chromium.command("Network.clearBrowserCookies", json!({}));
    }
}

type Visit = (&'static str, fn(&mut Room));

const VISITS: [Visit; 10] = [
    ("an empty database", visits::an_empty_database_says_what_to_do),
    ("sign in and out", a_person_signs_in_and_out),
    ("a late row", a_late_row_is_taken_with_the_form),
    ("a schedule", a_schedule_lives_in_the_browser),
    ("a stop", visits::what_stops_is_found_and_started_again),
    ("hostile answers", visits::hostile_answers_are_text),
    ("another tenant", visits::another_tenant_finds_nothing),
    ("another site", visits::another_site_changes_nothing),
    ("a zone, a search and a reload", visits::a_view_is_found_and_set_up),
    ("each view on each screen", each_view_fits_each_screen_and_breaks_no_policy),
];

#[test]
fn ten_visits() {
    let (shop, gateway, _) = open();
    let mut room = Room { shop, gateway, chromium: Chromium::start() };
    let mut failed = Vec::new();
    for (name, visit) in VISITS {
        room.chromium.show(1280, "light");
        let is_good = catch_unwind(AssertUnwindSafe(|| visit(&mut room))).is_ok();
        let errors = std::mem::take(&mut room.chromium.errors);
        if !is_good || !errors.is_empty() {
            failed.push(format!("{name}: {errors:?}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn a_person_signs_in_and_out(room: &mut Room) {
    room.sign_out();
    room.go("/rules");
    let chromium = &mut room.chromium;
    assert_eq!(chromium.text(WHERE), "/login");
    chromium.send("form[action='/login']", &[("token", "awty_wrong")]);
    assert!(chromium.text(ALL).contains("This token is not known."));
    chromium.picture("login");
    let token = room.shop.token("app", "read");
    chromium.send("form[action='/login']", &[("token", &token)]);
    assert_eq!(chromium.text(WHERE), "/rules", "the view that was asked for");
    assert_eq!(chromium.text("document.cookie"), "", "a script could read the cookie");
    let cookies = chromium.command("Network.getCookies", Value::Object(Default::default()));
    assert_eq!(
        (&cookies["cookies"][0]["httpOnly"], &cookies["cookies"][0]["sameSite"]),
        (&true.into(), &"Strict".into())
    );
    chromium.send("form[action='/logout']", &[]);
    assert_eq!(chromium.text(WHERE), "/login");
    room.go("/");
    assert_eq!(room.chromium.text(WHERE), "/login");
}

fn a_late_row_is_taken_with_the_form(room: &mut Room) {
    watch(&room.shop);
    room.sign_in("app", "write");
    let Room { shop, chromium, .. } = room;
    assert_eq!(chromium.text("document.title"), "1 late · awty");
    assert_eq!(chromium.text(H1), "Not yet: 1 row is late.");
    chromium.picture("home");
    chromium.send("form[action='/entity/hold']", &[("note", "asked <Ann>"), ("until", "2 h")]);
    assert!(chromium.text(ALL).contains("asked <Ann>"), "{}", chromium.text(ALL));
    assert_eq!(shop.text("SELECT held_by || ': ' || note FROM awty.late"), "app: asked <Ann>");
    chromium.send("form[role='search']", &[("q", "orders 1")]);
    assert_eq!(chromium.text("location.search"), "?name=orders&key=1");
    assert!(chromium.text(ALL).contains("What was"));
    chromium.picture("entity");
    chromium.send("form[action='/entity/release']", &[]);
    assert_eq!(shop.text("SELECT held_by FROM awty.late"), "");
}

fn a_schedule_lives_in_the_browser(room: &mut Room) {
    room.sign_in("app", "write");
    room.go("/schedules/new");
    let chromium = &mut room.chromium;
    chromium.send("form.sheet", &[("uri", "http://127.0.0.1:1099/a"), ("every", "10")]);
    assert!(chromium.text(ALL).contains("write 10 s or 10 min"));
    assert_eq!(
        chromium.text("document.querySelector('form.sheet').elements.uri.value"),
        "http://127.0.0.1:1099/a",
        "the typed text stays"
    );
    chromium.picture("schedule-refused");
    chromium.send("form.sheet", &[("every", "1 h"), ("description", "from the browser")]);
    let place = chromium.text(WHERE);
    assert!(place.starts_with("/schedules/s_"), "{place}");
    chromium.send(&format!("form[action='{place}/pause']"), &[]);
    assert!(chromium.text(ALL).contains("paused"));
    chromium.send(&format!("form[action='{place}/resume']"), &[]);
    chromium.send(&format!("form[action='{place}/run']"), &[]);
    room.shop.await_text("SELECT count(*) FROM awty.attempt", "1");
    room.go(&place);
    assert!(room.all().contains("Last calls"));
    room.chromium.picture("schedule");
    room.go(&format!("{place}/edit"));
    room.chromium.send("form.sheet", &[("every", "2 h")]);
    assert!(room.all().contains("every 2h"), "{}", room.all());
    room.go(&format!("{place}/delete"));
    room.chromium.send(&format!("form[action='{place}/delete']"), &[]);
    room.go("/schedules?state=ended");
    assert!(room.all().contains("http://127.0.0.1:1099/a"));
}

fn each_view_fits_each_screen_and_breaks_no_policy(room: &mut Room) {
    let shop = &room.shop;
    let mut client = shop.cluster.client("postgres", "app");
    let evil = format!("<script>alert(1)</script>\"'\u{202e}{}", "x".repeat(300));
    client.batch_execute("SELECT awty.register('post')").unwrap();
    client.execute("SELECT awty.schedule('<img src=x>', $1, 'post', after => '10 min')", &[&evil]).unwrap();
    client.execute("SELECT awty.schedule('<img src=x>', 'late', 'post', after => '0')", &[]).unwrap();
    let sql = "SELECT awty_http.schedule('http://127.0.0.1:1099/' || repeat('y', 400), every => '1 s', jitter => '0', description => $1)";
    client.execute(sql, &[&evil]).unwrap();
    let long = "SELECT id FROM awty_http.endpoint WHERE uri LIKE '%yyyy'";
    let place = format!("/schedules/{}", shop.text(long));
    shop.await_text("SELECT count(*) > 0 FROM awty.attempt WHERE entity_key LIKE '%yyyy'", "true");
    room.sign_in("app", "admin");
    let life = format!("/entity?name=orders&key=1&x={}", crate::client::encoded(&evil));
    let views = [
        "/",
        "/alerts",
        "/rules",
        "/jobs",
        "/schedules",
        "/schedules/new",
        "/slots",
        "/history",
        "/targets",
        "/tokens",
        "/why",
        "/entity?q=%3Cimg",
        &place,
        &life,
    ];
    for (width, scheme) in [(320, "dark"), (768, "light"), (1280, "dark")] {
        room.chromium.show(width, scheme);
        for view in views {
            room.go(view);
            let chromium = &mut room.chromium;
            let wide = chromium.value("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(wide <= u64::from(width), "{view} is {wide} wide on a screen of {width}");
            if width == 320 {
                assert_eq!(chromium.nameless(), Vec::<Value>::new(), "{view}");
            }
            let name = view.split('?').next().unwrap().trim_start_matches('/').replace('/', "-");
            chromium.picture(&format!("{}-{width}-{scheme}", if name.is_empty() { "home" } else { &name }));
        }
    }
    assert_eq!(room.chromium.value("document.scripts.length"), 0);
}
