use crate::client::Client;
use crate::people::{client, open};
use crate::shop::{Shop, until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const WAITING: usize = 4;
const LOCKED: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gateway' AND wait_event_type = 'Lock'";
const READS: u32 = 10;

/// Requests that change something use at most three of the pool's five connections.
#[test]
fn a_read_is_answered_while_changes_of_other_roles_wait_for_locked_rows() {
    let (shop, gateway, app) = open();
    let tenant = client(&shop, &gateway, "tenant", "write");
    let reader = client(&shop, &gateway, "other", "read");
    read_while_changes_wait(&shop, &[&app, &tenant], &reader, 3);
}

#[test]
fn reads_of_a_role_go_on_while_its_changes_wait() {
    let (shop, _gateway, app) = open();
    read_while_changes_wait(&shop, &[&app], &app, 2);
}

fn read_while_changes_wait(shop: &Shop, writers: &[&Client], reader: &Client, most: u32) {
    let paths: Vec<String> = writers
        .iter()
        .map(|client| {
            let made = client.ask("POST", "/v1/schedules", r#"{"uri": "https://api.example.com/x", "every": "1 h"}"#);
            assert_eq!(made.status, 201, "{}", made.text);
            format!("/v1/schedules/{}/pause", made.json()["id"].as_str().unwrap())
        })
        .collect();
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; SELECT FROM awty_http_internal.endpoint FOR UPDATE").unwrap();
    let (is_over, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (is_over, ended) = (&is_over, &ended);
    std::thread::scope(|scope| {
        for (client, path) in std::iter::zip(writers, &paths) {
            for _ in 0..WAITING {
                scope.spawn(move || {
                    // Each request waits one second for the lock.
                    for _ in 0..60 {
                        let answer = client.ask_once("POST", path, "{}", "");
                        ended.fetch_add(1, Ordering::SeqCst);
                        if is_over.load(Ordering::SeqCst) {
                            break;
                        }
                        assert_ne!(answer.status, 200, "{}", answer.text);
                    }
                });
            }
        }
        let found = std::panic::catch_unwind(|| {
            until("a read while all changes wait", || {
                let before = (ended.load(Ordering::SeqCst), shop.text(LOCKED));
                let answer = reader.ask_once("GET", "/v1/schedules", "", "");
                let after = (ended.load(Ordering::SeqCst), shop.text(LOCKED));
                // A role whose change has taken a second counts as slow. All slow roles share one connection for
                // changes, so then fewer than `most` changes wait for locks.
                let (locked, were_slow) = (after.1.parse::<u32>().unwrap(), after.0 > 0);
                let waited = before == after && (locked == most || were_slow && (1..most).contains(&locked));
                if answer.status == 200 && waited {
                    Ok(())
                } else {
                    Err(format!("{before:?} {after:?} {}", answer.status))
                }
            });
        });
        is_over.store(true, Ordering::SeqCst);
        holder.batch_execute("ROLLBACK").unwrap();
        found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn roles_whose_reads_are_slow_have_one_connection_together() {
    let (shop, gateway, app) = open();
    let tenant = client(&shop, &gateway, "tenant", "write");
    let reader = client(&shop, &gateway, "other", "read");
    let paths = [&app, &tenant].map(|client| {
        let made = client.ask("POST", "/v1/schedules", r#"{"uri": "https://api.example.com/x", "every": "1 h"}"#);
        format!("/v1/schedules/{}/stats?bucket=1h", made.json()["id"].as_str().unwrap())
    });
    let mut holder = shop.cluster.superuser("postgres");
    holder.batch_execute("BEGIN; LOCK TABLE awty_http.stat").unwrap();
    let (is_over, ended) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (is_over, ended) = (&is_over, &ended);
    std::thread::scope(|scope| {
        for ((client, path), ended) in [&app, &tenant].into_iter().zip(&paths).zip(ended) {
            for _ in 0..WAITING {
                scope.spawn(move || {
                    for _ in 0..60 {
                        let answer = client.ask_once("GET", path, "", "");
                        if is_over.load(Ordering::SeqCst) {
                            break;
                        }
                        assert_ne!(answer.status, 200, "{}", answer.text);
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        let found = std::panic::catch_unwind(|| {
            until("two long reads of each role", || {
                let ended = ended.each_ref().map(|ended| ended.load(Ordering::SeqCst));
                if ended.iter().all(|ended| *ended >= 2) { Ok(()) } else { Err(format!("{ended:?}")) }
            });
            until("one connection for both roles", || {
                let most = (0..READS).map(|_| {
                    let answer = reader.ask_once("GET", "/v1/targets", "", "");
                    assert_eq!(answer.status, 200, "{}", answer.text);
                    shop.text(LOCKED).parse::<u32>().unwrap()
                });
                let most = most.max().unwrap();
                if most <= 1 { Ok(()) } else { Err(format!("{most} connections waited for a lock")) }
            });
        });
        is_over.store(true, Ordering::SeqCst);
        holder.batch_execute("ROLLBACK").unwrap();
        found.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
