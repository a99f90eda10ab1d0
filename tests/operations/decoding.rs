use awty_testkit::Cluster;
use awty_testkit::fixture::{NOTE, Shop};

const TOLD: &str = r"
    SELECT c.xid::text, array_agg(d.id ORDER BY d.id) FILTER (WHERE d.what = 'DELETE'), array_agg(d.id ORDER BY d.id) FILTER (WHERE d.what = 'INSERT')
    FROM pg_logical_slot_get_changes('slot', NULL, NULL, 'skip-empty-xacts', '1') AS c
    CROSS JOIN LATERAL (
        SELECT m[1] AS what, m[2]::bigint AS id
        FROM regexp_matches(c.data, '^table awty(?:_internal)?\.future_job(?:_history_\w+)?: (DELETE|INSERT): id\[bigint\]:(\d+)') AS m
        WHERE c.data ~ '^table awty\.future_job: DELETE' OR c.data ~ '^table awty_internal\.future_job_history_\w+: INSERT'
    ) AS d
    GROUP BY c.xid::text";

#[test]
fn every_end_of_a_check_is_decoded_as_one_transaction() {
    let shop = Shop::on(Cluster::builder().set("wal_level", "logical").start());
    shop.cluster.execute("postgres", &["SELECT pg_create_logical_replication_slot('slot', 'test_decoding')"]);
    shop.job("note", NOTE, "");
    shop.set_job("notes", "BEGIN RETURN array_fill(NULL::timestamptz, ARRAY[cardinality(j)]); END", "");
    shop.job("twice", "BEGIN RETURN CASE WHEN j.check_count = 0 THEN clock_timestamp() END; END", "");
    shop.job("bad", "BEGIN RAISE 'no'; END", ", max_attempts => 2, retry_after => '1 ms'");
    let long =
        "(SELECT to_jsonb(string_agg(md5(random()::text), '')) FROM generate_series(1, 200) AS h WHERE h + n > 0)";
    shop.run("SELECT awty.pause('note')");
    shop.run(&format!(
        "SELECT awty.schedule('orders', name || n, name, after => '1 s', args => CASE WHEN n % 2 = 0 THEN {long} END)
         FROM unnest(ARRAY['note', 'notes', 'twice', 'bad']) AS name, generate_series(1, 10) AS n"
    ));
    shop.run("SELECT awty.cancel('orders', 'note1'), awty.schedule('orders', 'note2', 'note', after => '1 s')");
    shop.cluster.execute("postgres", &["VACUUM FULL awty.future_job"]);
    shop.run("SELECT awty.resume('note')");
    shop.await_all_ended();
    // Logical decoding shows only changes that are on disk. The commit of this statement flushes all earlier changes.
    shop.cluster.execute("postgres", &["CREATE TABLE public.last ()"]);
    let transactions = shop.cluster.superuser("postgres").query(TOLD, &[]).unwrap();
    let mut told: Vec<i64> = Vec::new();
    for row in transactions {
        let [deleted, archived] = [1, 2].map(|column| row.get::<_, Option<Vec<i64>>>(column).unwrap_or_default());
        assert_eq!(deleted, archived, "in transaction {}", row.get::<_, String>(0));
        told.extend(deleted);
    }
    told.sort_unstable();
    let ended: Vec<i64> =
        shop.cluster.value("postgres", "SELECT array_agg(id ORDER BY id) FROM awty.future_job_history");
    assert_eq!((told, ended.len()), (ended.clone(), 41));
}
