use crate::field::{DB, Field, answer};
use awty_testkit::postgres::Client;

const NOTING: &str = "(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO mallory.caught VALUES (current_user, j.job); RETURN NULL;
END $$";

const HARMLESS: &str = "(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'";

fn field() -> Field {
    let field = Field::new();
    field.sql(
        "mallory",
        "CREATE TABLE mallory.caught (who text, job text);
         GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.caught TO PUBLIC",
    );
    field
}

#[track_caller]
fn alice_does_not_run_what_became_mallorys(field: &Field, change: &[(&str, &str)]) {
    field.sql(
        "alice",
        &format!("CREATE FUNCTION box.f{HARMLESS}; SELECT awty.register('hers', 'box.f', max_attempts => 1)"),
    );
    field.run("alice", "hers").is_done();
    field.sql("alice", "SELECT awty.pause('hers')");
    let id = field.schedule("alice", "hers", "2");
    for (role, sql) in change {
        field.sql(role, sql);
    }
    field.sql("alice", "SELECT awty.resume('hers')");
    let ended = field.end_of(id);
    let caught = field.cluster.psql(DB, "SELECT who, job FROM mallory.caught");
    assert_eq!(caught.trim(), "", "mallory's function ran with alice's rights");
    ended.failed_with("42501");
    let refusal = field.refused("alice", "SELECT awty.schedule('thing', '4', 'hers', at => now())", "42501");
    assert!(refusal.message.contains("box.f") && !refusal.hint.is_empty(), "{refusal:?}");
    for statement in refusal.hint.split(';') {
        let _ = field.client("postgres").batch_execute(statement);
    }
    field.refused("alice", "SELECT awty.schedule('thing', '5', 'hers', at => now())", "42501");
}

#[test]
fn a_function_in_the_place_of_ones_own_does_not_run() {
    let field = field();
    field.sql("postgres", "CREATE SCHEMA box; GRANT ALL ON SCHEMA box TO alice, mallory");
    alice_does_not_run_what_became_mallorys(
        &field,
        &[("alice", "DROP FUNCTION box.f"), ("mallory", &format!("CREATE FUNCTION box.f{NOTING}"))],
    );
}

#[test]
fn a_schema_renamed_into_the_place_of_ones_own_changes_no_function() {
    let field = field();
    field.sql("postgres", "CREATE SCHEMA box AUTHORIZATION alice; GRANT CREATE ON DATABASE postgres TO alice, mallory");
    field.sql(
        "mallory",
        &format!("CREATE SCHEMA decoy; GRANT USAGE ON SCHEMA decoy TO PUBLIC; CREATE FUNCTION decoy.f{NOTING}"),
    );
    alice_does_not_run_what_became_mallorys(
        &field,
        &[("alice", "ALTER SCHEMA box RENAME TO chest"), ("mallory", "ALTER SCHEMA decoy RENAME TO box")],
    );
}

const WATCH_X: &str = "SELECT awty.watch('mine.t', 'done', within => '1 h', existing => 'none', rule => 'x')";

/// Mallory's call waits for a reader of the table before it drops the triggers. Meanwhile, she renames schemas, so that
/// the name of her own schema `mine` means a schema with objects of alice.
#[track_caller]
fn while_schemas_are_renamed(field: &Field, call: &str) -> String {
    let (mut holder, mut caller) = (field.client("mallory"), field.client("mallory"));
    holder.batch_execute("BEGIN; SELECT FROM mine.t").unwrap();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| answer(&mut caller, call));
        field.cluster.await_sql(
            DB,
            "the call to wait",
            "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'mine.t'::regclass AND NOT granted)",
        );
        field.sql("mallory", "ALTER SCHEMA mine RENAME TO aside; ALTER SCHEMA shared RENAME TO mine");
        holder.batch_execute("ROLLBACK").unwrap();
        calling.join().unwrap()
    })
}

fn field_of_schemas() -> Field {
    let field = field();
    field.sql("postgres", "GRANT CREATE ON DATABASE postgres TO mallory");
    field.sql(
        "mallory",
        &format!(
            "CREATE SCHEMA shared; GRANT ALL ON SCHEMA shared TO alice; CREATE SCHEMA mine; CREATE FUNCTION mine.f{NOTING};
             CREATE TABLE mine.t (id int PRIMARY KEY, done boolean)"
        ),
    );
    field
}

#[test]
fn schemas_that_are_renamed_meanwhile_move_no_trigger_to_another_roles_table() {
    let field = field_of_schemas();
    field.sql("alice", "CREATE TABLE shared.t (id int PRIMARY KEY, done boolean)");
    field.sql("mallory", WATCH_X);
    let watch =
        "SELECT awty.watch('mine.t', 'done', within => '2 h', existing => 'none', rule => 'x', replace => true)";
    assert_eq!(while_schemas_are_renamed(&field, watch), "40001");
    let triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'mine.t'::regclass";
    assert_eq!(field.one::<i64>("postgres", triggers), 0);
    field.sql("alice", "INSERT INTO mine.t VALUES (1, false); UPDATE mine.t SET done = true");
}

#[test]
fn schemas_that_are_renamed_meanwhile_drop_no_function_of_another_role() {
    let field = field_of_schemas();
    field.sql("alice", "CREATE FUNCTION shared.awty_x(done boolean) RETURNS int LANGUAGE sql AS 'SELECT 1'");
    field.sql("mallory", WATCH_X);
    let ended = while_schemas_are_renamed(&field, "SELECT awty.unwatch('x')");
    assert_eq!(field.one::<i32>("alice", "SELECT mine.awty_x(true)"), 1);
    let left: i64 = field.one("mallory", "SELECT count(*) FROM pg_proc WHERE proname = 'awty_x'");
    assert_eq!((ended.as_str(), left), ("", 1));
}

/// The rule `t` tells an alert of a row of `table` each second. A run of the rule waits for the lock of a session, with
/// which `change` is called. Afterwards, the rule has to tell the alert again.
#[track_caller]
fn changed_during_a_run(field: &Field, owner: &str, table: &str, change: impl FnOnce(&mut Client)) {
    let oid: String = field.one("postgres", &format!("SELECT '{table}'::regclass::oid::text"));
    field.sql(owner, "SELECT awty.alter('t', retry_after => '1 s')");
    field.sql(owner, &format!("INSERT INTO {table} (id, at) VALUES (1, now() - interval '1 h')"));
    field.cluster.await_sql(DB, "the alert", "SELECT count(*) = 1 FROM awty.alert WHERE told > 0");
    let mut holder = field.client(owner);
    holder.batch_execute(&format!("BEGIN; LOCK TABLE {table}")).unwrap();
    let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE relation = {oid} AND NOT granted)");
    field.cluster.await_sql(DB, "the run to wait", &waits);
    let told: i64 = field.one("postgres", "SELECT told FROM awty.alert");
    change(&mut holder);
    holder.batch_execute("COMMIT").unwrap();
    field.cluster.await_sql(DB, "the next telling", &format!("SELECT told > {told} FROM awty.alert"));
    holder.batch_execute("SELECT").expect("a crash of the server has closed the session");
    assert_eq!(field.cluster.psql(DB, "SELECT who, job FROM mallory.caught").trim(), "");
}

/// Mallory gets a function that notes as whom it runs, and may rename her schemas.
fn field_of_decoys() -> Field {
    let field = field();
    field.sql("postgres", "GRANT CREATE ON DATABASE postgres TO mallory");
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.note(what text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO mallory.caught VALUES (current_user, what); RETURN what IS NULL;
         END $$;
         CREATE SCHEMA box; CREATE SCHEMA decoy; GRANT USAGE ON SCHEMA decoy TO PUBLIC",
    );
    field
}

#[track_caller]
fn a_renamed_view_is_not_read_as(owner: &str) {
    let field = field_of_decoys();
    field.sql("mallory", &format!("GRANT ALL ON SCHEMA box TO {owner}"));
    field.sql(
        "mallory",
        "CREATE VIEW decoy.t AS SELECT 1 AS id, now() - interval '1 h' AS at, mallory.note('view') AS done;
         GRANT SELECT ON decoy.t TO PUBLIC",
    );
    field.sql(
        owner,
        "CREATE TABLE box.t (id int PRIMARY KEY, at timestamptz, done boolean);
         SELECT awty.watch('box.t', since => 'at', until => 'done', within => '1 s', every => '1 s')",
    );
    changed_during_a_run(&field, owner, "box.t", |_| {
        field.sql("mallory", "ALTER SCHEMA box RENAME TO aside; ALTER SCHEMA decoy RENAME TO box");
    });
}

#[test]
fn schemas_that_are_renamed_during_a_run_lend_no_rights() {
    a_renamed_view_is_not_read_as("alice");
}

#[test]
fn schemas_that_are_renamed_during_a_run_lend_no_rights_of_a_superuser() {
    a_renamed_view_is_not_read_as("postgres");
}

#[test]
fn a_type_of_a_key_that_is_renamed_during_a_run_lends_no_rights() {
    let field = field_of_decoys();
    field.sql(
        "mallory",
        "GRANT ALL ON SCHEMA box TO alice;
         CREATE DOMAIN decoy.number AS int CHECK (mallory.note('domain') IS NOT NULL)",
    );
    field.sql(
        "alice",
        "CREATE DOMAIN box.number AS int; CREATE TABLE alice.t (id box.number PRIMARY KEY, at timestamptz, done boolean);
         SELECT awty.watch('alice.t', since => 'at', until => 'done', within => '1 s', every => '1 s')",
    );
    changed_during_a_run(&field, "alice", "alice.t", |_| {
        field.sql("mallory", "ALTER SCHEMA box RENAME TO aside; ALTER SCHEMA decoy RENAME TO box");
    });
}

#[test]
fn columns_that_are_renamed_during_a_run_crash_no_server() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.t (id int PRIMARY KEY, at timestamptz, n bigint NOT NULL DEFAULT 1, s text);
         SELECT awty.watch('alice.t', since => 'at', until => $$s = 'y'$$, within => '1 s', every => '1 s')",
    );
    changed_during_a_run(&field, "alice", "alice.t", |holder| {
        holder.batch_execute("ALTER TABLE alice.t RENAME s TO aside; ALTER TABLE alice.t RENAME n TO s").unwrap();
    });
}

#[test]
fn a_function_that_changes_hands_does_not_run_for_its_former_owner() {
    let field = field();
    field.sql("postgres", "CREATE SCHEMA box AUTHORIZATION alice; GRANT ALL ON SCHEMA box TO mallory");
    alice_does_not_run_what_became_mallorys(
        &field,
        &[
            ("postgres", "ALTER FUNCTION box.f OWNER TO mallory"),
            ("mallory", &format!("CREATE OR REPLACE FUNCTION box.f{NOTING}")),
        ],
    );
}

#[test]
fn nobody_registers_another_roles_function_by_looking_at_a_view() {
    let field = field();
    field.job("alice", "hers", "BEGIN RETURN NULL; END");
    field.sql(
        "mallory",
        &format!(
            "CREATE FUNCTION mallory.f{NOTING};
             CREATE FUNCTION mallory.g() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
                 PERFORM awty.register('planted', 'mallory.f'); PERFORM awty.schedule('thing', '1', 'planted', at => now()); RETURN 1;
             END $$;
             CREATE VIEW mallory.registers AS SELECT awty.register('planted', 'mallory.f')::text;
             CREATE VIEW mallory.calls AS SELECT mallory.g();
             CREATE VIEW mallory.alters AS SELECT awty.alter('hers', function => 'mallory.f')::text;
             GRANT SELECT ON mallory.registers, mallory.calls, mallory.alters TO PUBLIC"
        ),
    );
    for view in ["registers", "calls", "alters"] {
        let refusal = field.refused("alice", &format!("TABLE mallory.{view}"), "42501");
        assert!(refusal.message.contains("mallory.f") && !refusal.hint.is_empty(), "{view}: {refusal:?}");
    }
    let jobs = "SELECT job, function_schema, function_name FROM awty.job";
    assert_eq!(field.cluster.psql(DB, jobs).trim(), "hers|alice|hers");
    field.alice_goes_on();
    assert_eq!(field.cluster.psql(DB, "SELECT who FROM mallory.caught").trim(), "");
}

#[test]
fn a_function_of_somebody_who_is_trusted_anyway_runs() {
    let field = field();
    field.sql(
        "postgres",
        &format!(
            "CREATE ROLE guild LOGIN; GRANT USAGE ON SCHEMA awty TO guild; GRANT guild TO alice;
             CREATE SCHEMA tools; CREATE FUNCTION tools.f{HARMLESS}; GRANT USAGE ON SCHEMA tools TO PUBLIC;
             CREATE SCHEMA guild AUTHORIZATION guild"
        ),
    );
    field.sql("guild", &format!("CREATE FUNCTION guild.f{HARMLESS}"));
    field.sql("alice", &format!("CREATE FUNCTION alice.f{HARMLESS}; GRANT USAGE ON SCHEMA alice TO guild"));
    for (job, register) in [
        ("own", "awty.register('own', 'alice.f')"),
        ("tool", "awty.register('tool', 'tools.f')"),
        ("common", "awty.register('common', 'guild.f')"),
        ("registrar", "awty.register('registrar', 'alice.f', run_as => 'guild')"),
    ] {
        field.sql("alice", &format!("SELECT {register}"));
        field.run("alice", job).is_done();
    }
    field.sql("postgres", "SELECT awty.register('given', 'alice.f', run_as => 'alice')");
    field.run("alice", "given").is_done();
}

#[test]
fn a_former_member_runs_no_code_as_the_role() {
    let field = field();
    field.sql(
        "postgres",
        "CREATE ROLE team LOGIN; GRANT USAGE ON SCHEMA awty TO team; GRANT team TO mallory; GRANT USAGE ON SCHEMA mallory TO team",
    );
    field.sql("mallory", &format!("CREATE FUNCTION mallory.work{HARMLESS}"));
    field.sql("mallory", "SELECT awty.register('teams', 'mallory.work', run_as => 'team', max_attempts => 1)");
    field.run("mallory", "teams").is_done();
    field.sql("mallory", "SELECT awty.pause('teams')");
    let id = field.schedule("mallory", "teams", "after");
    field.sql("postgres", "REVOKE team FROM mallory");
    field.refused("postgres", "SELECT awty.schedule('thing', 'more', 'teams', at => now())", "42501");
    field.sql("postgres", "SELECT awty.resume('teams')");
    field.end_of(id).failed_with("42501");
    field.sql("postgres", "GRANT team TO mallory");
    field.run("mallory", "teams").is_done();
}

#[test]
fn an_old_owner_sees_no_open_alert_and_no_check_of_a_rule_that_the_new_one_replaced() {
    let field = Field::new();
    field.cluster.create_user(DB, "bob");
    field.sql(
        "alice",
        "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz, s text);
         INSERT INTO alice.orders SELECT n, now() - interval '2 h' FROM generate_series(1, 3) AS n;
         INSERT INTO alice.orders VALUES (4, now())",
    );
    let watch = |rest| {
        format!(
            "SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '1 h', escalate => '{{1 day}}', {rest})"
        )
    };
    field.sql("alice", &watch("existing => 'all'"));
    let all_are_known = "SELECT (SELECT count(*) FROM awty.alert) = 3
        AND (SELECT count(*) FROM awty.future_job WHERE entity_name = 'orders') = 4";
    field.cluster.await_sql(DB, "three alerts and four checks", all_are_known);
    field.sql("alice", "UPDATE alice.orders SET s = 'y' WHERE id = 1; SELECT awty.hold('orders', '2')");
    field.cluster.await_sql(
        DB,
        "the end of the first check",
        "SELECT count(*) = 3 FROM awty.future_job WHERE entity_name = 'orders'",
    );
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO bob; ALTER TABLE alice.orders OWNER TO bob");
    let replace = watch("existing => 'none', replace => true");
    let mut alice = field.client("alice");
    alice.batch_execute("BEGIN; SELECT awty.hold('orders', '3')").unwrap();
    field.refused("bob", &replace, "55P03");
    alice.batch_execute("COMMIT").unwrap();
    field.sql("bob", &replace);
    let seen = |role| -> String {
        field.one(
            role,
            "SELECT concat_ws(' ', (SELECT string_agg(entity_key, ',' ORDER BY entity_key) FROM awty.alert WHERE cleared_at IS NULL),
                 (SELECT count(*) FROM awty.late), (SELECT string_agg(entity_key, ',' ORDER BY entity_key) FROM awty.future_job
                 WHERE entity_name = 'orders'), (SELECT count(*) FROM awty.alert WHERE cleared_at IS NOT NULL))",
        )
    };
    assert_eq!((seen("alice").as_str(), seen("bob").as_str()), ("0 1", "2,3 2 2,3,4 0"));
    assert_eq!(field.one::<i64>("alice", "SELECT count(*) FROM awty.future_job"), 0);
}

/// A later job of the same name would run for these repetitions.
#[test]
fn unwatch_leaves_no_repetition_to_a_later_owner_of_the_name() {
    let field = Field::new();
    field.cluster.create_user(DB, "bob");
    field.sql("alice", "CREATE TABLE alice.orders (id bigint PRIMARY KEY, at timestamptz, s text)");
    let watch = "SELECT awty.watch('alice.orders', since => 'at', until => $$s = 'y'$$, within => '1 h')";
    field.sql(
        "alice",
        &format!("{watch}; SELECT awty.repeat('orders', every => '1 h', entity_name => 'orders', entity_key => '4')"),
    );
    field.sql("postgres", "GRANT ALL ON SCHEMA alice TO bob; ALTER TABLE alice.orders OWNER TO bob");
    field.sql("bob", &format!("BEGIN; SELECT awty.unwatch('orders'); {watch}; COMMIT"));
    let left = "SELECT (SELECT count(*) FROM awty_internal.repetition) + (SELECT count(*) FROM awty.future_job
                    WHERE entity_key = '4')";
    assert_eq!(field.one::<i64>("postgres", left), 0);
}
