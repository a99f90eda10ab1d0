use crate::field::Field;

#[test]
fn every_answer_has_its_outcome() {
    let field = Field::new();
    let cases = [
        ("null", "NULL", "done"),
        ("minus_infinity", "'-infinity'", "past"),
        ("infinity", "'infinity'", "beyond_horizon"),
        ("last_year", "'294276-12-31 23:59:59.999999+00'", "beyond_horizon"),
        ("first_year", "'4713-01-01 00:00:00+00 BC'", "past"),
        ("own_slot", "j.next_check_at", "past"),
        ("before", "j.next_check_at - interval '1 microsecond'", "past"),
        ("just_too_far", "clock_timestamp() + interval '366 days 1 minute'", "beyond_horizon"),
    ];
    let jobs = cases.map(|(name, answer, _)| (name, format!("BEGIN RETURN {answer}; END")));
    for ((name, _, outcome), ended) in cases.iter().zip(field.try_jobs("mallory", &jobs)) {
        assert_eq!(ended.why(), (*outcome, None), "{name}: {ended:?}");
        assert_eq!((ended.attempts, ended.check_count), (1, 1), "{name}: {ended:?}");
    }
    field.alice_goes_on();
}

#[test]
fn now_for_ever_is_one_check_per_slot() {
    let field = Field::new();
    field.sql("mallory", "CREATE TABLE mallory.ran (slot timestamptz, at timestamptz DEFAULT clock_timestamp())");
    let options = "max_checks => 4";
    for (name, answer) in [("now", "now()"), ("passed", "j.next_check_at + interval '1 microsecond'")] {
        let body = format!("BEGIN INSERT INTO mallory.ran VALUES (j.next_check_at); RETURN {answer}; END");
        field.job_with("mallory", name, &body, options);
        let ended = field.run("mallory", name);
        assert_eq!(
            (ended.outcome.as_str(), ended.check_count, ended.attempts),
            ("exhausted", 4, 4),
            "{name}: {ended:?}"
        );
        let slots = "SELECT count(DISTINCT slot) = 4 AND bool_and(slot = date_trunc('second', slot) AND at >= slot) FROM mallory.ran";
        assert!(field.one::<bool>("mallory", slots), "{name}");
        field.sql("mallory", "TRUNCATE mallory.ran");
    }
}

#[test]
fn a_wrong_number_of_answers_is_a_failure() {
    let field = Field::new();
    for (name, answer) in
        [("none", "NULL"), ("empty", "'{}'"), ("many", "array_fill(now(), ARRAY[3])"), ("square", "'{{NULL,NULL}}'")]
    {
        field.sql(
            "mallory",
            &format!(
                "CREATE FUNCTION mallory.{name}(j awty.future_job[]) RETURNS timestamptz[] LANGUAGE plpgsql
                     AS $job$ BEGIN RETURN {answer}; END $job$;
                 SELECT awty.register('{name}', 'mallory.{name}', max_attempts => 1)"
            ),
        );
        field.run("mallory", name).failed_with("2202E");
    }
    field.alice_goes_on();
}
