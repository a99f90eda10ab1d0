use crate::field::{DB, Field};

const SECRET: &str = "geheim";

fn field() -> Field {
    let field = Field::new();
    field.sql(
        "alice",
        "CREATE FUNCTION alice.geheim_f(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
             IF j.entity_key LIKE '%fail%' THEN RAISE 'geheim error of %', j.args; END IF;
             PERFORM pg_advisory_xact_lock(78);
             PERFORM pg_sleep(86400);
             RETURN NULL;
         END $$;
         SELECT awty.register('geheim job', 'alice.geheim_f', max_attempts => 1, timeout => '1 day');
         SELECT awty.schedule('geheim name', 'geheim key', 'geheim job', args => '{\"a\": \"geheim\"}', after => '1 day')",
    );
    let failing =
        "SELECT awty.schedule('geheim name', 'geheim fail', 'geheim job', args => '{\"a\": \"geheim\"}', at => now())";
    let failed: i64 = field.one("alice", failing);
    field.end_of(failed).failed_with("P0001");
    field.sql(
        "alice",
        "SELECT awty.schedule('geheim name', 'geheim run', 'geheim job', args => '{\"a\": \"geheim\"}', at => now())",
    );
    field.await_sign(78);
    field
}

#[test]
fn no_view_or_process_shows_names_keys_arguments_or_errors() {
    let field = field();
    for relation in [
        "awty.job",
        "awty.future_job",
        "awty.future_job_history",
        "awty.status",
        "awty.failing",
        "awty.running",
        "awty.job_status",
        "awty.forecast()",
        "awty_internal.runtime()",
        "pg_stat_activity",
        "pg_locks",
        "pg_stats",
        "pg_stats_ext",
        "pg_stat_user_tables",
        "pg_stat_user_functions",
        "pg_cursors",
        "pg_prepared_statements",
        "pg_settings",
        "pg_stat_get_activity(NULL)",
        "pg_stat_progress_vacuum",
        "pg_shmem_allocations",
    ] {
        let seen =
            field.client("mallory").query_one(&format!("SELECT string_agg(x::text, E'\\n') FROM {relation} AS x"), &[]);
        let seen: Option<String> = seen.map_or(None, |row| row.get(0));
        assert!(!seen.clone().unwrap_or_default().contains(SECRET), "{relation}: {seen:?}");
    }
    let mut titles = String::new();
    for pid in field.cluster.pids("") {
        titles += &String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    }
    assert!(titles.contains("awty worker") && !titles.contains(SECRET), "{titles}");
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM awty.future_job"), 2);
    assert_eq!(
        field.one::<i64>("alice", "SELECT count(*) FROM awty.future_job_history WHERE message LIKE 'geheim%'"),
        1
    );
}

#[test]
fn a_leaky_function_is_given_no_foreign_row() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.leaked (what text);
         CREATE FUNCTION mallory.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN
             INSERT INTO mallory.leaked VALUES ($1); RETURN true;
         END $$;
         CREATE FUNCTION mallory.eq(text, text) RETURNS boolean LANGUAGE sql COST 0.0000001 AS $$ SELECT mallory.leak($1) $$;
         CREATE OPERATOR mallory.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = mallory.eq, RESTRICT = eqsel);
         CREATE VIEW mallory.v AS SELECT * FROM awty.future_job WHERE mallory.leak(entity_key)",
    );
    for statement in [
        "SELECT * FROM awty.future_job WHERE mallory.leak(entity_key)",
        "SELECT * FROM awty.future_job WHERE mallory.leak(args::text) AND entity_name = 'geheim name'",
        "SELECT * FROM awty.future_job WHERE entity_key OPERATOR(mallory.===) 'x'",
        "SELECT * FROM awty.future_job_history WHERE mallory.leak(message)",
        "SELECT * FROM awty.job WHERE mallory.leak(job)",
        "SELECT * FROM awty.job AS j JOIN awty.future_job AS f ON mallory.leak(j.job || f.entity_key)",
        "SELECT * FROM awty.future_job WHERE 1 / (length(entity_key) - length(entity_key)) = 0",
        "SELECT * FROM awty.future_job WHERE entity_key::integer = 1",
        "SELECT * FROM awty.future_job_history WHERE message::integer = 1",
        "SELECT mallory.leak(v.entity_key) FROM mallory.v",
        "SET enable_seqscan = off; SELECT * FROM awty.future_job WHERE mallory.leak(job) AND id > 0 ORDER BY id",
        "SELECT mallory.leak(f::text) FROM awty.future_job AS f",
        "SELECT count(*) FILTER (WHERE mallory.leak(pending::text || coalesce(last_error, ''))) FROM awty.status",
    ] {
        field.sql("mallory", statement);
    }
    let leaked: String = field.one("mallory", "SELECT coalesce(string_agg(what, ' '), '') FROM mallory.leaked");
    assert!(!leaked.contains(SECRET), "{leaked}");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM awty.future_job"), 0);
    // Even a member of pg_read_all_data, such as a role for backups, cannot turn row_security off.
    field.sql("postgres", "GRANT pg_read_all_data TO mallory");
    let all: i64 = field.one("postgres", "SELECT count(*) FROM awty.future_job");
    assert!(all > 0);
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM awty.future_job"), all);
    field.refused("mallory", "SET row_security = off; SELECT * FROM awty.future_job", "42501");
}

#[test]
fn a_hint_names_no_foreign_job() {
    let field = Field::new();
    field.job("alice", "geheim_job", "BEGIN RETURN NULL; END");
    let schedule = "SELECT awty.schedule('thing', '1', 'geheim_jop', at => now())";
    let refusal = field.refused("mallory", schedule, "42704");
    assert!(!format!("{refusal:?}").contains("geheim_job"), "{refusal:?}");
    field.sql("alice", "SELECT awty.allow('geheim_job', 'mallory')");
    assert!(field.refused("mallory", schedule, "42704").hint.contains("geheim_job"));
}

#[test]
fn a_role_whose_right_is_taken_back_sees_its_own_checks_only() {
    let field = Field::new();
    field.job("alice", "shared", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        "SELECT awty.allow('shared', 'mallory'); SELECT awty.schedule('thing', 'a', 'shared', after => '1 day')",
    );
    field.sql("mallory", "SELECT awty.schedule('thing', 'm', 'shared', after => '1 day')");
    let keys = "SELECT string_agg(entity_key, ',' ORDER BY entity_key) FROM awty.future_job";
    assert_eq!(field.one::<String>("mallory", keys), "a,m");
    assert_eq!(field.one::<String>("alice", keys), "a,m");
    field.sql("alice", "SELECT awty.disallow('shared', 'mallory')");
    assert_eq!(field.one::<String>("mallory", keys), "m");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM awty.job"), 0);
    assert_eq!(field.cluster.psql(DB, "SELECT count(*) FROM awty.future_job").trim(), "2");
}

#[test]
fn estimates_tell_nothing_of_foreign_names_and_keys() {
    let field = Field::new();
    field.job("alice", "geheim", "BEGIN RETURN NULL; END");
    field.sql(
        "alice",
        "SELECT awty.schedule('geheim', 'k' || i, 'geheim', after => '1 day') FROM generate_series(1, 2000) AS i;
         SELECT awty.schedule('other', i::text, 'geheim', after => '1 day') FROM generate_series(1, 20) AS i",
    );
    // Today's partition must exist, because the UPDATE below moves rows from this partition into the default partition.
    field.sql("alice", "SELECT awty.cancel('geheim', 'k' || i) FROM generate_series(1, 1500) AS i");
    field.run("alice", "geheim").is_done();
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 5 FROM pg_inherits");
    field.sql("postgres", "UPDATE awty.future_job_history SET finished_at = '2001-01-01' WHERE entity_key LIKE 'k1%'");
    field.sql("postgres", "ANALYZE");

    let known = "SELECT string_agg(s.starelid::regclass || '.' || a.attname, ' ' ORDER BY 1)
         FROM pg_statistic AS s JOIN pg_attribute AS a ON a.attrelid = s.starelid AND a.attnum = s.staattnum
         JOIN pg_class AS c ON c.oid = s.starelid
         WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[])
           AND (a.attname IN ('job', 'entity_name', 'entity_key') OR c.relname = 'job' AND a.attname = 'name')";
    let known: Option<String> = field.one("postgres", known);

    let estimate = |relation: &str, condition: &str| {
        let explain = format!("EXPLAIN SELECT FROM awty.{relation} WHERE {condition}");
        let plan: String = field.client("mallory").query(&explain, &[]).unwrap()[0].get(0);
        let rows = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned);
        rows.unwrap_or_else(|| panic!("{plan}"))
    };
    let estimates: Vec<(&str, &str, String, String)> = ["future_job", "future_job_history"]
        .into_iter()
        .flat_map(|relation| ["entity_name", "job"].map(|column| (relation, column)))
        .map(|(relation, column)| {
            let of = |value: &str| estimate(relation, &format!("{column} = '{value}'"));
            (relation, column, of(SECRET), of("nothing"))
        })
        .collect();
    assert!(estimates.iter().all(|(_, _, there, missing)| there == missing), "{estimates:?}, from {known:?}");
    assert_eq!(known, None);
}

#[test]
fn no_text_of_a_role_has_statistics() {
    let field = Field::new();
    field.sql("postgres", "CREATE EXTENSION awty_http");
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 10 FROM pg_inherits");
    let known: String = field.one(
        "postgres",
        "SELECT string_agg(DISTINCT a.attname, ' ' ORDER BY a.attname) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
         WHERE c.relnamespace = ANY ('{awty,awty_internal,awty_http,awty_http_internal}'::regnamespace[]) AND c.relkind IN ('r', 'p')
           AND a.attnum > 0 AND coalesce(a.attstattarget, -1) <> 0
           AND a.atttypid = ANY ('{text,text[],name,jsonb,bytea}'::regtype[])",
    );
    assert_eq!(known, "delivery existing keep_attempts keep_history last_outcome on_missed outcome scope verdict walk");
}

#[test]
fn no_function_tells_the_notes_of_others() {
    let field = Field::new();
    field.sql("postgres", "CREATE EXTENSION awty_http");
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    let id: i64 = field.one("alice", "SELECT awty.schedule('thing', '1', 'hers', after => '1 day')");
    field.sql("alice", "SELECT awty.hold('thing', '1', 'hers', note => 'geheim')");
    let why = format!("SELECT coalesce(awty_http_internal.why_held({id}), 'nothing')");
    assert_eq!(field.one::<String>("mallory", &why), "nothing");
    assert!(field.one::<String>("alice", &why).ends_with(" by alice: \"geheim\""));
}

#[test]
fn jobs_and_checks_of_others_are_not_counted_with_a_job_of_the_caller() {
    let field = Field::new();
    field.job("alice", "alices", "BEGIN RETURN NULL; END");
    field.run("alice", "alices");
    field.cluster.await_sql(DB, "the run to be counted", "SELECT runs = 1 FROM awty.job_status WHERE job = 'alices'");
    field.sql("alice", "SELECT awty.schedule('e', '1', 'alices', after => '1 day')");
    field.sql(
        "mallory",
        "SELECT awty.register('A'), awty.allow('A', 'alice', 'read');
         SELECT awty.schedule_many('e', array_agg(n::text), 'A', after => '1 day') FROM generate_series(1, 20000) AS n",
    );
    field.sql(
        "postgres",
        "INSERT INTO awty.job SELECT (jsonb_populate_record(j, jsonb_build_object('job', 'A' || n))).*
         FROM awty.job AS j, generate_series(1, 10000) AS n WHERE j.job = 'A'; ANALYZE",
    );
    let read = "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint FROM pg_class AS c
        WHERE c.relkind IN ('r', 'i') AND c.relname LIKE 'future\\_job%'";
    for role in ["alice", "postgres"] {
        let (mut client, figures) =
            (field.client(role), "SELECT pending, runs FROM awty.job_status WHERE job = 'alices'");
        let mut transaction = client.transaction().unwrap();
        let row = transaction.query_one(figures, &[]).unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 1), "{role}");
        let rows: i64 = transaction.query_one(read, &[]).unwrap().get(0);
        assert!(rows < 100, "{role} reads {rows} rows to count one check");
    }
}
