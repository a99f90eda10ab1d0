//! `awty.watch()` waits for locks of other roles only while it has not locked the table against writers or readers.

use crate::field::{DB, Field, answer};
use awty_testkit::PATIENCE;
use awty_testkit::postgres::Client;

const RULE: &str = "'alice.t', since => 'at', until => 'met', within => '1 day'";

fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT USAGE, CREATE ON SCHEMA alice TO mallory");
    field.sql("alice", "CREATE TABLE alice.t (id text PRIMARY KEY, at timestamptz, met boolean, stays boolean)");
    field
}

fn watched(more: &str) -> Field {
    let field = field();
    field.sql("alice", &format!("SELECT awty.watch({RULE}{more})"));
    field.cluster.await_sql(DB, "the walk", "SELECT walk = 'done' FROM awty.rule");
    field
}

/// The transaction of `open` keeps a lock that `call` needs. The call waits in vain, and never with the table locked.
/// Afterwards, the call succeeds.
#[track_caller]
fn waits_without_the_table(field: &Field, mut open: Client, role: &str, call: &str) {
    let mut caller = field.client(role);
    let pid: i32 = caller.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let wanted = call.to_owned();
    let waiting = std::thread::spawn(move || answer(&mut caller, &wanted));
    let locks = format!(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted),
             EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND relation = 'alice.t'::regclass
                     AND mode IN ('ShareRowExclusiveLock', 'AccessExclusiveLock'))"
    );
    let mut postgres = field.client("postgres");
    let mut waited = false;
    field.cluster.await_that("the call to end", PATIENCE, || {
        let row = postgres.query_one(&locks, &[]).unwrap();
        let (waits, locks): (bool, bool) = (row.get(0), row.get(1));
        assert!(!(waits && locks), "{call} keeps clients of the table waiting");
        waited |= waits;
        if waiting.is_finished() { Ok(()) } else { Err(String::new()) }
    });
    assert!(waited, "{call} has not waited");
    assert_eq!(waiting.join().unwrap(), "55P03", "{call}");
    open.batch_execute("ROLLBACK").unwrap();
    field.sql(role, call);
}

#[test]
fn a_function_that_another_role_creates_keeps_no_client_of_the_table_waiting() {
    let field = field();
    let create = |name: &str| {
        let mut open = field.client("mallory");
        let create = format!("CREATE FUNCTION alice.{name} RETURNS boolean LANGUAGE sql RETURN true");
        open.batch_execute(&format!("BEGIN; {create}")).unwrap();
        open
    };
    waits_without_the_table(&field, create("awty_t(boolean)"), "alice", &format!("SELECT awty.watch({RULE})"));
    let replace = format!("SELECT awty.watch({RULE}, stopped => 'stays', replace => true)");
    waits_without_the_table(&field, create("awty_t_stopped(boolean)"), "alice", &replace);
    // The call names the function that has taken the name.
    let mut open = create("awty_other(boolean)");
    let mut alice = field.client("alice");
    let watch = format!("SELECT awty.watch({RULE}, rule => 'other')");
    let waiting = std::thread::spawn(move || answer(&mut alice, &watch));
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'alice' AND wait_event_type = 'Lock')";
    field.cluster.await_sql(DB, "alice to wait", waits);
    open.batch_execute("COMMIT").unwrap();
    assert_eq!(waiting.join().unwrap(), "42710");
}

#[test]
fn a_function_of_a_rule_that_another_session_has_locked_keeps_no_client_of_the_table_waiting() {
    let field = watched("");
    for call in [
        format!("SELECT awty.watch({RULE}, remind => '{{1 hour}}', replace => true)"),
        "SELECT awty.unwatch('t')".into(),
    ] {
        let mut open = field.client("alice");
        open.batch_execute("BEGIN; COMMENT ON FUNCTION alice.awty_t(boolean) IS 'mine'").unwrap();
        waits_without_the_table(&field, open, "alice", &call);
    }
}

/// A new owner of the table takes the name of the rule from the former owner.
#[test]
fn a_shared_name_keeps_no_client_of_the_table_waiting() {
    let field = watched("");
    field.cluster.create_user(DB, "bob");
    field.sql("postgres", "GRANT USAGE, CREATE ON SCHEMA alice TO bob");
    field.sql("alice", "SELECT awty.allow('t', 'mallory', 'schedule')");
    let mut open = field.client("mallory");
    open.batch_execute("BEGIN; SELECT awty.schedule('thing', '1', 't', after => '1 day')").unwrap();
    field.sql("alice", "SELECT awty.disallow('t', 'mallory')");
    field.sql("postgres", "ALTER TABLE alice.t OWNER TO bob");
    waits_without_the_table(&field, open, "bob", &format!("SELECT awty.watch({RULE}, replace => true)"));
}

/// The change of the calendar schedules the walk of the rule.
#[test]
fn a_background_check_that_is_not_committed_keeps_no_client_of_the_table_waiting() {
    let calendar =
        |hours: &str| format!("SELECT awty.create_calendar('shared', '{{mon-sun {hours}}}', 'UTC', replace => true)");
    let field = field();
    field.sql("postgres", &calendar("00:00-24:00"));
    field.sql("alice", &format!("SELECT awty.watch({RULE}, calendar => 'shared')"));
    field.cluster.await_sql(DB, "the walk", "SELECT walk = 'done' FROM awty.rule");
    let mut open = field.client("postgres");
    open.batch_execute(&format!("BEGIN; {}", calendar("00:00-12:00"))).unwrap();
    waits_without_the_table(&field, open, "alice", &format!("SELECT awty.watch({RULE}, replace => true)"));
}

/// awty waits for a writer of the table as CREATE TRIGGER does, also for a writer that has locked only a partition.
#[test]
fn a_writer_of_a_partition_is_waited_for_before_the_name() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.parted (id text PRIMARY KEY, at timestamptz, met boolean) PARTITION BY LIST (id);
         CREATE TABLE alice.part PARTITION OF alice.parted FOR VALUES IN ('1')",
    );
    let mut open = field.client("alice");
    open.batch_execute("BEGIN; INSERT INTO alice.part VALUES ('1', now(), true)").unwrap();
    let mut alice = field.client("alice");
    let pid: i32 = alice.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let watch = "SELECT awty.watch('alice.parted', since => 'at', until => 'met', within => '1 day')";
    let waiting = std::thread::spawn(move || answer(&mut alice, watch));
    let waits = format!(
        "SELECT count(*) FILTER (WHERE classid = 'awty.job'::regclass) FROM pg_locks WHERE pid = {pid}
         HAVING bool_or(NOT granted AND relation = 'alice.part'::regclass)"
    );
    let mut postgres = field.client("postgres");
    field.cluster.await_that("alice to wait", PATIENCE, || {
        let row = postgres.query_opt(&waits, &[]).unwrap().ok_or(String::new())?;
        assert_eq!(row.get::<_, i64>(0), 0, "alice has the name of the rule");
        Ok(())
    });
    open.batch_execute("COMMIT").unwrap();
    assert_eq!(waiting.join().unwrap(), "");
}

/// A writer may wait for a moment of each attempt. The superuser stands for a run that takes long.
#[test]
fn a_locked_row_of_a_rule_keeps_no_client_of_the_table_waiting_for_long() {
    let field = watched("");
    field.sql("alice", "INSERT INTO alice.t VALUES ('1', now(), false)");
    let mut open = field.client("postgres");
    open.batch_execute("BEGIN; SELECT FROM awty.future_job WHERE entity_key = '1' FOR UPDATE").unwrap();
    let unwatch = "SELECT awty.unwatch('t')";
    let mut alice = field.client("alice");
    let waiting = std::thread::spawn(move || answer(&mut alice, unwatch));
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'alice' AND wait_event_type = 'Lock'),
        EXISTS (SELECT FROM pg_locks WHERE relation = 'alice.t'::regclass AND mode = 'AccessExclusiveLock')";
    let mut postgres = field.client("postgres");
    field.cluster.await_that("alice to wait", PATIENCE, || {
        let row = postgres.query_one(waits, &[]).unwrap();
        assert!(!row.get::<_, bool>(1), "alice keeps readers waiting");
        if row.get(0) { Ok(()) } else { Err(String::new()) }
    });
    field.sql("alice", "SET lock_timeout = '1s'; INSERT INTO alice.t VALUES ('2', now(), true)");
    assert_eq!(waiting.join().unwrap(), "55P03");
    open.batch_execute("ROLLBACK").unwrap();
    field.sql("alice", unwatch);
}

/// A role can leave checks on a name that is free. There may be very many of them.
#[test]
fn what_is_left_on_a_free_name_ends_before_the_table_is_locked() {
    let field = Field::new();
    field.sql("alice", "CREATE TABLE alice.orders (id bigint PRIMARY KEY, done boolean)");
    field.sql(
        "postgres",
        "CREATE TABLE public.seen (is_locked boolean);
         CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.seen SELECT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid()
                 AND relation = 'alice.orders'::regclass AND mode = 'ShareRowExclusiveLock');
             RETURN NULL;
         END $$;
         CREATE TRIGGER see AFTER INSERT ON awty.future_job_history FOR EACH ROW EXECUTE FUNCTION public.see()",
    );
    // One transaction, because an inspection would end the check.
    field.sql(
        "postgres",
        "BEGIN;
         INSERT INTO awty.future_job (job, entity_name, entity_key, first_check_at, next_check_at, scheduled_by, scheduled_at)
             SELECT 'orders', 'e', '1', now() + interval '1 day', now() + interval '1 day', 'mallory', now();
         SET LOCAL ROLE alice;
         SELECT awty.watch('alice.orders', until => 'done', within => '1 hour', rule => 'orders');
         COMMIT",
    );
    let seen: Vec<bool> = field.one("postgres", "SELECT array_agg(is_locked) FROM public.seen");
    assert_eq!(seen, [false]);
}

/// Leases outlive the job that has given them.
#[test]
fn a_lease_that_is_left_on_a_free_name_keeps_no_client_of_the_table_waiting() {
    let field = field();
    field.sql(
        "mallory",
        "SELECT awty.register('t', heartbeat => '10 min', timeout => '1 hour');
         SELECT awty.schedule('e', '1', 't', after => '0')",
    );
    field.await_claimable("t");
    let lease: i64 = field.one("mallory", "SELECT lease FROM awty.claim('{t}', 'w', 1)");
    let mut open = field.client("mallory");
    open.batch_execute(&format!("BEGIN; SELECT awty.heartbeat(ARRAY[{lease}]::bigint[])")).unwrap();
    field.sql("mallory", "SELECT awty.unregister('t')");
    waits_without_the_table(&field, open, "alice", &format!("SELECT awty.watch({RULE})"));
}
