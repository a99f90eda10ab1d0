use crate::people::open;
use crate::visitor::Browser;

const URI: &str = "http://127.0.0.1:1099/a";

fn version(browser: &Browser, place: &str) -> String {
    let form = browser.shows(&format!("{place}/edit"), &[]);
    let version = form.split("name=\"version\" value=\"").nth(1).unwrap().split('>').next().unwrap();
    version.trim_end_matches('"').replace("&quot;", "\"")
}

#[test]
fn a_body_of_any_depth_is_listed_and_shown() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let fields = [("uri", URI), ("every", "2 h"), ("method", "POST")];
    for (depth, kept) in [(100, true), (128, true), (1_000, false)] {
        let body = format!("{}1e400{}", "[".repeat(depth), "]".repeat(depth));
        shop.app(&format!("SELECT awty_http.schedule('{URI}', every => '1 h', body => '{body}')"));
        let list = browser.shows("/schedules", &[URI]);
        assert!(!list.contains("[[["), "the list needs no body");
        let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
        browser.shows(&place, &[URI, &"[".repeat(depth)]);
        let saved = browser.post(&format!("{place}/edit"), &fields);
        assert_eq!(saved.status, if kept { 303 } else { 422 }, "{depth}: {}", saved.text);
        assert!(kept || saved.text.contains("has more than 128 levels"), "{}", saved.text);
        let stays = format!("SELECT every || ' ' || (request -> 'body' = '{body}'::jsonb) FROM awty_http.endpoint");
        assert_eq!(shop.text(&stays), if kept { "02:00:00 true" } else { "01:00:00 true" });
    }
}

#[test]
fn a_text_as_large_as_the_database_accepts_is_edited() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let (largest, over) = ("ü".repeat(128 * 1024), "ü".repeat(128 * 1024 + 1));
    let fields = |body| [("uri", URI), ("every", "1 h"), ("method", "POST"), ("body_text", body)];
    let made = browser.post("/schedules/new", &fields(&largest));
    assert_eq!(made.status, 303, "{}", made.text);
    assert_eq!(shop.text("SELECT length(request ->> 'body_text') FROM awty_http.endpoint"), "131072");
    let place = made.header("location");
    assert!(browser.shows(&format!("{place}/edit"), &[]).contains(&largest));
    let refused = browser.post(&format!("{place}/edit"), &fields(&over));
    assert!(refused.status == 422 && refused.text.contains("256 KiB"), "{}", refused.status);
    let nobody = Browser::of_nobody(&gateway);
    assert_eq!(nobody.post("/login", &[("token", &"x".repeat(60_000))]).status, 413);
    assert_eq!(nobody.post(&format!("{place}/edit"), &fields(&largest)).status, 303);
    assert_eq!(shop.text("SELECT version FROM awty_http.endpoint"), "1");
}

#[test]
fn the_second_of_two_people_learns_that_the_schedule_has_changed() {
    let (shop, gateway, _) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    shop.app(&format!("SELECT awty_http.schedule('{URI}', every => '1 h')"));
    let place = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint"));
    let edit = format!("{place}/edit");
    let seen = version(&browser, &place);
    let fields = |every: &'static str, version: &str| {
        [("uri", URI), ("every", every), ("method", "POST"), ("version", version)]
            .map(|(name, value)| (name, value.to_owned()))
    };
    let post = |fields: &[(&str, String)]| {
        browser.post(&edit, &fields.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
    };
    assert_eq!(post(&fields("2 h", &seen)).status, 303);
    let second = post(&fields("3 h", &seen));
    assert!(second.status == 422 && second.text.contains("This schedule was changed meanwhile."), "{}", second.text);
    assert!(second.text.contains("value=\"3 h\""), "the typed text stays");
    assert_eq!(shop.text("SELECT every FROM awty_http.endpoint"), "02:00:00");
    assert_eq!(post(&fields("3 h", &version(&browser, &place))).status, 303);
    assert_eq!(shop.text("SELECT every FROM awty_http.endpoint"), "03:00:00");
}
