//! Causes each fault that stops calls. For each fault, the page must show the reason and a command that helps.

use crate::receiver::Receiver;
use crate::shop::{Gateway, Shop, until};
use crate::visitor::Browser;
use awty_testkit::{Cluster, Stop};

fn text(page: &str) -> String {
    page.replace("&#39;", "'").replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
}

#[track_caller]
fn told(browser: &Browser, path: &str, sentence: &str, command: &str) {
    until(&format!("{sentence} / {command}"), || {
        let page = text(&browser.get(path).text);
        let commands =
            page.split("<pre class=\"command\"><code>").skip(1).filter_map(|rest| rest.split("</code>").next());
        let is_command = commands.into_iter().any(|known| known.contains(command));
        let is_advice = page.contains(&format!("What to do: {command}"));
        if page.contains(sentence) && (is_command || is_advice) { Ok(()) } else { Err(page) }
    });
}

#[track_caller]
fn is_well(browser: &Browser, sentence: &str) {
    until(sentence, || {
        let page = text(&browser.get("/why").text);
        if page.contains("Nothing is in the way.") && page.contains(sentence) { Ok(()) } else { Err(page) }
    });
}

fn open() -> (Shop, Gateway) {
    let shop = Shop::open_on(Cluster::builder().with_movable_clock());
    let gateway = shop.gateway("one");
    (shop, gateway)
}

#[test]
fn the_database_tells_why_it_does_not_run_checks() {
    let (shop, gateway) = open();
    // The endpoint answers, because awty also warns of a call that has failed ten times.
    let receiver = Receiver::start();
    let (origin, uri) = (receiver.origin(), receiver.uri("/x"));
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let postgres = |sql: &str| shop.cluster.execute("postgres", &[sql]);
    told(&browser, "/why", "Nothing is due, because no check is pending.", "SELECT awty.schedule(");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', every => '1 h')"));
    is_well(&browser, "The next check is due at ");
    shop.app(
        "SELECT awty.create_calendar('office', '{mon-fri 09:00-17:00}', 'UTC', '{2020-01-01, 2020-01-02, 2020-01-03}');
         SELECT awty.register('later'), awty.repeat('later', cron => '0 12 * * mon', zone => 'UTC', starts => now() + interval '10 days', calendar => 'office')",
    );
    told(&browser, "/why", "Nothing stops the checks, but awty has found this.", "SELECT awty.create_calendar(");
    shop.app("SELECT awty.cancel('job', 'later')");
    shop.app(&format!("SELECT awty_http.schedule('{uri}', every => '1 s', jitter => '0')"));
    shop.app("SELECT awty.pause('http.app', 'a day off')");
    told(&browser, "/why", "job \"http.app\" is paused", "SELECT awty.resume('http.app');");
    told(&browser, "/", "Not yet: something is stopped.", "SELECT awty.resume('http.app');");
    shop.app("SELECT awty.resume('http.app')");
    shop.app(&format!(
        "SELECT awty.alter_target('http.app', '{origin}', blocked_until => 'infinity', note => 'they asked')"
    ));
    let unblock = &format!("SELECT awty.alter_target('http.app', '{origin}', blocked_until => '-infinity');");
    told(&browser, "/why", "its target is blocked until infinity", unblock);
    shop.app(unblock);
    postgres("GRANT CREATE ON SCHEMA public TO app");
    shop.app("CREATE FUNCTION tidy() RETURNS void LANGUAGE sql AS ''");
    shop.app("SELECT awty.register('tidy', 'tidy'); SELECT awty.repeat('tidy', every => '1 s')");
    postgres("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC; GRANT CONNECT ON DATABASE postgres TO gateway");
    told(
        &browser,
        "/why",
        "role \"app\" has no CONNECT on this database",
        "GRANT CONNECT ON DATABASE postgres TO app;",
    );
    postgres("GRANT CONNECT ON DATABASE postgres TO app");
    postgres("ALTER SYSTEM SET awty.enabled = off");
    postgres("SELECT pg_reload_conf()");
    told(&browser, "/why", "awty.enabled is off", "ALTER SYSTEM SET awty.enabled = on; SELECT pg_reload_conf();");
    told(&browser, "/", "something is stopped", "ALTER SYSTEM SET awty.enabled = on; SELECT pg_reload_conf();");
    broken(&browser, "awty is enabled", "The setting awty.enabled is off.");
    broken(&browser, "This gateway claims calls", "The gateway one claims no calls: awty is switched off.");
    postgres("ALTER SYSTEM RESET awty.enabled");
    postgres("SELECT pg_reload_conf()");
    shop.app(&format!("SELECT awty.cancel('job', 'tidy'); SELECT awty_http.unschedule('{uri}')"));
    shop.app("SELECT awty.register('mail'); SELECT awty.schedule('user', '1', 'mail', after => '0')");
    told(
        &browser,
        "/why",
        "no external worker claims checks of job \"mail\"",
        "SELECT * FROM awty.claim(ARRAY['mail'], 'by hand');",
    );
    shop.app("SELECT awty.cancel('user', '1', 'mail')");
    shop.cluster.set_clock(-3_600);
    told(&browser, "/why", "the clock of the database is 1 h behind the clock of this gateway", "timedatectl status");
    shop.cluster.set_clock(0);
    told(&browser, "/why", "Nothing is due, because no check is pending.", "SELECT awty.schedule(");
}

#[track_caller]
fn broken(browser: &Browser, link: &str, why: &str) {
    until(&format!("{link}: {why}"), || {
        let page = text(&browser.get("/why").text);
        let row = page.split("<tr").find(|row| row.contains(&format!(">{link}<"))).unwrap_or_default();
        if row.contains(" no</span>") && row.contains(why) { Ok(()) } else { Err(page) }
    });
}

#[test]
fn the_chain_names_the_link_that_is_broken() {
    let receiver = Receiver::start();
    let shop = Shop::open();
    // The timeout is longer than the test, so that the call to `/hang` does not fail and is not repeated.
    let gateway = shop.gateway_with("gateway", &["--timeout", "10 min"]);
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let postgres = |sql: &str| shop.cluster.execute("postgres", &[sql]);
    let origin = receiver.origin();
    is_well(&browser, "Nothing is due");
    broken(&browser, "A check is pending", "nothing is due");
    shop.app("SELECT awty.register('mail'); SELECT awty.schedule('user', '1', 'mail', after => '0'); SELECT awty.hold('user', '1', 'mail')");
    broken(&browser, "No check is held", "1 check is held");
    told(&browser, "/why", "checks of job \"mail\" are held", "SELECT awty.release(entity_name, entity_key, job)");
    shop.app("SELECT awty.cancel('user', '1', 'mail')");
    shop.app(&format!("SELECT awty.alter_target('http.app', '{origin}', concurrency => 1)"));
    shop.app(&format!("SELECT awty_http.send('{origin}/hang')"));
    receiver.called("/hang", 1);
    shop.app(&format!("SELECT awty_http.send('{origin}/ok')"));
    broken(&browser, "No target is at its limit", &format!("{origin} of job \"http.app\": all 1 leases are in use"));
    until("the full target", || {
        let page = text(&browser.get("/why").text);
        if page.contains("its target is full: all 1 leases are in use") { Ok(()) } else { Err(page) }
    });
    shop.app(&format!("SELECT awty.alter_target('http.app', '{origin}', reset => '{{concurrency}}')"));
    shop.app(&format!("SELECT awty.alter_target('http.app', '{origin}', blocked_until => 'infinity')"));
    broken(&browser, "No target is blocked or failing", "blocked until infinity");
    shop.app(&format!("SELECT awty.alter_target('http.app', '{origin}', blocked_until => '-infinity')"));
    postgres("SELECT awty.cancel(entity_name, entity_key, job) FROM awty.future_job WHERE job = 'http.app'");
    shop.app("SELECT awty.pause('mail')");
    broken(&browser, "No job is paused", "Job “mail” is paused.");
    shop.app("SELECT awty.schedule('user', '2', 'mail', after => '1 h')");
    until("the pending check of the paused job", || {
        let page = browser.get("/why").text;
        if page.contains("each is held, or its job is paused") { Ok(()) } else { Err(page) }
    });
    shop.app("SELECT awty.cancel('user', '2', 'mail')");
    shop.app("SELECT awty.resume('mail')");
    postgres("GRANT CREATE ON SCHEMA public TO app");
    shop.app("CREATE FUNCTION nap() RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(600)'");
    shop.app("SELECT awty.register(job, 'nap', timeout => '15 min') FROM unnest('{nap,rest}'::text[]) AS job");
    postgres("ALTER SYSTEM SET awty.max_workers_per_role = 1");
    postgres("SELECT pg_reload_conf()");
    shop.app("SELECT awty.schedule('nap', '1', 'nap', after => '0')");
    shop.await_text("SELECT count(*) FROM awty.running", "1");
    shop.app("SELECT awty.schedule('nap', '1', 'rest', after => '0')");
    broken(&browser, "Workers are free", "all workers that may run it are busy");
    told(&browser, "/why", "are busy", "consider increasing awty.max_workers_per_role or awty.max_workers");
    shop.app("SELECT awty.cancel('nap', '1', job) FROM unnest('{nap,rest}'::text[]) AS job");
    // The first request with a token writes the time to the database. The request must not wait for a standby, because
    // the page reports that the standby is missing.
    let unused = Browser::of(&shop, &gateway, "app", "read");
    postgres("ALTER SYSTEM SET awty.synchronous_commit = on");
    postgres("ALTER SYSTEM SET synchronous_standby_names = 'away'");
    postgres("SELECT pg_reload_conf()");
    shop.app("SET synchronous_commit = local; SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 s', jitter => '0')");
    broken(&unused, "No commit waits for a standby", "claims checks and waits for a synchronous standby");
    told(&browser, "/why", "waits for a synchronous standby", "FROM pg_stat_replication;");
    postgres("ALTER SYSTEM RESET synchronous_standby_names");
    postgres("SELECT pg_reload_conf()");
}

#[test]
fn a_gateway_tells_why_it_does_not_claim() {
    let (shop, gateway) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let mut tenant = shop.cluster.superuser("postgres");
    tenant.batch_execute("REVOKE app FROM gateway").unwrap();
    told(&browser, "/", "<h1>A right is missing</h1>", "GRANT \"app\" TO gateway;");
    told(&browser, "/why", "permission denied to set role \"app\"", "GRANT \"app\" TO gateway;");
    tenant.batch_execute("GRANT app TO gateway").unwrap();
    told(&browser, "/why", "Nothing is due, because no check is pending.", "SELECT awty.schedule(");
    tenant.batch_execute("REVOKE USAGE ON SCHEMA awty FROM app").unwrap();
    told(&browser, "/why", "permission denied for schema awty", "GRANT USAGE ON SCHEMA awty, awty_http TO \"app\";");
    tenant.batch_execute("GRANT USAGE ON SCHEMA awty TO app").unwrap();
    tenant
        .batch_execute(
            "CREATE ROLE bob LOGIN; GRANT USAGE ON SCHEMA awty, awty_http TO bob; SELECT awty_http.add_tenant('bob')",
        )
        .unwrap();
    tenant
        .batch_execute("SET ROLE bob; SELECT awty_http.send('http://127.0.0.1:1099/x'); RESET ROLE; GRANT bob TO app")
        .unwrap();
    told(&browser, "/why", "no external worker claims checks of job \"http.bob\"", "SELECT * FROM awty.claim(");
}

#[test]
fn the_library_is_not_loaded_or_the_database_is_away() {
    let (mut shop, gateway) = open();
    let browser = Browser::of(&shop, &gateway, "app", "write");
    shop.app("SELECT awty_http.schedule('http://127.0.0.1:1099/x', every => '1 h')");
    shop.cluster.configure("shared_preload_libraries = ''");
    shop.cluster.restart();
    told(
        &browser,
        "/why",
        "awty is not in shared_preload_libraries",
        "ALTER SYSTEM SET shared_preload_libraries = 'awty';",
    );
    told(&browser, "/", "something is stopped", "ALTER SYSTEM SET shared_preload_libraries = 'awty';");
    broken(&browser, "The library is preloaded", "awty is not in shared_preload_libraries");
    until("the gateway's reason", || {
        let reasons = gateway.get("/readyz").1;
        if reasons.contains("no job can be claimed: 55000: awty must be loaded by") { Ok(()) } else { Err(reasons) }
    });
    let page = text(&browser.get("/why").text);
    assert!(!page.contains("is a member of no tenant's role"), "{page}");
    shop.cluster.stop(Stop::Fast);
    told(&browser, "/why", "The database does not answer", "pg_isready -h HOST -d DATABASE");
    told(&browser, "/", "nothing is lost", "pg_isready -h HOST -d DATABASE");
    shop.cluster.configure("shared_preload_libraries = 'awty'");
    shop.cluster.start();
    is_well(&browser, "The next check is due at ");
}
