//! Tests jobs whose functions attack the gateway's database session while the page tries them out.

use crate::people::open;
use crate::shop::{Gateway, Shop, until};
use crate::visitor::Browser;
use awty_testkit::Signal;

const LIFE: &str = "/entity?name=orders&key=1";

#[test]
fn a_function_is_tried_and_undone() {
    let (shop, gateway, _) = open();
    shop.cluster
        .execute("postgres", &["CREATE SCHEMA own AUTHORIZATION app", "ALTER ROLE app SET search_path = 'own'"]);
    shop.cluster.execute("postgres", &["ALTER ROLE app SET timezone = 'Asia/Kolkata'"]);
    shop.app(
        "CREATE TABLE notes (note text);
         CREATE FUNCTION look(check_row awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO notes SELECT 'seen';
             PERFORM pg_advisory_lock(4711);
             CASE check_row.args ->> 0
                 WHEN 'again' THEN RETURN now() + interval '1 day';
                 WHEN 'fail' THEN RAISE '<b>no stock</b> in %', current_setting('TimeZone') USING ERRCODE = 'AW042';
                 ELSE RETURN NULL;
             END CASE;
         END $$;
         SELECT awty.register(job, 'look') FROM unnest('{done,again,fail}'::text[]) AS job;
         SELECT awty.schedule('orders', '1', job, after => '1 day', args => to_jsonb(job)) FROM unnest('{done,again,fail}'::text[]) AS job;
         SELECT awty.register('mail'), awty.schedule('orders', '2', 'mail', after => '1 day')",
    );
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let page = browser.shows(LIFE, &["What would again do now?", "Try it", "SELECT * FROM awty.dry_run('orders', "]);
    assert_eq!(page.matches("Try it").count(), 3, "{page}");
    for (job, told) in [
        ("done", "The check would end: "),
        ("again", "The check would be due again at "),
        ("fail", "&lt;b&gt;no stock&lt;/b&gt; in Asia/Kolkata (AW042)"),
    ] {
        let tried = browser.post(LIFE, &[("job", job)]);
        assert!(tried.status == 200 && tried.text.contains(told), "{job}: {}", tried.text);
    }
    assert_eq!(shop.text("SELECT count(*) FROM own.notes"), "0");
    assert_eq!(shop.text("SELECT count(*) FROM awty.future_job WHERE attempt = 0 AND entity_key = '1'"), "3");
    let locked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711";
    until("the lock of the function to end with its session", || {
        if shop.text(locked) == "0" { Ok(()) } else { Err(shop.text(locked)) }
    });
    // With scope `read`, the page shows the statement without a button. For an external job, which has no function, the
    // page shows no statement.
    let reader = Browser::of(&shop, &gateway, "app", "read");
    assert!(!reader.shows(LIFE, &["awty.dry_run("]).contains("Try it"));
    assert_eq!(reader.post(LIFE, &[("job", "done")]).status, 403);
    assert!(!reader.shows("/entity?name=orders&key=2", &["mail"]).contains("What would"));
    assert_eq!(browser.post("/entity?name=orders&key=2", &[("job", "mail")]).status, 422);
    // Only the job's role itself may try the job's function. A role that may SET ROLE to the job's role may not.
    shop.cluster.execute("postgres", &["GRANT app TO other"]);
    let member = Browser::of(&shop, &gateway, "other", "write");
    assert!(!member.shows(LIFE, &["awty.dry_run("]).contains("Try it"));
    let refused = member.post(LIFE, &[("job", "done")]);
    assert!(refused.status == 403 && refused.text.contains("can be tried only by role"), "{}", refused.text);
}

#[test]
fn a_tried_function_gets_no_right_of_the_gateway() {
    let (shop, gateway, _) = open();
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app(
        "CREATE TABLE bait (n integer);
         CREATE FUNCTION spring() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RESET ROLE; RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER spring AFTER INSERT ON bait DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION spring();
         CREATE FUNCTION switch() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ SELECT set_config('role', 'tenant', true) $$;
         CREATE FUNCTION escape(check_row awty.future_job) RETURNS void LANGUAGE plpgsql AS $$
         BEGIN
             EXECUTE check_row.args ->> 0;
             RAISE 'it is % now', current_user;
         END $$;
         SELECT awty.register('escape', 'escape')",
    );
    let browser = Browser::of(&shop, &gateway, "app", "write");
    for way in [
        "RESET ROLE",
        "SET ROLE tenant",
        "SET LOCAL ROLE NONE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SELECT switch()",
        "SELECT set_config('role', 'none', false)",
        "INSERT INTO bait VALUES (1)",
        "PREPARE p AS SELECT 1",
        "CREATE TEMP TABLE pg_class (n integer)",
        "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    ] {
        let quoted = way.replace('\'', "''");
        shop.app(&format!(
            "SELECT awty.schedule('orders', '1', 'escape', after => '1 day', args => to_jsonb('{quoted}'::text))"
        ));
        let tried = browser.post(LIFE, &[("job", "escape")]);
        let is_refused = ["security-restricted operation (42501)", "security-definer function (42501)"]
            .iter()
            .any(|end| tried.text.contains(end));
        assert!(tried.status == 200 && is_refused && !tried.text.contains("it is"), "{way}: {}", tried.text);
    }
    shop.app("SELECT awty.schedule('orders', '1', 'escape', after => '1 day', args => to_jsonb('SELECT 1'::text))");
    let tried = browser.post(LIFE, &[("job", "escape")]);
    assert!(tried.text.contains("it is app now (P0001)"), "{}", tried.text);
}

const ENDLESS: &str = "LOOP BEGIN PERFORM pg_sleep(3600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;";

/// Lets `app` watch a table with three rows whose condition executes `body` in the gateway's database sessions.
fn watch(shop: &Shop, body: &str) {
    shop.cluster.execute("postgres", &["CREATE SCHEMA own AUTHORIZATION app"]);
    shop.app(&format!(
        "CREATE TABLE own.orders (id bigint PRIMARY KEY, at timestamptz NOT NULL);
         CREATE FUNCTION own.attack(at timestamptz) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
             BEGIN IF session_user = 'gateway' THEN {body} END IF; RETURN false; END $$;
         SELECT awty.watch('own.orders', since => 'at', until => 'own.attack(at)', within => '1 day');
         INSERT INTO own.orders SELECT n, now() FROM generate_series(1, 3) AS n"
    ));
}

/// Holds a row, for which the gateway evaluates the rule's condition.
fn hold_as(browser: &Browser, key: &str) -> u16 {
    browser.post("/entity/hold", &[("name", "orders"), ("key", key), ("job", "orders")]).status
}

fn hold(shop: &Shop, gateway: &Gateway, body: &str) -> u16 {
    watch(shop, body);
    hold_as(&Browser::of(shop, gateway, "app", "write"), "1")
}

/// With row_security off, PostgreSQL refuses queries of tables with row-level security.
#[test]
fn an_expression_of_a_rule_changes_no_session_of_the_gateway() {
    let (shop, gateway, _) = open();
    assert_eq!(hold(&shop, &gateway, "PERFORM set_config('row_security', 'off', false);"), 303);
    let stranger = Browser::of(&shop, &gateway, "tenant", "read");
    for _ in 0..10 {
        stranger.shows("/jobs", &["http.tenant"]);
    }
}

#[test]
fn an_expression_that_catches_its_cancellation_keeps_no_session() {
    let (shop, gateway, _) = open();
    assert_eq!(hold(&shop, &gateway, ENDLESS), 504);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("the session to end", || match shop.text(sessions).as_str() {
        "0" => Ok(()),
        left => Err(left.to_owned()),
    });
}

/// The last place for changes has a time limit of 2 s instead of 10 s, also for a function that ignores it.
#[test]
fn the_last_place_is_free_again_before_the_places_that_were_taken_earlier() {
    let (shop, gateway, _) = open();
    watch(&shop, ENDLESS);
    let of_other = "CREATE TABLE own.third (id bigint PRIMARY KEY, at timestamptz NOT NULL);
        CREATE FUNCTION own.third_attack(at timestamptz) RETURNS boolean STABLE LANGUAGE sql AS 'SELECT own.attack(at)';
        SELECT awty.watch('own.third', since => 'at', until => 'own.third_attack(at)', within => '1 day');
        INSERT INTO own.third VALUES (3, now())";
    shop.cluster.execute("postgres", &["GRANT app TO other"]);
    shop.cluster.client("postgres", "other").batch_execute(of_other).unwrap();
    let sleeping = || {
        let sessions = "SELECT coalesce(string_agg(pid::text, ' ' ORDER BY xact_start), '') FROM pg_stat_activity
            WHERE wait_event = 'PgSleep'";
        shop.text(sessions).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let number = |wanted: usize| {
        until("sessions", || {
            Some(sleeping()).filter(|pids| pids.len() == wanted).ok_or_else(|| format!("{:?}", sleeping()))
        })
    };
    let (app, other) = (&Browser::of(&shop, &gateway, "app", "write"), Browser::of(&shop, &gateway, "other", "write"));
    std::thread::scope(|scope| {
        let earlier = ["1", "2"].map(|key| scope.spawn(move || hold_as(app, key)));
        let first = number(2);
        let last =
            scope.spawn(|| other.post("/entity/hold", &[("name", "third"), ("key", "3"), ("job", "third")]).status);
        assert_eq!(number(3)[..2], first);
        assert_eq!(last.join().unwrap(), 504);
        assert_eq!(number(2), first);
        assert_eq!(earlier.map(|post| post.join().unwrap()), [504, 504]);
    });
}

/// A function can raise a message of a gigabyte, and the gateway would read the whole message into memory.
#[test]
fn large_messages_of_a_function_cost_the_gateway_no_memory() {
    let (shop, gateway, _) = open();
    let messages = "PERFORM set_config('client_min_messages', 'debug1', true);
        RAISE NOTICE '%', repeat('n', 20000000); RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = repeat('e', 20000000);";
    let before = gateway.most_memory();
    assert_eq!(hold(&shop, &gateway, messages), 422);
    shop.app(&format!(
        "CREATE FUNCTION own.say(awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN {messages} END $$;
         SELECT awty.register('says', 'own.say'), awty.schedule('orders', '2', 'says', after => '1 day')"
    ));
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let tried = browser.post("/entity?name=orders&key=2", &[("job", "says")]);
    assert!(tried.status == 200 && tried.text.contains("eeee"), "{} {}", tried.status, tried.text.len());
    let more = gateway.most_memory() - before;
    assert!(more < 12 * 1024, "it has held {more} KiB more");
}

/// Stops the processes of two sessions with SIGSTOP, so that PostgreSQL cannot end the sessions.
#[test]
fn sessions_that_do_not_end_are_few() {
    let (shop, gateway, _) = open();
    shop.cluster.execute("postgres", &["GRANT CREATE ON SCHEMA public TO app"]);
    shop.app(
        "CREATE FUNCTION hang(j awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(3600)';
         CREATE FUNCTION works(j awty.future_job) RETURNS void LANGUAGE sql AS 'SELECT';
         SELECT awty.register('hang', 'hang', timeout => '1 hour'); SELECT awty.register('works', 'works');
         SELECT awty.schedule('orders', '1', job, after => '1 day') FROM unnest('{hang,works}'::text[]) AS job",
    );
    let browser = Browser::of(&shop, &gateway, "app", "write");
    let sessions = "SELECT coalesce(string_agg(pid::text, ' ' ORDER BY pid), '') FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let hanging = || -> Vec<i32> { shop.text(sessions).split_whitespace().map(|pid| pid.parse().unwrap()).collect() };
    let stopped = std::thread::scope(|scope| {
        let posts = [(); 2].map(|()| scope.spawn(|| browser.post(LIFE, &[("job", "hang")]).status));
        let stopped =
            until("two sessions", || Some(hanging()).filter(|pids| pids.len() == 2).ok_or("fewer".to_owned()));
        stopped.iter().for_each(|pid| shop.cluster.kill(Signal::STOP, *pid));
        assert_eq!(posts.map(|post| post.join().unwrap()), [504, 504]);
        stopped
    });
    assert_eq!(browser.post(LIFE, &[("job", "hang")]).status, 504);
    assert_eq!(hanging(), stopped);
    // One role's hanging sessions do not block other roles' requests.
    let other = Browser::of(&shop, &gateway, "tenant", "admin");
    assert_eq!(other.post("/tokens", &[("scope", "read"), ("expires", "1 d")]).status, 200);
    stopped.iter().for_each(|pid| shop.cluster.kill(Signal::CONT, *pid));
    until("the places to be free", || match browser.post(LIFE, &[("job", "works")]).status {
        200 => Ok(()),
        status => Err(status.to_string()),
    });
    assert!(hanging().is_empty());
}
