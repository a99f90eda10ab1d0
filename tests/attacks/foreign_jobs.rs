use crate::field::{DB, Field};

#[test]
fn nobody_touches_another_roles_job() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.sql("alice", "SELECT awty.schedule('thing', '1', 'hers', after => '1 day')");
    for call in [
        "awty.schedule('thing', '1', 'hers', at => now())",
        "awty.schedule('thing', '1', 'hers', at => now(), on_conflict => 'keep')",
        "awty.cancel('thing', '1', 'hers')",
        "awty.alter('hers', max_checks => 1)",
        "awty.unregister('hers')",
        "awty.pause('hers')",
        "awty.resume('hers')",
        "awty.allow('hers', 'mallory')",
        "awty.disallow('hers', 'mallory')",
    ] {
        let refusal = field.refused("mallory", &format!("SELECT {call}"), "42501");
        assert_eq!(refusal.message, "permission denied for job \"hers\"", "{call}");
    }
    let own =
        "CREATE FUNCTION mallory.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'";
    field.sql("mallory", own);
    field.refused("mallory", "SELECT awty.register('hers', 'mallory.f')", "42710");
    // PUBLIC may execute alice's function, but mallory lacks the right USAGE on the schema.
    let refusal = field.refused("mallory", "SELECT awty.register('x', 'alice.hers')", "42501");
    assert!(refusal.message.contains("schema"), "{refusal:?}");
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', '1')"), 0);
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM awty.future_job"), 1);
    field.sql(
        "mallory",
        "SELECT awty.register('his', 'mallory.f'); SELECT awty.schedule('thing', '1', 'his', after => '1 day')",
    );
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', '1')"), 1);
    assert_eq!(field.cluster.psql(DB, "SELECT job FROM awty.future_job").trim(), "hers");
}

#[test]
fn a_foreign_check_looks_like_a_missing_one() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    let id: i64 = field.one("alice", "SELECT awty.schedule('thing', '1', 'hers', after => '1 day')");
    field.sql("postgres", &format!("UPDATE awty.future_job SET held = true WHERE id = {id}"));
    let foreign = field.refused("mallory", "SELECT awty.release('thing', '1')", "42704");
    let missing = field.refused("mallory", "SELECT awty.release('thing', '2')", "42704");
    assert_eq!(foreign.message.replace("\"1\"", "\"2\""), missing.message);
    assert_eq!(foreign.hint, missing.hint);
    assert_eq!(field.one::<i64>("mallory", &format!("SELECT count(*) FROM awty.future_job WHERE id = {id}")), 0);
    assert!(field.one::<bool>("postgres", &format!("SELECT held FROM awty.future_job WHERE id = {id}")));
    field.sql("alice", "SELECT awty.release('thing', '1')");
}

#[test]
fn a_remedy_names_a_job_of_the_caller() {
    let field = Field::new();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.job("mallory", "another", "BEGIN RETURN NULL; END");
    field.sql("mallory", "SELECT awty.allow('another', 'alice')");
    for (role, job) in [("alice", "hers"), ("mallory", "another")] {
        field.sql(role, &format!("SELECT awty.schedule('thing', '1', '{job}', after => '1 day')"));
    }
    for call in ["hold", "release", "check_now"] {
        let refusal = field.refused("alice", &format!("SELECT awty.{call}('thing', '1')"), "21000");
        assert_eq!(refusal.hint, format!("SELECT awty.{call}('thing', '1', 'hers');"));
    }
}

#[test]
fn no_suggestion_repeats_the_name() {
    let field = Field::new();
    field.job("mallory", "hand", "BEGIN RETURN NULL; END");
    let calls = [
        "dry_run('e', '1', 'hand')",
        "repeat('hand', every => '1 h')",
        "alter('hand')",
        "pause('hand')",
        "claim('{hand}', 'w')",
    ];
    for right in [None, Some("read")] {
        if let Some(right) = right {
            field.sql("mallory", &format!("SELECT awty.allow('hand', 'alice', '{right}')"));
        }
        for call in calls {
            let error = field.client("alice").batch_execute(&format!("SELECT awty.{call}")).unwrap_err();
            let hint = error.as_db_error().and_then(|error| error.hint()).unwrap_or_default();
            assert!(!hint.contains("Did you mean \"hand\""), "{call}: {error:?}");
        }
    }
}

#[test]
fn nobody_signals_another_roles_worker_or_the_launcher() {
    let field = Field::new();
    field.sql("alice", "CREATE TABLE alice.door AS SELECT false AS open");
    let body = "BEGIN
        PERFORM pg_advisory_xact_lock(79);
        WHILE NOT (SELECT open FROM alice.door) LOOP PERFORM pg_sleep(0.02); END LOOP;
        RETURN NULL;
    END";
    field.job_with("alice", "slow", body, "timeout => '1 day'");
    let id = field.schedule("alice", "slow", "1");
    field.await_sign(79);
    let mut pids = field.cluster.pids("awty launcher");
    pids.extend(field.cluster.pids("awty worker"));
    assert_eq!(pids.len(), 2);
    for pid in &pids {
        field.refused("mallory", &format!("SELECT pg_cancel_backend({pid})"), "42501");
        field.refused("mallory", &format!("SELECT pg_terminate_backend({pid})"), "42501");
        field.refused("mallory", &format!("SELECT pg_log_backend_memory_contexts({pid})"), "42501");
    }
    field.sql("alice", "UPDATE alice.door SET open = true");
    let ended = field.end_of(id);
    ended.is_done();
    assert_eq!(ended.attempts, 1);
    assert_eq!(field.cluster.pids("awty launcher"), pids[..1]);
}

#[test]
fn a_job_that_ends_its_own_worker_harms_itself_only() {
    let field = Field::new();
    field.job("mallory", "suicide", "BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END");
    let position = field.cluster.log_position();
    let id = field.schedule("mallory", "suicide", "1");
    field.cluster.await_log(&["FATAL", "terminating"], position);
    for _ in 0..4 {
        field.alice_goes_on();
    }
    let ends = field.cluster.log_since(position).matches("FATAL").count();
    assert!(ends < 20, "the worker was started again {ends} times");
    assert_eq!(field.one::<i64>("mallory", &format!("SELECT count(*) FROM awty.future_job WHERE id = {id}")), 1);
    assert_eq!(field.one::<i64>("mallory", "SELECT awty.cancel('thing', '1')"), 1);
    field
        .try_job(
            "mallory",
            "cancelled",
            "BEGIN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(9); RETURN NULL; END",
        )
        .failed_with("57014");
}

#[test]
fn no_process_serves_two_roles() {
    let field = Field::new();
    field.sql(
        "postgres",
        "CREATE TABLE public.pids (who text, pid int, secret text); GRANT ALL ON public.pids TO PUBLIC",
    );
    let body = "BEGIN
        INSERT INTO public.pids VALUES (current_user, pg_backend_pid(), current_setting('my.secret', true));
        SET \"my.secret\" = 'kept'; RETURN NULL;
    END";
    field.job("alice", "hers", body);
    field.job("mallory", "his", body);
    let mut ids = Vec::new();
    for round in 0..3 {
        for (role, job) in [("alice", "hers"), ("mallory", "his")] {
            ids.extend((0..5).map(|key| field.schedule(role, job, &format!("{round}-{key}"))));
        }
    }
    ids.into_iter().for_each(|id| field.end_of(id).is_done());
    let shared = "SELECT count(*) FROM (SELECT pid FROM public.pids GROUP BY pid HAVING count(DISTINCT who) > 1) AS s";
    assert_eq!(field.one::<i64>("postgres", shared), 0);
    assert_eq!(field.one::<i64>("postgres", "SELECT count(*) FROM public.pids WHERE secret <> ''"), 0);
}
