use crate::field::{DB, Field};

const READABLE: [&str; 3] = ["awty.job", "awty.future_job", "awty.future_job_history"];
const INTERNAL: [&str; 8] = [
    "awty_internal.future_job_history_default",
    "awty_internal.check_stat",
    "awty_internal.in_flight",
    "awty_internal.job_stat",
    "awty_internal.origin",
    "awty_internal.hold",
    "awty_internal.stop",
    "awty_internal.repetition",
];

fn statements(table: &str) -> Vec<String> {
    let column = match table {
        "awty_internal.check_stat" | "awty_internal.hold" => "check_id",
        "awty_internal.in_flight" => "worker",
        "awty_internal.origin" => "identity",
        "awty_internal.stop" => "key",
        _ => "job",
    };
    [
        "INSERT INTO {} DEFAULT VALUES",
        "UPDATE {} SET {column} = {column}",
        "DELETE FROM {}",
        "TRUNCATE {}",
        "SELECT 1 FROM {} FOR UPDATE",
        "SELECT 1 FROM {} FOR KEY SHARE",
        "COPY {} FROM STDIN",
        "BEGIN; LOCK TABLE {} IN ROW EXCLUSIVE MODE",
        "BEGIN; LOCK TABLE {} IN SHARE MODE",
        "BEGIN; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
        "CREATE TRIGGER t BEFORE INSERT ON {} FOR EACH STATEMENT EXECUTE FUNCTION mallory.t()",
        "CREATE RULE r AS ON INSERT TO {} DO ALSO SELECT mallory.f()",
        "CREATE POLICY p ON {} USING (true)",
        "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE {} ADD COLUMN c int DEFAULT mallory.f()",
        "ALTER TABLE {} ALTER COLUMN {column} SET DEFAULT mallory.f()",
        "CREATE INDEX ON {} (mallory.f())",
        "CREATE STATISTICS mallory.s ON ctid, xmin FROM {}",
        "COMMENT ON TABLE {} IS 'mine'",
        "REINDEX TABLE {}",
        "DROP TABLE {}",
        "ALTER TABLE {} OWNER TO mallory",
    ]
    .iter()
    .map(|statement| statement.replace("{}", table).replace("{column}", column))
    .collect()
}

fn field() -> Field {
    let field = Field::new();
    field.job("mallory", "own", "BEGIN RETURN NULL; END");
    field.schedule("mallory", "own", "later");
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.f() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1::bigint';
         CREATE FUNCTION mallory.t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    );
    field
}

#[test]
fn nobody_writes_to_a_table_or_hangs_anything_on_it() {
    let field = field();
    for table in READABLE.iter().chain(&INTERNAL) {
        for statement in statements(table) {
            field.refused("mallory", &statement, "42501");
        }
    }
    for (table, kind) in [
        ("awty.job", "text"),
        ("awty.future_job", "bigint"),
        ("awty_internal.check_stat", "bigint"),
        ("awty_internal.in_flight", "int"),
        ("awty_internal.origin", "bigint"),
    ] {
        field.refused("mallory", &format!("CREATE TABLE mallory.child () INHERITS ({table})"), "42501");
        field.refused("mallory", &format!("CREATE TABLE mallory.ref (c {kind} REFERENCES {table})"), "42501");
    }
    field.alice_goes_on();
}

#[test]
fn nobody_reads_what_awty_keeps_for_itself() {
    let field = field();
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 5 FROM pg_inherits");
    let partition: String = field.one(
        "postgres",
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'awty.future_job_history'::regclass
         AND inhrelid <> 'awty_internal.future_job_history_default'::regclass",
    );
    for table in INTERNAL.iter().copied().chain([partition.as_str()]) {
        field.refused("mallory", &format!("SELECT count(*) FROM {table}"), "42501");
    }
    for sequence in ["awty.future_job_id_seq", "awty_internal.identity"] {
        field.refused("mallory", &format!("SELECT nextval('{sequence}')"), "42501");
        field.refused("mallory", &format!("SELECT setval('{sequence}', 1)"), "42501");
        field.refused("mallory", &format!("SELECT last_value FROM {sequence}"), "42501");
    }
}

#[test]
fn nobody_changes_the_schema_the_functions_or_the_extension() {
    let field = field();
    for statement in [
        "CREATE TABLE awty.mine (i int)",
        "CREATE FUNCTION awty.schedule(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION awty.adopt() RETURNS void LANGUAGE sql AS 'SELECT'",
        "ALTER FUNCTION awty.adopt() SECURITY DEFINER",
        "ALTER FUNCTION awty.adopt() SET search_path = mallory",
        "DROP FUNCTION awty.adopt()",
        "DROP SCHEMA awty CASCADE",
        "ALTER SCHEMA awty RENAME TO mine",
        "DROP EXTENSION awty CASCADE",
        "ALTER EXTENSION awty ADD FUNCTION mallory.f()",
        "ALTER EXTENSION awty UPDATE",
        "CREATE TRIGGER t AFTER INSERT ON mallory.t EXECUTE FUNCTION awty_internal.job_changed()",
        "CREATE OR REPLACE VIEW awty.status AS SELECT 1",
        "BEGIN; LOCK TABLE awty.status IN ACCESS EXCLUSIVE MODE",
        "SELECT awty.adopt()",
    ] {
        field.sql("mallory", "CREATE TABLE IF NOT EXISTS mallory.t (i int)");
        field.refused("mallory", statement, "42501");
    }
}

#[test]
fn default_privileges_open_no_door() {
    let field = Field::new();
    field.sql(
        "postgres",
        "DROP EXTENSION awty; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory;
         CREATE EXTENSION awty; GRANT USAGE ON SCHEMA awty TO alice, mallory",
    );
    field.alice_goes_on();
    field.cluster.await_sql(DB, "the partitions", "SELECT count(*) > 5 FROM pg_inherits");
    let rights = field.cluster.psql(
        DB,
        "SELECT c.relname, a.grantee::regrole, a.privilege_type FROM pg_class AS c, aclexplode(c.relacl) AS a
         WHERE c.relnamespace = ANY ('{awty,awty_internal}'::regnamespace[]) AND a.grantee <> c.relowner
           AND NOT (a.privilege_type = 'SELECT' AND a.grantee = 0 AND c.relname IN ('job', 'future_job', 'future_job_history',
                    'check_stat', 'hold', 'stop', 'repetition', 'status', 'failing', 'running', 'job_status', 'here', 'standing', 'first_overdue', 'overdue', 'recent', 'stray', 'reason',
                    'rule', 'alert', 'late', 'untold', 'calendar', 'standstill', 'lease', 'attempt', 'target', 'bucket', 'breaker'))
           AND NOT (a.privilege_type = 'SELECT' AND a.grantee = 'pg_database_owner'::regrole
                    AND (c.relname IN ('check_stat', 'hold', 'repetition', 'origin', 'rule_function', 'future_job_id_seq') OR c.relname ~ '^(future_job_history|attempt)_'))",
    );
    assert_eq!(rights.trim(), "");
    assert_eq!(field.one::<i64>("mallory", "SELECT count(*) FROM awty.future_job_history"), 0);
}
