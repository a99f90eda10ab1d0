//! Requests that wait in the database, and requests of other roles meanwhile.

use crate::people::{client, open};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Requests of each of two roles that wait for a locked row.
const WAITING: usize = 4;
const READS: u32 = 10;

/// Requests that change something wait for a locked row on three of the four connections. The fourth connection is kept for tokens and
/// reads, so that a read of another role is answered at once.
#[test]
fn a_read_is_answered_while_changes_of_other_roles_wait_for_locked_rows() {
    let (shop, gateway, app) = open();
    let tenant = client(&shop, &gateway, "tenant", "write");
    let reader = client(&shop, &gateway, "other", "read");
    let paths: Vec<String> = [&app, &tenant]
        .map(|client| {
            let made = client.ask("POST", "/v1/schedules", r#"{"uri": "https://api.example.com/x", "every": "1 h"}"#);
            assert_eq!(made.status, 201, "{}", made.text);
            format!("/v1/schedules/{}/pause", made.json()["id"].as_str().unwrap())
        })
        .into();
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; SELECT FROM awty_http_internal.endpoint FOR UPDATE").unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event_type = 'Lock'";
    let is_over = AtomicBool::new(false);
    let (reads, most) = std::thread::scope(|scope| {
        for (client, path) in std::iter::zip([&app, &tenant], &paths) {
            for _ in 0..WAITING {
                scope.spawn(|| {
                    // Each request waits for a second. The loop ends even if the test fails.
                    for _ in 0..60 {
                        let answer = client.ask_once("POST", path, "{}", "");
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        assert_ne!(answer.status, 200, "{}", answer.text);
                    }
                });
            }
        }
        shop.await_text(&format!("({waiting}) >= 3"), "true");
        let mut most = 0;
        let reads: Vec<(u16, Duration)> = (0..READS)
            .map(|_| {
                let start = Instant::now();
                let status = reader.ask_once("GET", "/v1/schedules", "", "").status;
                let took = start.elapsed();
                most = most.max(shop.text(waiting).parse().unwrap_or(u32::MAX));
                (status, took)
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        holder.batch_execute("ROLLBACK").unwrap();
        (reads, most)
    });
    assert!(reads.iter().all(|(status, _)| *status == 200), "{reads:?}");
    assert!(most <= 3, "{most} connections waited for a locked row");
    // Without the fourth connection, a read waits twice for a request that waits for up to a second.
    let took: Duration = reads.iter().map(|(_, took)| took).sum();
    assert!(took < READS * Duration::from_millis(500), "{reads:?}");
}
