use crate::field::{DB, Field, answer};

/// `mallory.note()` notes the current user.
fn field() -> Field {
    let field = Field::new();
    field.sql("postgres", "GRANT CREATE ON DATABASE postgres TO mallory");
    field.sql(
        "mallory",
        "CREATE TABLE mallory.caught (who text);
         GRANT USAGE ON SCHEMA mallory TO PUBLIC; GRANT INSERT ON mallory.caught TO PUBLIC;
         CREATE FUNCTION mallory.note(what text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO mallory.caught VALUES (current_user); RETURN true;
         END $$",
    );
    field
}

fn caught(field: &Field) -> String {
    field.one("postgres", "SELECT coalesce(string_agg(DISTINCT who, ' '), '') FROM mallory.caught")
}

/// Alice's call of `awty.watch()` waits for the name of a job. Meanwhile, mallory renames the schema that has the type
/// of a column, and a domain of hers with a CHECK takes the type's place.
#[test]
fn an_expression_keeps_its_types_while_a_rule_is_created() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE SCHEMA box; GRANT ALL ON SCHEMA box TO PUBLIC; CREATE SCHEMA decoy; GRANT USAGE ON SCHEMA decoy TO PUBLIC;
         CREATE FUNCTION mallory.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
    );
    field.sql(
        "alice",
        "CREATE TYPE box.status AS ENUM ('open', 'closed');
         CREATE TYPE box.pair AS (s box.status, n int);
         CREATE TABLE alice.t (id int PRIMARY KEY, at timestamptz, s box.status, p box.pair)",
    );
    field.sql(
        "mallory",
        "CREATE DOMAIN decoy.status AS box.status CHECK (mallory.note(VALUE::text));
         CREATE TYPE decoy.pair AS (s decoy.status, n int)",
    );
    let mut holder = field.client("mallory");
    holder.batch_execute("BEGIN; SELECT awty.register('t', 'mallory.f')").unwrap();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            field.sql(
                "alice",
                "SELECT awty.watch('alice.t', since => 'at', until => $$greatest(s, 'closed') = s AND coalesce(p, '(closed,1)') IS NOT NULL$$,
                     within => '1 s', every => '1 s')",
            );
        });
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'alice')";
        field.cluster.await_sql(DB, "the call to wait", waits);
        field.sql("mallory", "ALTER SCHEMA box RENAME TO aside; ALTER SCHEMA decoy RENAME TO box");
        holder.batch_execute("ROLLBACK").unwrap();
        watching.join().unwrap();
    });
    field.sql("alice", "INSERT INTO alice.t VALUES (1, now() - interval '1 h', 'open')");
    field.cluster.await_sql(DB, "a second telling", "SELECT EXISTS (SELECT FROM awty.alert WHERE told > 1)");
    field.sql("alice", "UPDATE alice.t SET s = 'closed'");
    assert_eq!(caught(&field), "");
}

/// PostgreSQL evaluates a literal when it parses the expression.
#[test]
fn a_literal_in_an_expression_runs_no_code_as_a_superuser_who_repairs_the_rule() {
    let field = field();
    field.sql(
        "mallory",
        "CREATE DOMAIN mallory.dom AS text CHECK (mallory.note(VALUE));
         CREATE TABLE mallory.c (id int PRIMARY KEY, at timestamptz, a mallory.dom[]);
         SELECT awty.watch('mallory.c', since => 'at', until => $$a = '{x}'$$, within => '1 h');
         DROP TRIGGER awty_c_update ON mallory.c",
    );
    let fix: String = field.one("postgres", "SELECT fix FROM awty.doctor() WHERE finding = 'rule \"c\" has stopped'");
    field.sql("postgres", &fix);
    assert_eq!(caught(&field), "mallory");
}

/// The evaluation of a rule writes to another table, whose many rules fill the list of plans.
#[test]
fn a_list_of_plans_that_is_full_frees_no_plan_that_is_at_work() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.many (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, done boolean);
         SELECT count(awty.watch('alice.many', 'done', within => '1 day', rule => 'many' || g)) FROM generate_series(1, 505) AS g;
         CREATE FUNCTION alice.write() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN
             INSERT INTO alice.many (done) VALUES (false); RETURN true;
         END $$;
         CREATE FUNCTION alice.f(b boolean) RETURNS boolean LANGUAGE plpgsql STABLE AS $$ DECLARE x boolean; BEGIN
             SELECT alice.write() INTO x; RETURN b;
         END $$;
         CREATE TABLE alice.one (id int PRIMARY KEY, done boolean);
         SELECT awty.watch('alice.one', 'alice.f(done)', within => '1 day')",
    );
    let mut client = field.client("alice");
    for id in 0..10 {
        client
            .batch_execute(&format!("INSERT INTO alice.one VALUES ({}, false), ({}, false)", 2 * id, 2 * id + 1))
            .unwrap();
    }
    assert!(client.query_one("SELECT count(*) > 0 FROM alice.many", &[]).unwrap().get::<_, bool>(0));
}

/// PostgreSQL's parser accepts the expressions. awty needs more of the stack to look through them.
#[test]
fn a_long_expression_is_refused_and_crashes_no_server() {
    let field = field();
    field.sql("alice", "CREATE TABLE alice.t (id int PRIMARY KEY, done boolean, at timestamptz)");
    let long = |terms: usize| format!("done OR 1{}>0", "+1".repeat(terms));
    let mut client = field.client("alice");
    let watch =
        |terms: usize| format!("SELECT awty.watch('alice.t', '{}', within => '1 h', rule => 'r{terms}')", long(terms));
    let answers: Vec<String> = [500, 2_200, 3_000, 8_000].map(|terms| answer(&mut client, &watch(terms))).into();
    assert!(answers[0].is_empty() && answers.iter().all(|answer| ["", "54001"].contains(&&**answer)), "{answers:?}");
    field.sql(
        "alice",
        "CREATE TABLE alice.late (id int PRIMARY KEY, done boolean, at timestamptz);
         SELECT awty.watch('alice.late', 'done', since => 'at', within => '1 h');
         INSERT INTO alice.late VALUES (1, false, now() - interval '59 min 57 s')",
    );
    field.sql(
        "alice",
        &format!(
            "CREATE OR REPLACE FUNCTION alice.awty_late(done boolean) RETURNS boolean STABLE RETURN {}",
            long(5_000)
        ),
    );
    let answer = answer(&mut client, "INSERT INTO alice.late VALUES (2, false, now())");
    assert!(["", "54001"].contains(&&*answer), "{answer}");
    let ran = "SELECT EXISTS (SELECT FROM awty.failing WHERE sqlstate = '54001') OR EXISTS (SELECT FROM awty.alert)";
    field.cluster.await_sql(DB, "a run", ran);
    assert!(!field.cluster.log_since(0).contains("terminated by signal"));
}

/// The CHECK of a literal's type changes how PostgreSQL would read the text of the expression.
#[test]
fn an_expression_is_read_once() {
    let field = field();
    field.sql(
        "alice",
        "CREATE TABLE alice.t (id int PRIMARY KEY, done boolean, at timestamptz);
         CREATE FUNCTION alice.change(i int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
             PERFORM set_config('standard_conforming_strings', 'off', false); RETURN true;
         END $$;
         CREATE DOMAIN alice.d AS int CHECK (alice.change(VALUE))",
    );
    let mut client = field.client("postgres");
    let watch = r"SET ROLE alice; SELECT awty.watch('alice.t', $x$done OR '{1}'::alice.d[] IS NULL OR '\' = 'x'$x$, within => '1 h')";
    assert_eq!(answer(&mut client, watch), "");
    assert_eq!(answer(&mut client, "INSERT INTO alice.t VALUES (1, false, now())"), "");
}
