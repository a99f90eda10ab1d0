use crate::people;
use crate::receiver::Receiver;
use crate::shop::Shop;

#[test]
fn with_three_connections_all_is_answered_and_booked() {
    let (shop, receiver) = (Shop::open(), Receiver::start());
    shop.cluster.execute("postgres", &["ALTER ROLE gateway CONNECTION LIMIT 3 NOINHERIT", "GRANT app TO gateway"]);
    let gateway = shop.gateway("one");
    shop.app(&format!(
        "SELECT awty_http.schedule('{}/' || n, '1 s') FROM generate_series(1, 20) AS n",
        receiver.origin()
    ));
    let client = people::client(&shop, &gateway, "app", "read");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let answer = client.get("/v1/schedules");
                    assert_eq!(answer.status, 200, "{}", answer.text);
                }
            });
        }
    });
    shop.await_text("SELECT count(*) >= 60 FROM awty.attempt WHERE ok", "true");
    assert_eq!(shop.text("SELECT count(*) FROM awty.attempt WHERE NOT ok"), "0");
}

#[test]
fn calls_wait_for_no_standby() {
    let (mut shop, receiver) = (Shop::open(), Receiver::start());
    shop.app(&format!("SELECT awty_http.schedule('{}/', '1 s')", receiver.origin()));
    shop.cluster.configure("synchronous_standby_names = 'away'");
    shop.cluster.restart();
    let _gateway = shop.gateway("one");
    shop.await_text("SELECT count(*) >= 5 FROM awty.attempt WHERE ok", "true");
}
