use crate::field::{DB, Field, answer};

const LATE: &str = "now() - interval '1 hour'";

/// `mallory.note()` notes the current user, unless it is mallory.
fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT CREATE ON SCHEMA public TO alice, mallory");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.caught (who text);
         GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.caught TO PUBLIC;
         CREATE FUNCTION mallory.catch() RETURNS void LANGUAGE sql AS 'INSERT INTO mallory.caught VALUES (current_user)';
         CREATE FUNCTION mallory.note() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
             IF current_user <> 'mallory' THEN PERFORM mallory.catch(); END IF;
             RETURN true;
         END $$",
    );
    field
}

#[track_caller]
fn nothing_is_caught(field: &Field) {
    let caught: String = field.one("postgres", "SELECT coalesce(string_agg(who, ' '), '') FROM mallory.caught");
    assert_eq!(caught, "", "mallory's function ran with the rights of others");
}

const COLUMNS: &str = "(tenant text, id int, done boolean, at timestamptz, PRIMARY KEY (tenant, id))";

const WATCH: &str = "SELECT awty.watch('public.t', until => 'done', due => 'at', existing => 'all')";

fn tree(field: &Field, owner: &str) {
    field.sql(
        owner,
        &format!(
            "CREATE TABLE public.t {COLUMNS} PARTITION BY LIST (tenant);
             CREATE TABLE public.own PARTITION OF public.t FOR VALUES IN ('own');
             CREATE TABLE public.deep PARTITION OF public.t FOR VALUES IN ('deep') PARTITION BY RANGE (id);
             GRANT INSERT ON public.t TO mallory"
        ),
    );
    field.sql("mallory", &format!("CREATE TABLE mallory.part {COLUMNS}"));
}

/// The check has raised an alert or has failed.
const CHECKED: &str =
    "SELECT EXISTS (SELECT FROM awty.alert) OR EXISTS (SELECT FROM awty.future_job WHERE attempt > 0)";

const ATTACH: &str = "ALTER TABLE public.deep ATTACH PARTITION mallory.part FOR VALUES FROM (0) TO (9)";

#[track_caller]
fn fix(field: &Field) -> String {
    field.one("postgres", "SELECT fix FROM awty.doctor() WHERE finding = 'rule \"t\" has stopped'")
}

#[test]
fn a_table_with_a_partition_of_another_role_is_not_watched() {
    let field = field();
    tree(&field, "postgres");
    field.sql("postgres", ATTACH);
    let refusal = field.refused("postgres", WATCH, "42501");
    assert!(refusal.message.contains("mallory.part"), "{refusal:?}");
    assert!(refusal.hint.ends_with("ALTER TABLE mallory.part OWNER TO \"postgres\";"), "{refusal:?}");
}

#[track_caller]
fn a_partition_of_another_role_stops_the_rule_of(owner: &str) {
    let field = field();
    tree(&field, owner);
    field.sql(owner, WATCH);
    field.sql(
        owner,
        &format!("SELECT awty.alter('t', retry_after => '1 s'); INSERT INTO public.t VALUES ('own', 1, false, {LATE})"),
    );
    field.cluster.await_sql(DB, "the first alert", "SELECT count(*) = 1 FROM awty.alert");
    field.sql("postgres", ATTACH);
    field.sql("mallory", "CREATE INDEX noting ON mallory.part (id) WHERE mallory.note()");
    field.sql("mallory", &format!("INSERT INTO mallory.part VALUES ('deep', 1, false, {LATE})"));
    field.sql("mallory", &format!("INSERT INTO public.t VALUES ('own', 2, false, {LATE})"));
    nothing_is_caught(&field);
    let fix = fix(&field);
    assert!(fix.ends_with(&format!("ALTER TABLE mallory.part OWNER TO {owner};")), "{fix}");
    field.sql("mallory", "DROP INDEX mallory.noting");
    field.sql("postgres", &format!("ALTER TABLE mallory.part OWNER TO {owner}"));
    field.sql(owner, &format!("INSERT INTO public.t VALUES ('deep', 3, false, {LATE})"));
    field.cluster.await_sql(DB, "the second alert", "SELECT count(*) = 2 FROM awty.alert");
    nothing_is_caught(&field);
}

#[test]
fn a_partition_of_another_role_stops_the_rule() {
    a_partition_of_another_role_stops_the_rule_of("alice");
}

#[test]
fn a_partition_of_another_role_stops_the_rule_of_a_superuser() {
    a_partition_of_another_role_stops_the_rule_of("postgres");
}

/// A run waits for the lock of a partition, which gets another owner meanwhile.
#[test]
fn a_partition_that_changes_hands_during_a_run_lends_no_rights() {
    let field = field();
    tree(&field, "postgres");
    field.sql("postgres", ATTACH);
    field.sql("postgres", "ALTER TABLE mallory.part OWNER TO postgres");
    field.sql("postgres", WATCH);
    field.sql("postgres", "SELECT awty.pause('t'); INSERT INTO public.t VALUES ('own', 1, false, now())");
    let mut holder = field.client("postgres");
    holder.batch_execute("BEGIN; LOCK TABLE mallory.part").unwrap();
    field.sql("postgres", "SELECT awty.resume('t')");
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'mallory.part'::regclass AND NOT granted)";
    field.cluster.await_sql(DB, "the run to wait", waits);
    holder
        .batch_execute(
            "ALTER TABLE mallory.part OWNER TO mallory; SET ROLE mallory;
             CREATE INDEX ON mallory.part (id) WHERE mallory.note(); RESET ROLE; COMMIT",
        )
        .unwrap();
    field.cluster.await_sql(DB, "the check", CHECKED);
    nothing_is_caught(&field);
}

/// An index of a partitioned table is one of each partition as well.
#[test]
fn a_partitioned_table_of_another_role_lends_no_rights() {
    let field = field();
    field.sql(
        "alice",
        &format!(
            "CREATE TABLE public.t {COLUMNS};
             SELECT awty.watch('public.t', until => 'done', due => 'at');
             INSERT INTO public.t VALUES ('own', 1, false, now() + interval '3 s')"
        ),
    );
    field.sql("mallory", &format!("CREATE TABLE mallory.above {COLUMNS} PARTITION BY LIST (tenant)"));
    field.sql("postgres", "ALTER TABLE mallory.above ATTACH PARTITION public.t FOR VALUES IN ('own')");
    field.sql("mallory", "CREATE INDEX ON mallory.above (id) WHERE mallory.note()");
    field.sql("postgres", "TRUNCATE mallory.caught");
    field.cluster.await_sql(DB, "the check", CHECKED);
    nothing_is_caught(&field);
    let fix = fix(&field);
    assert!(fix.ends_with("ALTER TABLE mallory.above OWNER TO alice;"), "{fix}");
}

/// A concurrent detachment that is cancelled in the middle leaves the partition below the table.
#[test]
fn a_partition_whose_detachment_has_not_ended_is_not_watched() {
    let field = field();
    field.sql("alice", &format!("CREATE TABLE public.t {COLUMNS}"));
    field.sql("mallory", &format!("CREATE TABLE mallory.above {COLUMNS} PARTITION BY LIST (tenant)"));
    field.sql("postgres", "ALTER TABLE mallory.above ATTACH PARTITION public.t FOR VALUES IN ('own')");
    let (mut reader, mut mallory) = (field.client("mallory"), field.client("mallory"));
    reader.batch_execute("BEGIN; SELECT FROM mallory.above").unwrap();
    let pid: i32 = mallory.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let detach = "ALTER TABLE mallory.above DETACH PARTITION public.t CONCURRENTLY";
    let detaching = std::thread::spawn(move || answer(&mut mallory, detach));
    let is_half = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)";
    field.cluster.await_sql(DB, "the first half of the detachment", is_half);
    field.sql("postgres", &format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(detaching.join().unwrap(), "57014");
    let refusal = field.refused("alice", WATCH, "42501");
    assert!(refusal.message.contains("mallory.above"), "{refusal:?}");
    reader.batch_execute("COMMIT").unwrap();
    field.sql("mallory", "ALTER TABLE mallory.above DETACH PARTITION public.t FINALIZE");
    field.sql("alice", WATCH);
}

#[test]
fn the_domain_of_a_key_runs_no_code_as_the_owner_of_the_table() {
    let field = field();
    field.sql("mallory", "CREATE DOMAIN mallory.number AS int; CREATE DOMAIN mallory.other AS mallory.number");
    field.sql(
        "alice",
        "CREATE TABLE alice.one (id mallory.number PRIMARY KEY, done boolean, at timestamptz);
         CREATE TABLE alice.two (id mallory.other, n int, done boolean, at timestamptz, PRIMARY KEY (id, n));
         SELECT awty.watch('alice.' || name, until => 'done', due => 'at', existing => 'all') FROM unnest('{one,two}'::text[]) AS name;
         INSERT INTO alice.one VALUES (1, false, now() + interval '3 s');
         INSERT INTO alice.two VALUES (1, 1, false, now() + interval '3 s')",
    );
    field.sql("mallory", "ALTER DOMAIN mallory.number ADD CHECK (mallory.note()) NOT VALID");
    field.cluster.await_sql(DB, "the alerts", "SELECT count(*) = 2 FROM awty.alert");
    nothing_is_caught(&field);
}

#[test]
fn a_key_that_is_a_range_of_a_domain_is_not_watched() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE DOMAIN mallory.number AS int; CREATE TYPE mallory.span AS RANGE (subtype = mallory.number)",
    );
    field.sql("alice", "CREATE TABLE alice.t (id mallory.span PRIMARY KEY, done boolean, at timestamptz)");
    field.refused("alice", "SELECT awty.watch('alice.t', until => 'done', due => 'at')", "42804");
}
