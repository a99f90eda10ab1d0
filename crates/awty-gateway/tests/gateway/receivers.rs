use crate::receiver::Receiver;
use awty_core::uri::Uri;
use awty_gateway::net::call::Caller;
use awty_gateway::net::fault::Fault;
use awty_gateway::net::guard::Guard;
use awty_gateway::net::report::{Call, KEPT, Report};
use awty_gateway::net::resolve::Resolver;
use awty_gateway::net::tls;
use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn caller(guard: Guard) -> Caller {
    Caller::new(guard, Resolver::of_system().unwrap(), tls::config(tls::roots(&[]).unwrap()).unwrap())
}

fn open() -> Caller {
    caller(Guard { allow_localhost: true, ..Guard::default() })
}

pub fn call(uri: &str) -> Call {
    Call {
        tenant: 1,
        endpoint: Uri::parse(uri).unwrap(),
        method: Method::POST,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"body"),
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(5),
    }
}

fn short(uri: &str) -> Call {
    Call { timeout: Duration::from_secs(4), connect_timeout: Duration::from_secs(90), ..call(uri) }
}

fn fault(report: &Report) -> Fault {
    report.outcome.as_ref().expect_err("an answer came").fault
}

#[tokio::test]
async fn an_answer_comes_with_its_status_and_connections_are_used_again() {
    let (receiver, caller) = (Receiver::start(), open());
    for _ in 0..20 {
        let report = caller.call(call(&receiver.uri("/ok"))).await;
        assert_eq!((report.outcome.unwrap().status, report.sent, report.address), (200, true, Some(receiver.address)));
        tokio::task::yield_now().await;
    }
    let seen = receiver.seen("/ok");
    assert_eq!((seen.len(), seen[0].method.as_str(), seen[0].body.as_slice()), (20, "POST", b"body".as_slice()));
    assert_eq!(seen[0].headers["host"], receiver.address.to_string());
    assert!(receiver.connections.load(Ordering::Relaxed) < 20, "no connection was used twice");
}

/// An endpoint may send the answer to one request as the answer to the next request on the connection.
#[tokio::test]
async fn a_connection_is_used_again_for_the_same_tenant_only() {
    let (receiver, caller) = (Receiver::start(), open());
    for tenant in 1..=20 {
        assert!(caller.call(Call { tenant, ..call(&receiver.uri("/ok")) }).await.outcome.is_ok());
        tokio::task::yield_now().await;
    }
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 20);
}

#[tokio::test]
async fn a_connection_that_the_endpoint_closed_meanwhile_is_opened_anew() {
    let (receiver, caller) = (Receiver::start(), open());
    for _ in 0..10 {
        assert!(caller.call(call(&receiver.uri("/last"))).await.outcome.is_ok());
    }
    assert_eq!(receiver.seen("/last").len(), 10);
}

#[tokio::test]
async fn what_does_not_answer_runs_into_the_timeout_as_sent() {
    let (receiver, caller) = (Receiver::start(), open());
    let (hanging, dripping) = (short(&receiver.uri("/hang")), short(&receiver.uri("/drip")));
    let (hung, dripped) = tokio::join!(caller.call(hanging), caller.call(dripping));
    for (path, report) in [("/hang", hung), ("/drip", dripped)] {
        assert_eq!((fault(&report), report.sent), (Fault::Timeout, true), "{path}");
    }
}

#[tokio::test]
async fn what_breaks_off_is_told_from_what_is_no_http() {
    let (receiver, caller) = (Receiver::start(), open());
    let expected = [
        ("/close", Fault::Closed),
        ("/reset", Fault::Closed),
        ("/short", Fault::Closed),
        ("/garbage", Fault::Protocol),
        ("/head", Fault::Protocol),
    ];
    for (path, expected) in expected {
        let report = caller.call(call(&receiver.uri(path))).await;
        assert_eq!((fault(&report), report.sent), (expected, true), "{path}: {:?}", report.outcome);
    }
    let report = caller.call(call(&receiver.uri("/chunks"))).await;
    assert!(matches!(fault(&report), Fault::Closed | Fault::Protocol), "{:?}", report.outcome);
}

#[tokio::test]
async fn of_a_gigabyte_only_the_beginning_is_read_and_the_status_counts() {
    let (receiver, caller) = (Receiver::start(), open());
    for status in [200, 500] {
        let answer = caller.call(call(&receiver.uri(&format!("/huge/{status}")))).await.outcome.unwrap();
        assert_eq!((answer.status, answer.body.len()), (status, KEPT));
    }
}

#[tokio::test]
async fn nobody_at_home_is_not_sent() {
    let caller = open();
    // The socket keeps the port but does not listen, so connections fail, and no other server gets the port.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let report = caller.call(call(&format!("http://{}/", bound.local_addr().unwrap()))).await;
    assert_eq!((fault(&report), report.sent), (Fault::Connect, false));
    let report = caller.call(call("http://no-such-host.invalid/")).await;
    assert_eq!((fault(&report), report.sent), (Fault::Name, false));
}

#[tokio::test]
async fn loopback_is_closed_by_every_name_for_it() {
    let (receiver, closed) = (Receiver::start(), caller(Guard::default()));
    let port = receiver.address.port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "2130706433",
        "0x7f.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0.0.0.0",
    ];
    for host in hosts {
        let report = closed.call(call(&format!("http://{host}:{port}/ok"))).await;
        assert_eq!((fault(&report), report.sent), (Fault::BlockedAddress, false), "{host}");
    }
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn its_own_listener_is_closed_although_loopback_is_open() {
    let receiver = Receiver::start();
    let own = caller(Guard { allow_localhost: true, own: vec![receiver.address], ..Guard::default() });
    assert_eq!(fault(&own.call(call(&receiver.uri("/ok"))).await), Fault::BlockedAddress);
    assert_eq!(receiver.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn tls_to_what_speaks_none_is_a_fault_of_tls_and_not_sent() {
    let (receiver, caller) = (Receiver::start(), open());
    let report = caller.call(short(&format!("https://{}/hang", receiver.address))).await;
    assert!(matches!(fault(&report), Fault::Tls | Fault::Timeout | Fault::Connect), "{:?}", report.outcome);
    assert!(!report.sent);
}

#[tokio::test]
async fn two_hundred_hanging_calls_delay_no_other() {
    let (receiver, caller) = (Receiver::start(), std::sync::Arc::new(open()));
    let hanging: Vec<_> = (0..200)
        .map(|_| {
            let (caller, call) =
                (caller.clone(), Call { timeout: Duration::from_secs(60), ..call(&receiver.uri("/hang")) });
            tokio::spawn(async move { caller.call(call).await })
        })
        .collect();
    let report = caller.call(call(&receiver.uri("/ok"))).await;
    assert_eq!(report.outcome.unwrap().status, 200);
    assert!(hanging.iter().all(|call| !call.is_finished()));
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_body_is_held_until_it_has_left_and_no_longer() {
    struct Kept(Vec<u8>, #[allow(dead_code)] Arc<()>);
    impl AsRef<[u8]> for Kept {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    const LARGE: usize = 64 * 1024 * 1024; // more than the buffers of both ends hold
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let held = Arc::new(());
    let body = Bytes::from_owner(Kept(vec![b'a'; LARGE], held.clone()));
    let calling = tokio::spawn(async move { open().call(Call { body, ..call(&uri) }).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut buffer = vec![0; 1024 * 1024];
    let mut read = stream.read(&mut buffer).await.unwrap();
    assert_eq!(Arc::strong_count(&held), 2, "it has gone before it has left");
    while read < LARGE {
        read += stream.read(&mut buffer).await.unwrap();
    }
    for _ in 0..1_000 {
        if Arc::strong_count(&held) == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(Arc::strong_count(&held), 1, "it stays although it has left");
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert_eq!(calling.await.unwrap().outcome.unwrap().status, 200);
}
