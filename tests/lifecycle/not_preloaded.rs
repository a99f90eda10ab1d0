use awty_testkit::Cluster;
use awty_testkit::fixture::Shop;

#[test]
fn without_preloading_one_may_look_and_is_told_the_line_to_add() {
    let shop = Shop::on(Cluster::builder().without_preload().start());
    shop.run(
        "CREATE FUNCTION shop.note(j awty.future_job) RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
         SELECT * FROM awty.job; SELECT * FROM awty.future_job; SELECT * FROM awty.future_job_history",
    );
    let status = "SELECT NOT enabled AND why LIKE '%shared_preload_libraries%' AND NOT awty.healthy() FROM awty.status";
    assert!(shop.cluster.value::<bool>("postgres", status));
    for call in [
        "SELECT awty.register('note', 'shop.note')",
        "SELECT awty.unregister('note')",
        "SELECT awty.allow('note', 'shop')",
        "SELECT awty.adopt()",
    ] {
        let error = shop.client().batch_execute(call).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "55000", "{call}: {error:?}");
        assert!(error.hint().unwrap().contains("shared_preload_libraries = 'awty'"), "{call}: {error:?}");
    }
}
