use crate::field::{DB, Field};

#[test]
fn any_message_is_archived_and_can_be_read() {
    let field = Field::new();
    let cases = [
        ("huge", "repeat('x', 1000000)", "repeat('x', 4096)"),
        ("wide", "repeat('ä', 3000)", "repeat('ä', 2048)"),
        ("lines", "E'a\\nb\\r\\nc\\td'", "E'a\\nb\\r\\nc\\td'"),
        (
            "control",
            "(SELECT string_agg(chr(i), '') FROM generate_series(1, 31) AS i)",
            "(SELECT string_agg(chr(i), '') FROM generate_series(1, 31) AS i)",
        ),
        ("format", "'%s %n %d %1$s {} {0} %m'", "'%s %n %d %1$s {} {0} %m'"),
        ("escape", "E'\\x1b[2J\\x1b]0;title\\x07red'", "E'\\x1b[2J\\x1b]0;title\\x07red'"),
        ("quotes", "'''); DROP TABLE awty.job; --'", "'''); DROP TABLE awty.job; --'"),
        ("empty", "''", "''"),
        ("unicode", "U&'\\202Eright\\FEFF\\+01F600'", "U&'\\202Eright\\FEFF\\+01F600'"),
    ];
    let jobs = cases.map(|(name, message, _)| (name, format!("BEGIN RAISE EXCEPTION '%', {message}; END")));
    for ((name, _, kept), ended) in cases.iter().zip(field.try_jobs("mallory", &jobs)) {
        ended.failed_with("P0001");
        let same = format!("SELECT message = {kept} FROM awty.future_job_history WHERE job = '{name}'");
        assert!(
            field.one::<bool>("mallory", &same),
            "{name}: {}",
            field.cluster.psql(DB, "SELECT left(message, 99) FROM awty.future_job_history")
        );
    }
    field.alice_goes_on();
}

#[test]
fn any_sqlstate_is_archived_as_given() {
    let field = Field::new();
    let cases = [
        ("success", "RAISE 'x' USING ERRCODE = '00000'", "P0001"),
        ("custom", "RAISE 'x' USING ERRCODE = 'AWTY1'", "AWTY1"),
        ("panic", "RAISE 'PANIC: x' USING ERRCODE = 'XX000'", "XX000"),
        ("corrupted", "RAISE 'x' USING ERRCODE = 'data_corrupted'", "XX001"),
        ("shutdown", "RAISE 'x' USING ERRCODE = 'admin_shutdown'", "57P01"),
        ("cancel", "RAISE 'x' USING ERRCODE = 'query_canceled'", "57014"),
        ("warning", "RAISE 'x' USING ERRCODE = '01000'", "01000"),
        ("no_data", "RAISE 'x' USING ERRCODE = '02000'", "02000"),
        ("assert", "ASSERT false, 'x'", "P0004"),
        ("division", "PERFORM 1 / 0", "22012"),
        ("no_return", "NULL", "2F005"),
    ];
    let jobs = cases.map(|(name, raise, _)| (name, format!("BEGIN {raise}; END")));
    for ((_, raise, sqlstate), ended) in cases.iter().zip(field.try_jobs("mallory", &jobs)) {
        assert_eq!(ended.why(), ("failed", Some(*sqlstate)), "{raise}: {ended:?}");
    }
    field.alice_goes_on();
}

#[test]
fn the_last_error_is_the_one_that_is_archived() {
    let field = Field::new();
    let body = "BEGIN
        BEGIN RAISE 'first' USING ERRCODE = 'AWTY1'; EXCEPTION WHEN OTHERS THEN RAISE WARNING 'second' USING ERRCODE = 'AWTY2'; END;
        RAISE NOTICE 'third' USING ERRCODE = 'AWTY3';
        RAISE 'fourth' USING ERRCODE = 'AWTY4';
    END";
    let ended = field.try_job("mallory", "last", body);
    ended.failed_with("AWTY4");
    assert_eq!(ended.message(), "fourth");
    field
        .try_job("mallory", "caught", "BEGIN BEGIN RAISE 'x'; EXCEPTION WHEN OTHERS THEN END; RETURN NULL; END")
        .is_done();
    let body = "BEGIN
        BEGIN PERFORM awty.cancel('thing', 'x', 'no such job'); EXCEPTION WHEN undefined_object THEN END;
        PERFORM awty.schedule('thing', 'x', 'no such job', at => now());
    END";
    field.try_job("mallory", "awtys", body).failed_with("42704");
}

#[test]
fn any_name_comes_back_as_it_was() {
    let field = Field::new();
    let names = ["'; DROP SCHEMA awty CASCADE; --", "%s%n", "a\nb", "\"quoted\"", "ä€😀", "$1", "\\", "NULL", " ", "."];
    field.sql(
        "mallory",
        "CREATE FUNCTION mallory.named(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql
             AS $$ BEGIN RAISE '%', j.job || j.entity_name || j.entity_key; END $$",
    );
    let ids = names.map(|name| {
        let quoted = name.replace('\'', "''");
        field.sql("mallory", &format!("SELECT awty.register('{quoted}', 'mallory.named', max_attempts => 1)"));
        field.one::<i64>("mallory", &format!("SELECT awty.schedule('{quoted}', '{quoted}', '{quoted}', at => now())"))
    });
    for (name, id) in names.iter().zip(ids) {
        let ended = field.end_of(id);
        ended.failed_with("P0001");
        assert_eq!(ended.message(), name.repeat(3));
    }
    let kept = field.one::<i64>(
        "mallory",
        "SELECT count(*) FROM awty.future_job_history WHERE job = entity_name AND job = entity_key",
    );
    assert_eq!(kept, names.len() as i64);
}

#[test]
fn any_bytes_are_archived_where_there_is_no_encoding() {
    let field = Field::new();
    field.sql("postgres", "CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'");
    field.cluster.create_extension("bytes");
    field.cluster.execute(
        "bytes",
        &[
            "GRANT USAGE ON SCHEMA awty TO mallory; CREATE SCHEMA mallory AUTHORIZATION mallory",
            "CREATE FUNCTION mallory.f(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql
                 AS $$ BEGIN RAISE '%', repeat(E'\\xff\\xc3\\x80\\xe2', 2000); END $$",
        ],
    );
    field
        .cluster
        .client("bytes", "mallory")
        .batch_execute(
            "SELECT awty.register(E'\\xfe\\xff', 'mallory.f', max_attempts => 1);
             SELECT awty.schedule(E'\\xc3', E'\\xed\\xa0\\x80', E'\\xfe\\xff', at => now())",
        )
        .unwrap();
    field.cluster.await_sql(
        "bytes",
        "the check to have failed",
        "SELECT count(*) = 1 FROM awty.future_job_history
         WHERE entity_name = E'\\xc3' AND entity_key = E'\\xed\\xa0\\x80' AND job = E'\\xfe\\xff' AND sqlstate = 'P0001'
           AND message ~ '^[?]+$' AND octet_length(message) <= 4096",
    );
    let log = std::fs::read(field.cluster.log_file()).unwrap();
    assert!(!log.windows(5).any(|bytes| bytes == b"PANIC") && !log.windows(10).any(|bytes| bytes == b"terminated"));
    field.alice_goes_on();
}
