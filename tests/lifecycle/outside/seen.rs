use super::{claim_one, say, shop_with};

#[test]
fn explain_status_and_doctor_tell_of_leases_and_of_workers_that_do_not_come() {
    let shop = shop_with("", 1);
    let why = "SELECT why LIKE 'no external worker has claimed checks of job \"mail\" since the server started%' FROM awty.status";
    shop.await_true("the status to say that nobody claims", why);
    let finding =
        "SELECT count(*) = 1 FROM awty.doctor() WHERE finding = 'no external worker claims checks of job \"mail\"'";
    assert!(shop.cluster.value::<bool>("postgres", finding));
    let one = claim_one(&shop);
    let running = "SELECT detail LIKE 'it is leased since % to tester until %' FROM awty.explain('orders', '1') WHERE event = 'running'";
    assert!(shop.cluster.value::<bool>("postgres", running));
    let fractions = || {
        shop.cluster
            .psql("postgres", "SELECT detail FROM awty.explain('orders', '1') WHERE detail ~ ':[0-9]{2}[.][0-9]'")
    };
    assert_eq!(fractions().trim(), "", "a time has fractions of a second");
    let seen = "SELECT count(*) = 1 FROM awty.running WHERE job = 'mail' AND pid IS NULL AND timeout = '30 s' AND role = 'shop'";
    assert!(shop.cluster.value::<bool>("postgres", seen));
    let well = "SELECT why IS NULL AND lag = '0' FROM awty.status";
    assert!(shop.cluster.value::<bool>("postgres", well));
    assert!(
        shop.cluster.value::<bool>("postgres", "SELECT last_claim_at > now() - interval '1 min' FROM awty.job_status")
    );
    assert_eq!(say(&mut shop.client(), "fail($1, 'broken', final => true)", one.lease), "ended");
    let told = "SELECT string_agg(event, ',') FROM awty.explain('orders', '1')";
    assert_eq!(shop.cluster.psql("postgres", told).trim(), "scheduled,ran,leased,failed");
    assert_eq!(fractions().trim(), "", "a time has fractions of a second");
    let ran = "SELECT detail FROM awty.explain('orders', '1') WHERE event = 'ran'";
    let ran = shop.cluster.psql("postgres", ran);
    assert!(ran.contains(" ms in one run, which started "), "{ran}");
}

#[test]
fn a_failing_target_is_no_reason_for_the_database() {
    let shop = shop_with("", 1);
    shop.cluster.execute(
        "postgres",
        &["INSERT INTO awty_internal.breaker (job, target, failures, since, opened_at, opens, message, failed_at)
           VALUES ('mail', 'orders', 11, now() - interval '1 min', now(), 6, 'connection refused', now())"],
    );
    let well = "SELECT why IS NULL AND lag = '0' AND awty.healthy() FROM awty.status";
    shop.await_true("the check to be due", "SELECT next_check_at < now() FROM awty.future_job WHERE entity_key = '1'");
    assert!(shop.cluster.value::<bool>("postgres", well), "{}", shop.cluster.psql("postgres", "TABLE awty.status"));
    let finding =
        "SELECT fix FROM awty.doctor() WHERE finding = 'target \"orders\" of job \"mail\" has failed too often'";
    let mut client = shop.client();
    let fix: String = client.query_one(finding, &[]).unwrap().get(0);
    client.batch_execute(&fix).unwrap();
    assert!(client.query(finding, &[]).unwrap().is_empty());
}
