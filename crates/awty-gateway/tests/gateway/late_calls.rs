use crate::people::open;
use crate::visitor::Browser;

#[test]
fn a_late_call_says_what_was_stopped_meanwhile() {
    let (shop, gateway, _) = open();
    shop.app(
        "SELECT awty.pause('http.app');
         SELECT awty_http.schedule(uri, every => '5 s') FROM unnest('{http://127.0.0.1:1099/ten,http://127.0.0.1:1099/near,http://127.0.0.1:1098/far}'::text[]) AS uri",
    );
    let postgres = |sql: &str| shop.cluster.execute("postgres", &[sql]);
    postgres("UPDATE awty_http_internal.endpoint SET created_at = now() - interval '1 day'");
    let called = |path: &str, slot: &str, at: &str| {
        postgres(&format!(
            "INSERT INTO awty_internal.attempt (lease, id, job, entity_name, entity_key, first_check_at, next_check_at, check_count, attempt, held, scheduled_by,
                 scheduled_at, key, leased_at, expires_at, deadline, worker, ended_at, lateness, ok, result, role)
             SELECT nextval('awty.future_job_id_seq'), 1, e.job, e.entity_name, e.entity_key, {slot}, {slot}, 1, 1, false, 'app', {slot}, 'k', {at}, {at}, {at}, 'one',
                 {at} + interval '20 ms', '1 s', true, '{{\"status\": 200}}', 'app'
             FROM awty_http_internal.endpoint AS e WHERE e.uri LIKE '%/{path}'"
        ));
    };
    let (slot, at) =
        ("(date_trunc('hour', now()) - interval '1 hour')", "(date_trunc('hour', now()) - interval '3565 s')");
    let browser = Browser::of(&shop, &gateway, "app", "read");
    let life = "/entity?name=http%3A%2F%2F127.0.0.1%3A1099&key=%2Ften";
    let schedule = format!("/schedules/{}", shop.text("SELECT id FROM awty_http.endpoint WHERE uri LIKE '%/ten'"));
    browser.shows(life, &["No call has ended"]);
    called("ten", slot, at);
    let meanwhile = "(date_trunc('hour', now()) - interval '3590 s')";
    for (path, sentence) in [
        (None, "No other endpoint was called meanwhile, so all calls had stopped"),
        (Some("far"), "Endpoints of other targets were called meanwhile, and none of this target"),
        (Some("near"), "Other endpoints of its target were called meanwhile, so this schedule itself"),
    ] {
        if let Some(path) = path {
            called(path, meanwhile, meanwhile);
        }
        for view in [life, &schedule] {
            let page = browser.shows(view, &["35 s late", " came 35 s late. ", sentence]);
            let place = |text: &str| page.find(text).unwrap_or(usize::MAX);
            assert!(place(sentence) < place("<svg").min(place("Last calls")), "{view}: the cause is not first: {page}");
        }
    }
    // Another endpoint of the job was called during the delay. Therefore the job was not paused, and the page must not
    // name a pause of the job.
    postgres(&format!("UPDATE awty.job SET resumed_at = {at} - interval '2 s'"));
    postgres(&format!("UPDATE awty_http_internal.endpoint SET changed_at = {at} - interval '1 s'"));
    browser.shows(&schedule, &[" came 35 s late. ", "The schedule was paused or changed until"]);
    postgres(&format!("DELETE FROM awty_internal.attempt WHERE leased_at = {meanwhile}"));
    browser.shows(&schedule, &[" came 35 s late. ", "Its job was paused until"]);
}
