use crate::name_server::{NameServer, Says};
use crate::receiver::Receiver;
use awty_core::uri::Uri;
use awty_gateway::net::fault::Fault;
use awty_gateway::net::report::{Call, Report};
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Two loopback addresses. The guard allows `OPEN` and refuses `CLOSED`.
const OPEN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const CLOSED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

fn call(receiver: &Receiver, name: &str) -> Call {
    Call {
        tenant: 1,
        endpoint: Uri::parse(&format!("http://{name}:{}/ok", receiver.address.port())).unwrap(),
        method: Method::POST,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
    }
}

#[track_caller]
fn assert_fault(report: &Report, fault: Fault) {
    let found = report.outcome.as_ref().expect_err("an answer came");
    assert_eq!((found.fault, report.sent), (fault, false), "{found}");
}

#[tokio::test]
async fn a_name_that_changes_its_mind_never_leads_to_a_closed_address() {
    let receiver = Receiver::start_on("0.0.0.0");
    // The second look-up returns the forbidden address, so the call succeeds only if the gateway looks the name up
    // once.
    let server = NameServer::start(|_, number| Says::Addresses(vec![if number == 0 { OPEN } else { CLOSED }]));
    let report = server.caller().call(call(&receiver, "rebind.example")).await;
    assert_eq!(report.address, Some(SocketAddr::new(OPEN.into(), receiver.address.port())));
    assert_eq!(report.outcome.unwrap().status, 200);
    assert_fault(&server.caller().call(call(&receiver, "rebind.example")).await, Fault::BlockedAddress);
    assert_eq!((receiver.connections.load(Ordering::Relaxed), receiver.reached_at()), (1, vec![OPEN.into()]));
}

#[tokio::test]
async fn a_name_with_good_and_bad_addresses_is_called_at_the_good_one() {
    let receiver = Receiver::start_on("0.0.0.0");
    for addresses in [vec![CLOSED, OPEN], vec![OPEN, CLOSED], vec![CLOSED, CLOSED, OPEN, OPEN]] {
        let server = NameServer::start(move |_, _| Says::Addresses(addresses.clone()));
        let report = server.caller().call(call(&receiver, "both.example")).await;
        assert_eq!(report.outcome.unwrap().status, 200);
    }
    assert!(receiver.reached_at().iter().all(|peer| *peer == OPEN), "{:?}", receiver.reached_at());
}

#[tokio::test]
async fn a_name_is_called_although_its_other_family_gets_no_answer() {
    let receiver = Receiver::start_on("0.0.0.0");
    let server = NameServer::start(|_, _| Says::OneFamily(OPEN));
    let report = server.caller().call(call(&receiver, "half.example")).await;
    assert_eq!(report.outcome.unwrap().status, 200);
}

#[tokio::test]
async fn a_family_that_failed_is_asked_again_within_seconds() {
    let receiver = Receiver::start_on("0.0.0.0");
    let is_up = Arc::<AtomicBool>::default();
    let up = is_up.clone();
    let server = NameServer::start(move |_, _| match up.load(Ordering::Relaxed) {
        true => Says::Addresses(vec![OPEN]),
        false => Says::OtherFamily,
    });
    let caller = server.caller();
    assert!(caller.call(call(&receiver, "back.example")).await.outcome.is_err());
    is_up.store(true, Ordering::Relaxed);
    // An address of IPv6 alone would be kept for its minute.
    let began = std::time::Instant::now();
    while caller.call(call(&receiver, "back.example")).await.outcome.is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the address of IPv6 is kept");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_name_without_an_address_is_kept_for_seconds_too() {
    let receiver = Receiver::start_on("0.0.0.0");
    let server = NameServer::start(|_, _| Says::Addresses(Vec::new()));
    let (caller, since) = (server.caller(), std::time::Instant::now());
    for _ in 0..20 {
        assert_fault(&caller.call(call(&receiver, "none.example")).await, Fault::Name);
    }
    let most = 1 + usize::try_from(since.elapsed().as_secs() / 5).unwrap();
    assert!(server.asked.load(Ordering::Relaxed) <= most, "asked {:?} times", server.asked);
}

#[tokio::test]
async fn an_answer_is_kept_for_seconds_although_it_says_none() {
    let receiver = Receiver::start_on("0.0.0.0");
    let server = NameServer::start(|_, _| Says::Addresses(vec![OPEN]));
    let (caller, since) = (server.caller(), std::time::Instant::now());
    for _ in 0..20 {
        assert!(caller.call(call(&receiver, "kept.example")).await.outcome.is_ok());
    }
    // Allows one more look-up per five seconds, because the gateway caches a name for only five seconds.
    let most = 1 + usize::try_from(since.elapsed().as_secs() / 5).unwrap();
    assert!(server.asked.load(Ordering::Relaxed) <= most, "asked {:?} times", server.asked);
}

#[tokio::test]
async fn names_that_lead_in_circles_or_nowhere_end_as_a_fault() {
    let receiver = Receiver::start();
    let circle = |name: &str, _| Says::Alias(if name.starts_with('a') { "b.example." } else { "a.example." }.into());
    let chain = |name: &str, _| {
        let number: u32 = name.split('.').next().unwrap().parse().unwrap_or(0);
        Says::Alias(format!("{}.example.", number + 1))
    };
    let own = |name: &str, _| Says::Alias(name.into());
    let servers = [NameServer::start(circle), NameServer::start(chain), NameServer::start(own)];
    for server in servers {
        assert_fault(&server.caller().call(call(&receiver, "a.example")).await, Fault::Name);
        assert!(server.asked.load(Ordering::Relaxed) < 1_000, "asked {:?} times", server.asked);
    }
}

#[tokio::test]
async fn nonsense_or_an_answer_to_another_question_is_no_answer() {
    let receiver = Receiver::start_on("0.0.0.0");
    let servers = [
        NameServer::start(|_, _| Says::Bytes(vec![0xff; 600])),
        NameServer::start(|_, _| Says::Bytes(Vec::new())),
        NameServer::start(|_, _| Says::Strange(OPEN)),
        NameServer::start(|_, _| Says::Addresses(Vec::new())),
    ];
    for server in servers {
        assert_fault(&server.caller().call(call(&receiver, "a.example")).await, Fault::Name);
    }
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_name_server_that_hangs_delays_no_call_of_another_name() {
    let receiver = Receiver::start_on("0.0.0.0");
    let server =
        NameServer::start(|name, _| if name.starts_with("hang") { Says::Nothing } else { Says::Addresses(vec![OPEN]) });
    let caller = Arc::new(server.caller());
    let hanging: Vec<_> = (0..200)
        .map(|number| {
            let (caller, call) = (caller.clone(), call(&receiver, &format!("hang{number}.example")));
            tokio::spawn(async move { caller.call(call).await })
        })
        .collect();
    assert!(caller.call(call(&receiver, "well.example")).await.outcome.is_ok());
    assert!(hanging.iter().all(|call| !call.is_finished()));
    for call in hanging {
        assert_fault(&call.await.unwrap(), Fault::Name);
    }
}
