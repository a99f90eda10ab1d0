use super::Http;

const URI: &str = "https://api.example.com/tick";

fn again(http: &Http, fields: &str) -> String {
    http.ask("app", &format!("SELECT awty_http.schedule('{URI}', {fields})"));
    http.ask("app", "SELECT count(*) FROM awty.future_job")
}

#[test]
fn a_repetition_that_was_ended_goes_on_when_it_is_scheduled_or_resumed() {
    let http = Http::open();
    let same = "'1 h', jitter => '0'";
    assert_eq!(again(&http, same), "1");
    let id = http.ask("app", "SELECT id FROM awty_http.endpoint");
    let ends = [
        format!("SELECT awty_http_internal.asked('{id}', 'stop', 'enough')"),
        "SELECT awty.cancel('https://api.example.com', '/tick', 'http.app')".into(),
        "SELECT awty.unregister('http.app')".into(),
    ];
    for end in &ends {
        http.ask("app", end);
        http.ask("postgres", "SELECT awty_http.add_tenant('app')");
        assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "0", "{end}");
        assert_eq!(again(&http, &format!("{same}, \"replace\" => false")), "1", "{end}");
        assert_eq!(http.ask("app", "SELECT verdict FROM awty_http.endpoint"), "", "{end}");
        http.ask("app", end);
        http.ask("postgres", "SELECT awty_http.add_tenant('app')");
        assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.resume('{id}')")), "true");
        assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "1", "{end}");
    }
    http.ask("app", &format!("SELECT awty_http.unschedule('{URI}')"));
    let short = "'1 h', starts => now(), ends => now() + interval '61 min', jitter => '0'";
    assert_eq!(again(&http, short), "1");
    http.cluster
        .execute("postgres", &["UPDATE awty_http_internal.endpoint SET starts = '2000-01-01', ends = '2000-01-02'"]);
    http.ask("app", "SELECT awty.cancel('https://api.example.com', '/tick', 'http.app')");
    assert_eq!(
        again(&http, "'1 h', starts => '2000-01-01', ends => '2000-01-02', jitter => '0', description => 'x'"),
        "0"
    );
    assert_eq!(http.ask("app", &format!("SELECT awty_http_internal.resume('{id}')")), "true");
    assert_eq!(http.ask("app", "SELECT count(*) FROM awty.future_job"), "0");
}

#[test]
fn a_single_call_that_was_made_is_not_made_again() {
    let http = Http::open();
    assert_eq!(again(&http, "at => '2020-01-01'"), "1");
    let lease = http.claim()[0];
    http.ask("gateway", &format!("SELECT awty.complete({lease})"));
    assert_eq!(again(&http, "at => '2020-01-01'"), "0");
    assert_eq!(again(&http, "at => '2020-01-01', description => 'x'"), "0");
    assert_eq!(http.ask("app", "SELECT description || ' ' || version FROM awty_http.endpoint"), "x 2");
    assert_eq!(again(&http, "at => '2020-01-02', description => 'x'"), "1");
}

#[test]
fn a_pause_stays_until_somebody_ends_it() {
    let http = Http::open();
    again(&http, "'1 h'");
    let id = http.ask("app", "SELECT id FROM awty_http.endpoint");
    http.ask("app", &format!("SELECT awty_http_internal.pause('{id}', 'they move')"));
    let state = "SELECT (SELECT held FROM awty.future_job) || ' ' || paused || coalesce(' ' || paused_note, '') FROM awty_http.endpoint";
    for fields in ["'1 h'", "'1 h', description => 'x'", "'2 h'", "'2 h', paused => true"] {
        again(&http, fields);
        assert_eq!(http.ask("app", state), "true true they move", "{fields}");
    }
    again(&http, "'2 h', paused => false");
    assert_eq!(http.ask("app", state), "false false");
}
