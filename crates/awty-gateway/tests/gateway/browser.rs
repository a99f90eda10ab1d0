use crate::chromium::Chromium;
use crate::people::open;
use crate::shop::{Gateway, Shop};
use crate::visitor::watch;
use serde_json::Value;

const H1: &str = "document.querySelector('h1').innerText";
const WHERE: &str = "location.pathname";
const ALL: &str = "document.body.innerText";

fn page(gateway: &Gateway, path: &str) -> String {
    format!("http://{}{path}", gateway.address())
}

fn sign_in(shop: &Shop, gateway: &Gateway, scope: &str) -> Chromium {
    let mut chromium = Chromium::start();
    chromium.show(1280, "light");
    chromium.go(&page(gateway, "/"));
    let token = shop.token("app", scope);
    chromium.send("form[action='/login']", &[("token", &token)]);
    assert_eq!(chromium.text(WHERE), "/");
    chromium
}

#[test]
fn a_person_signs_in_and_out() {
    let (shop, gateway, _) = open();
    let mut chromium = Chromium::start();
    chromium.show(1280, "light");
    chromium.go(&page(&gateway, "/rules"));
    assert_eq!(chromium.text(WHERE), "/login");
    chromium.send("form[action='/login']", &[("token", "awty_wrong")]);
    assert!(chromium.text(ALL).contains("This token is not known."));
    chromium.picture("login");
    let token = shop.token("app", "read");
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
    chromium.go(&page(&gateway, "/"));
    assert_eq!(chromium.text(WHERE), "/login");
    assert!(chromium.errors.is_empty(), "{:?}", chromium.errors);
}

#[test]
fn a_late_row_is_taken_with_the_form() {
    let (shop, gateway, _) = open();
    watch(&shop);
    let mut chromium = sign_in(&shop, &gateway, "write");
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
    assert!(chromium.errors.is_empty(), "{:?}", chromium.errors);
}

#[test]
fn a_schedule_lives_in_the_browser() {
    let (shop, gateway, _) = open();
    let mut chromium = sign_in(&shop, &gateway, "write");
    chromium.go(&page(&gateway, "/schedules/new"));
    chromium.send("form.sheet", &[("uri", "http://127.0.0.1:1099/a"), ("every", "10")]);
    assert!(chromium.text(ALL).contains("write 10 s or 10 min"));
    assert_eq!(
        chromium.text("document.forms[1].elements.uri.value"),
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
    shop.await_text("SELECT count(*) FROM awty.attempt", "1");
    chromium.go(&page(&gateway, &place));
    assert!(chromium.text(ALL).contains("Last calls"));
    chromium.picture("schedule");
    chromium.go(&page(&gateway, &format!("{place}/delete")));
    chromium.send(&format!("form[action='{place}/delete']"), &[]);
    chromium.go(&page(&gateway, "/schedules?state=ended"));
    assert!(chromium.text(ALL).contains("http://127.0.0.1:1099/a"));
    assert!(chromium.errors.is_empty(), "{:?}", chromium.errors);
}

#[test]
fn each_view_fits_a_phone_and_breaks_no_policy() {
    let (shop, gateway, _) = open();
    watch(&shop);
    let mut client = shop.cluster.client("postgres", "app");
    let evil = format!("<script>alert(1)</script>\"'\u{202e}{}", "x".repeat(300));
    client.batch_execute("SELECT awty.register('mail')").unwrap();
    client.execute("SELECT awty.schedule('<img src=x>', $1, 'mail', after => '10 min')", &[&evil]).unwrap();
    client.execute("SELECT awty.schedule('<img src=x>', 'late', 'mail', after => '0')", &[]).unwrap();
    let sql = "SELECT awty_http.schedule('http://127.0.0.1:1099/' || repeat('y', 400), every => '1 s', jitter => '0', description => $1)";
    client.execute(sql, &[&evil]).unwrap();
    shop.await_text("SELECT count(*) > 0 FROM awty.attempt", "true");
    let mut chromium = sign_in(&shop, &gateway, "admin");
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
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
        chromium.show(width, scheme);
        for view in views {
            chromium.go(&page(&gateway, view));
            let wide = chromium.value("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(wide <= u64::from(width), "{view} is {wide} wide on a screen of {width}");
            if width == 320 {
                assert_eq!(chromium.nameless(), Vec::<Value>::new(), "{view}");
            }
            let name = view.split('?').next().unwrap().trim_start_matches('/').replace('/', "-");
            chromium.picture(&format!("{}-{width}-{scheme}", if name.is_empty() { "home" } else { &name }));
        }
    }
    assert_eq!(chromium.value("document.scripts.length"), 0);
    assert!(chromium.errors.is_empty(), "{:?}", chromium.errors);
}
