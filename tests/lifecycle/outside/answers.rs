use super::{await_claim, claim, claim_one, say, shop_with};

#[test]
fn an_answer_is_part_of_the_workers_transaction() {
    let shop = shop_with("", 1);
    let mut client = shop.client();
    let one = claim_one(&shop);
    for end in ["ROLLBACK", "COMMIT"] {
        client.batch_execute("BEGIN; INSERT INTO shop.note (entity_key) VALUES ('1')").unwrap();
        assert_eq!(say(&mut client, "complete($1, result => '{\"a\": 1}')", one.lease), "ended");
        client.batch_execute(end).unwrap();
    }
    assert_eq!(say(&mut client, "complete($1)", one.lease), "void");
    assert_eq!((shop.notes("1"), shop.end_of("1").why()), (1, ("done", None)));
    let attempt =
        "SELECT ok AND result = '{\"a\": 1}' AND worker = 'tester' AND ended_at >= leased_at AND lateness >= '0'
                   AND sqlstate IS NULL FROM awty.attempt";
    assert!(shop.cluster.value::<bool>("postgres", attempt));
}

#[test]
fn failures_are_retried_with_the_same_key_and_counted() {
    let shop = shop_with(", max_attempts => 2, retry_after => '1 ms'", 1);
    let mut client = shop.client();
    let first = claim_one(&shop);
    assert_eq!(say(&mut client, "fail($1, 'no', '40P01')", first.lease), "retrying");
    let failing = "SELECT message = 'no' AND sqlstate = '40P01' AND attempt = 1 FROM awty.failing";
    assert!(shop.cluster.value::<bool>("postgres", failing));
    let second = claim_one(&shop);
    assert_eq!((second.attempt, &second.key), (2, &first.key));
    assert_ne!(second.lease, first.lease);
    assert_eq!(say(&mut client, "fail($1, 'no again')", second.lease), "ended");
    let end = shop.end_of("1");
    assert_eq!((end.why(), end.message.as_deref(), end.attempts), (("failed", Some("38000")), Some("no again"), 2));
    let figures = "SELECT runs = 2 AND failed = 1 AND retries = 1 AND last_claim_at IS NOT NULL FROM awty.job_status";
    shop.await_true("the figures", figures);
}

#[test]
fn asking_again_gives_another_key() {
    let shop = shop_with("", 1);
    let mut client = shop.client();
    let first = claim_one(&shop);
    assert_eq!(
        say(&mut client, "complete($1, next_at => clock_timestamp() + interval '1 ms')", first.lease),
        "rescheduled"
    );
    let second = claim_one(&shop);
    assert_ne!(second.key, first.key);
    assert_eq!(say(&mut client, "complete($1, next_at => '2000-01-01')", second.lease), "ended");
    assert_eq!(shop.end_of("1").why(), ("past", None));
}

#[test]
fn repetitions_go_on() {
    let shop = shop_with("", 0);
    shop.run("SELECT awty.repeat('mail', every => '1 s', jitter => '0')");
    let mut client = shop.client();
    let first = claim_one(&shop);
    assert_eq!(say(&mut client, "complete($1)", first.lease), "next");
    let second = claim_one(&shop);
    assert_ne!(second.key, first.key);
    assert_eq!(
        say(&mut client, "fail($1, 'gone', final => true, retry_at => now() + interval '1 h')", second.lease),
        "next"
    );
    shop.await_true(
        "the plan to go on in an hour",
        "SELECT next_check_at > now() + interval '59 min' FROM awty.future_job",
    );
    shop.run("SELECT awty.check_now('job', 'mail')");
    let third = claim_one(&shop);
    shop.run("SELECT awty.hold('job', 'mail')");
    assert_eq!(say(&mut client, "complete($1)", third.lease), "held");
    assert!(claim(&mut client, 1).is_empty());
}

#[test]
fn many_answers_are_one_transaction_and_each_its_own() {
    let shop = shop_with(", keep_attempts => 'problems'", 4);
    let mut client = shop.client();
    let leased: Vec<i64> = await_claim(&shop, 10).into_iter().map(|one| one.lease).collect();
    assert_eq!(leased.len(), 4);
    let asked = vec![leased[2], 1, leased[0], leased[2]];
    let answers = |client: &mut awty_testkit::postgres::Client, call: &str, leases: &Vec<i64>| -> Vec<String> {
        client.query_one(&format!("SELECT awty.{call}"), &[leases]).unwrap().get(0)
    };
    assert_eq!(answers(&mut client, "complete_many($1)", &asked), ["ended", "void", "ended", "void"]);
    let rest = vec![leased[1], leased[3]];
    let call = "fail_many($1, '{a, b}', '{38001, nonsense}')";
    assert_eq!(answers(&mut client, call, &rest), ["retrying", "void"]);
    assert_eq!(shop.cluster.value::<i64>("postgres", "SELECT count(*) FROM awty.lease"), 1);
    let attempts: String = shop.cluster.psql("postgres", "SELECT string_agg(message, ',') FROM awty.attempt");
    assert_eq!(attempts.trim(), "a");
}

#[test]
fn an_error_in_one_answer_stops_no_other() {
    let shop = shop_with("", 3);
    shop.cluster.execute(
        "postgres",
        &[
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF OLD.entity_key = '2' THEN RAISE 'not that one'; END IF; RETURN OLD; END $$",
            "CREATE TRIGGER refuse BEFORE DELETE ON awty.future_job FOR EACH ROW EXECUTE FUNCTION public.refuse()",
        ],
    );
    let mut client = shop.client();
    let leased: Vec<i64> = await_claim(&shop, 10).into_iter().map(|one| one.lease).collect();
    let answers: Vec<String> = client.query_one("SELECT awty.complete_many($1)", &[&leased]).unwrap().get(0);
    assert_eq!(answers, ["ended", "void", "ended"]);
    assert_eq!(shop.cluster.value::<String>("postgres", "SELECT entity_key::text FROM awty.lease"), "2");
}

#[test]
fn an_answer_of_many_whose_check_is_locked_is_busy_and_the_others_are_booked() {
    let shop = shop_with("", 3);
    let mut client = shop.client();
    let mut leased = await_claim(&shop, 10);
    leased.sort_unstable_by(|one, other| one.entity_key.cmp(&other.entity_key));
    let leases: Vec<i64> = leased.iter().map(|one| one.lease).collect();
    let mut holder = shop.client();
    let locks = "BEGIN; SELECT awty.schedule('orders', k, 'mail', after => '0', on_conflict => 'keep') FROM unnest('{1,2}'::text[]) AS k";
    holder.batch_execute(locks).unwrap();
    client.batch_execute("SET lock_timeout = '20s'").unwrap();
    let mut say = |call: &str, leases: &[i64]| -> Vec<String> {
        let answers = client.query_one(&format!("SELECT awty.{call}"), &[&leases]);
        answers.unwrap_or_else(|error| panic!("{call}: {error:?}")).get(0)
    };
    assert_eq!(say("complete_many($1)", &leases), ["busy", "busy", "ended"]);
    assert_eq!(say("fail_many($1, '{a, b, c}')", &leases), ["busy", "busy", "void"]);
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(say("complete_many($1)", &leases[..1]), ["ended"]);
    assert_eq!(say("fail_many($1, '{a}')", &leases[1..2]), ["retrying"]);
}
