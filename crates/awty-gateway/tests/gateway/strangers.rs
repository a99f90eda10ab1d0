//! Roles that take locks, take the names of tenants, or write rows that cannot be read.

use crate::client::encoded;
use crate::people::{client, open};

/// The keys of advisory locks are no secret. So a stranger could take each lock that a request waits for.
#[test]
fn no_advisory_lock_holds_up_a_change_of_limits() {
    let (shop, gateway, _app) = open();
    let tenant = client(&shop, &gateway, "tenant", "admin");
    let mut stranger = shop.cluster.client("postgres", "other");
    let key = "hashtextextended('limits of a target http.tenant https://api.example.com', 0)";
    stranger.batch_execute(&format!("SELECT pg_advisory_lock({key})")).unwrap();
    let place = format!("/v1/targets/{}", encoded("https://api.example.com"));
    let limited = tenant.ask_once("PUT", &place, "{\"concurrency\": 3}", "");
    assert_eq!(limited.status, 200, "{}", limited.text);
}
