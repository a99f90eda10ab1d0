use crate::kills::crash;
use crate::place::Place;

pub fn failed(place: &mut Place) -> String {
    place.shop().batch_execute("INSERT INTO shop.orders SELECT n, 'fail' FROM generate_series(1, 40) AS n").unwrap();
    place.await_all_ended();
    let ended = place.sum("SELECT count(*) FROM awty.future_job_history WHERE job = 'fail' AND outcome = 'failed'");
    assert_eq!(ended, 40);
    let left: i64 = place.value("SELECT count(*) FROM shop.outbox");
    assert_eq!(left, 0, "failed runs have left rows on other nodes");
    format!("{ended} jobs failed three times each and left nothing")
}

/// The checks of a two-phase transaction run soon after COMMIT PREPARED, before awty's audit would find them.
pub fn prepared(place: &mut Place) -> String {
    let mut client = place.shop();
    for first in [1, 101, 201] {
        let sql = format!("INSERT INTO shop.orders SELECT n, 'tell' FROM generate_series({first}, {first} + 99) AS n");
        client.batch_execute(&sql).unwrap();
        place.await_all_ended();
    }
    let waited = "SELECT coalesce(ceil(extract(epoch FROM max(started_at - next_check_at))), 0)::int FROM awty.future_job_history WHERE job = 'tell'";
    let waited: i64 = place.on_all(waited).iter().map(|seconds| seconds.parse().unwrap()).max().unwrap();
    assert!(waited < 30, "a check waited {waited} s, so that the audit found it");
    format!("300 orders in transactions with two phases: no check waited longer than {waited} s")
}

/// The server crashes after another node has committed a run's effects. If the run's own commit were not on disk, the
/// check would run again.
pub fn flushed(place: &mut Place) -> String {
    place.nodes[0].configure("wal_writer_delay = '10s'");
    place.nodes[0].reload();
    place.on_all("INSERT INTO shop.closed_door VALUES (true)");
    let keys = place.keys(&place.nodes[0], &place.nodes[1], 1, 2);
    let (first, second) = (keys[0], keys[1]);
    // The second run waits, so that the crash comes while the worker still has a run to finish.
    let orders = format!("INSERT INTO shop.orders VALUES ({first}, 'wait', '1 hour'), ({second}, 'wait', '1 hour')");
    place.shop().batch_execute(&orders).unwrap();
    place.nodes[0].run_as(
        "shop",
        &format!(
            "SELECT awty.schedule('orders', {first}, 'wait', after => '1 s');
             SELECT awty.schedule('orders', {second}, 'wait', after => '1 s', args => '{{\"waits\": true}}')"
        ),
    );
    let sql = format!("SELECT count(*) = 1 FROM shop.outbox WHERE order_id = -{first}");
    place.coordinator.await_sql("postgres", "the effect on the other node", &sql);
    let waits =
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'awty worker' AND wait_event = 'PgSleep')";
    place.nodes[0].await_sql("postgres", "the second run to wait", waits);
    crash(&mut place.nodes[0]);
    place.nodes[0].start();
    place.on_all("DELETE FROM shop.closed_door");
    place.await_all_ended();
    let effects: i64 =
        place.value(&format!("SELECT count(*) FROM shop.outbox WHERE order_id IN (-{first}, -{second})"));
    assert_eq!(effects, 2, "a run was repeated whose effects were committed on the other node");
    place.nodes[0].configure("wal_writer_delay = '200ms'");
    place.nodes[0].restart();
    "a killed node repeated no run whose effects another node had committed".into()
}
