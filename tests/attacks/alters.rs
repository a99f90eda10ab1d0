use awty_testkit::PATIENCE;

use crate::field::{DB, Field, answer, waits};

/// Returns the SQLSTATE of the second call. This call waits, because the first call's transaction is still open.
#[track_caller]
pub fn beside(field: &Field, first: (&str, &str), second: (&str, &str)) -> String {
    let [mut before, mut after] = [first.0, second.0].map(|role| field.client(role));
    let pid: i32 = after.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    before.batch_execute(&format!("BEGIN; SELECT {}", first.1)).unwrap();
    let mut postgres = field.client("postgres");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| answer(&mut after, &format!("SELECT {}", second.1)));
        field.cluster.await_that("the second call to wait, or to be answered", PATIENCE, || {
            let waits: bool = postgres.query_one(&waits(pid), &[]).map_err(|error| format!("{error:?}"))?.get(0);
            if waits || second.is_finished() { Ok(()) } else { Err("neither".into()) }
        });
        before.batch_execute("COMMIT").unwrap();
        second.join().unwrap()
    })
}

pub fn field_with_guild(jobs: &[&str]) -> Field {
    let field = Field::new();
    field.sql(
        "postgres",
        "CREATE ROLE guild LOGIN; CREATE SCHEMA guild AUTHORIZATION guild;
         GRANT USAGE ON SCHEMA awty TO guild; GRANT guild TO alice, mallory",
    );
    let function =
        "CREATE FUNCTION guild.f(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'";
    field.sql("guild", function);
    for job in jobs {
        field.sql("guild", &format!("SELECT awty.register('{job}', 'guild.f')"));
    }
    field
}

#[test]
fn a_call_that_waited_for_a_change_of_role_is_judged_after_it() {
    let calls = [
        ("a", "awty.alter('a', timeout => '1 day')"),
        ("b", "awty.alter('b', max_checks => 9, reset => '{timeout}')"),
        ("c", "awty.allow('c', 'mallory')"),
        ("d", "awty.pause('d')"),
        ("e", "awty.unregister('e')"),
    ];
    let field = field_with_guild(&calls.map(|(job, _)| job));
    let answers = calls.map(|(job, call)| {
        let handed = format!("awty.alter('{job}', run_as => 'alice')");
        (job, beside(&field, ("alice", &handed), ("mallory", call)))
    });
    let jobs = "SELECT job, role, allowed, timeout, max_checks, paused FROM awty.job ORDER BY job";
    let hers: Vec<String> = calls.iter().map(|(job, _)| format!("{job}|alice|{{}}|00:00:30|5|f")).collect();
    assert_eq!(field.cluster.psql(DB, jobs).trim().lines().collect::<Vec<_>>(), hers, "{answers:?}");
    assert_eq!(answers, calls.map(|(job, _)| (job, "42501".into())));
    field.refused("mallory", "SELECT awty.schedule('thing', '1', 'c', at => now())", "42501");
}

#[test]
fn two_changes_of_one_job_at_the_same_time_both_stay() {
    let field = field_with_guild(&["a", "b", "c"]);
    for (first, second) in [
        ("awty.alter('a', max_checks => 7)", "awty.alter('a', timeout => '7 seconds')"),
        ("awty.alter('b', run_as => 'alice')", "awty.alter('b', timeout => '7 seconds', max_checks => 7)"),
        ("awty.alter('c', timeout => '7 seconds')", "awty.alter('c', run_as => 'alice', max_checks => 7)"),
    ] {
        assert_eq!(beside(&field, ("alice", first), ("alice", second)), "", "{second}");
    }
    let jobs = "SELECT job, role, timeout, max_checks FROM awty.job ORDER BY job";
    assert_eq!(field.cluster.psql(DB, jobs).trim(), "a|guild|00:00:07|7\nb|alice|00:00:07|7\nc|alice|00:00:07|7");
}

#[test]
fn a_former_role_of_a_job_has_no_right_to_the_job() {
    let field = field_with_guild(&["altered", "replaced"]);
    field.sql("postgres", "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA awty TO clerk");
    for (job, role) in [("altered", "guild"), ("altered", "clerk"), ("replaced", "guild"), ("replaced", "clerk")] {
        field.sql("guild", &format!("SELECT awty.allow('{job}', '{role}', 'schedule')"));
    }
    field.sql("alice", "SELECT awty.alter('altered', run_as => 'alice')");
    field.sql("alice", "SELECT awty.register('replaced', 'guild.f', run_as => 'alice', replace => true)");
    assert_eq!(field.one::<i64>("guild", "SELECT count(*) FROM awty.job"), 0);
    for job in ["altered", "replaced"] {
        let schedule = format!("SELECT awty.schedule('thing', '1', '{job}', after => '1 h')");
        field.refused("guild", &schedule, "42501");
        field.sql("clerk", &schedule);
    }
}
