//! Makes HTTP calls as the gateway does, but without a database. Usage: `calls COUNT AT_ONCE ORIGIN…`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a panic reports the failure

use awty_gateway::deliver::definition::Definition;
use awty_gateway::deliver::request::{Delivery, RequestContext, request};
use awty_gateway::deliver::result::{Facts, of_call};
use awty_gateway::deliver::unmade::Unmade;
use awty_gateway::deliver::verdict::{Verdict, verdict};
use awty_gateway::duration::Length;
use awty_gateway::net::call::Caller;
use awty_gateway::net::guard::Guard;
use awty_gateway::net::resolve::Resolver;
use awty_gateway::net::tls;
use chrono::Utc;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const KEY: [u8; 32] = [7; 32];

async fn one(caller: &Caller, origin: &str, number: u32) {
    let now = Utc::now();
    let delivery = Delivery {
        job: "http.app".into(),
        entity_name: origin.into(),
        entity_key: format!("/{number}#{number}"),
        attempt: 1,
        check_count: 0,
        first_check_at: now,
        next_check_at: now,
        key: format!("{number:026}"),
        tenant: 1,
    };
    let args = to_raw_value(&json!({"method": "POST", "body": {"order": number}})).unwrap();
    let mut definition = Definition::of_args(Some(&args)).unwrap();
    let context = RequestContext {
        master_key: &KEY,
        timeout: Length::seconds(30),
        now,
        secret: &|name| Err(Unmade::missing(name)),
    };
    let report = caller.call(request(&delivery, &mut definition, &context).unwrap()).await;
    let verdict = verdict(&delivery, &definition, &report, Utc::now(), 0.0);
    let said = Facts { lateness: 0.0, queue: Duration::ZERO, fault: None, keep_body: false, note: None };
    std::hint::black_box(of_call(&report, &said));
    assert!(matches!(verdict, Verdict::Done { .. }), "call {number} failed");
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, at_once, origins @ ..] = &arguments[..] else { panic!("usage: calls COUNT AT_ONCE ORIGIN…") };
    let (count, at_once): (u32, usize) = (count.parse().unwrap(), at_once.parse().unwrap());
    let guard = Guard { allow_localhost: true, ..Guard::default() };
    let tls = tls::config(tls::roots(&[]).unwrap()).unwrap();
    let caller = Arc::new(Caller::new(guard, Resolver::of_system().unwrap(), tls));
    let next = Arc::new(AtomicU32::new(1));
    println!("{}", Utc::now().timestamp_micros());
    let mut callers = Vec::new();
    for origin in origins.iter().flat_map(|origin| std::iter::repeat_n(origin.clone(), at_once)) {
        let (caller, next) = (caller.clone(), next.clone());
        callers.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number > count {
                    break;
                }
                one(&caller, &origin, number).await;
            }
        }));
    }
    for caller in callers {
        caller.await.expect("a call failed");
    }
}
