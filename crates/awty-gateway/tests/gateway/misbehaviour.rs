use crate::receiver::Receiver;
use crate::receivers::call;
use crate::script::{Script, Step};
use awty_gateway::net::call::Caller;
use awty_gateway::net::fault::Fault;
use awty_gateway::net::guard::Guard;
use awty_gateway::net::report::{Call, KEPT, Report};
use awty_gateway::net::resolve::Resolver;
use awty_gateway::net::tls;
use bytes::Bytes;
use rustls::ClientConfig;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn caller() -> Caller {
    // All tests share this configuration, because reading the system's certificates takes longer than most calls.
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    let tls = TLS.get_or_init(|| tls::config(tls::roots(&[]).unwrap()).unwrap());
    let guard = Guard { allow_localhost: true, ..Guard::default() };
    Caller::new(guard, Resolver::of_system().unwrap(), tls.clone())
}

async fn answered(steps: Vec<Step>) -> Report {
    caller().call(call(&Script::start(steps).uri("http"))).await
}

const SHORT: Duration = Duration::from_secs(4);

/// `timeout` and `connect_timeout` differ widely, so that one pause of the machine cannot exceed both.
fn short(uri: &str) -> Call {
    Call { timeout: SHORT, connect_timeout: Duration::from_secs(90), ..call(uri) }
}

async fn hanging(caller: Arc<Caller>, steps: Vec<Step>, scheme: &str) -> (Fault, bool) {
    let uri = Script::start(steps).uri(scheme);
    let report = caller.call(short(&uri)).await;
    (report.outcome.expect_err("an answer came").fault, report.sent)
}

fn text(text: &str) -> Step {
    Step::Say(text.as_bytes().to_vec())
}

#[tokio::test]
async fn whatever_phase_it_hangs_in_a_call_ends_and_says_whether_something_was_sent() {
    // While the listener's queue is full, the kernel does not answer connection requests.
    let (full, caller) = (Script::full(), Arc::new(caller()));
    let report = caller.call(short(&full.uri("http"))).await;
    assert_eq!((report.outcome.unwrap_err().fault, report.sent), (Fault::Timeout, false));
    let impatient = Call { connect_timeout: Duration::from_millis(300), ..call(&full.uri("http")) };
    let report = caller.call(impatient).await;
    assert_eq!((report.outcome.unwrap_err().fault, report.sent), (Fault::Connect, false));
    let half = vec![Step::Say(vec![0x16, 3, 3, 0, 100, 2]), Step::Hang];
    let silent =
        tokio::join!(hanging(caller.clone(), vec![Step::Hang], "https"), hanging(caller.clone(), half, "https"));
    assert_eq!(silent, ((Fault::Timeout, false), (Fault::Timeout, false)));
    let after = [
        vec![Step::Hang],
        vec![text("HTTP/1.1 2"), Step::Hang],
        vec![text("HTTP/1.1 200 OK\r\nContent-Le"), Step::Hang],
        vec![text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), Step::Hang],
        vec![text("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), Step::Hang],
        vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), Step::Hang],
        vec![text("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"), Step::Drip(b"a".to_vec())],
        vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Step::Drip(b"1\r\na\r\n".to_vec())],
        vec![Step::Drip(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec())],
    ];
    let calls = after.map(|steps| (format!("{steps:?}"), tokio::spawn(hanging(caller.clone(), steps, "http"))));
    for (name, call) in calls {
        assert_eq!(call.await.unwrap(), (Fault::Timeout, true), "{name}");
    }
}

#[tokio::test]
async fn every_status_there_is_is_an_answer() {
    let (receiver, caller) = (Receiver::start(), caller());
    for status in (200..1000).filter(|status| ![204, 304].contains(status)) {
        let report = caller.call(call(&receiver.uri(&format!("/status/{status}")))).await;
        assert_eq!(report.outcome.map(|answer| answer.status), Ok(status));
    }
    for status in [204, 304] {
        let report = answered(vec![text(&format!("HTTP/1.1 {status} \r\n\r\n"))]).await;
        assert_eq!(report.outcome.map(|answer| answer.status), Ok(status));
    }
    for status in ["101 Switching Protocols", "99 X", "1000 X", "20 X", "-200 X", "2\u{661}0 X", "200\0 OK"] {
        let report = answered(vec![text(&format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))]).await;
        let ended = report.outcome.as_ref().map(|answer| answer.status);
        assert!(ended.is_err() || ended == Ok(101) || ended == Ok(100), "{status}: {ended:?}");
    }
}

#[tokio::test]
async fn wrong_lengths_are_a_fault_or_the_answer_and_never_more_than_was_said() {
    let broken = [
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "Content-Length: -1\r\n\r\nabc",
        "Content-Length: 99999999999999999999999999\r\n\r\nabc",
        "Content-Length: abc\r\n\r\nabc",
        "Content-Length: 10\r\n\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdefgh\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "No colon\r\n\r\n",
        ": no name\r\n\r\n",
        "X: \0\r\n\r\n",
    ];
    for head in broken {
        let report = answered(vec![text(&format!("HTTP/1.1 200 OK\r\n{head}"))]).await;
        let found = report.outcome.as_ref().map_err(|failure| failure.fault);
        assert!(matches!(found, Err(Fault::Protocol | Fault::Closed)), "{head:?}: {found:?}");
    }
    let odd = [
        ("HTTP/1.1", "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "abc"),
        ("HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\n003;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n", "abc"),
        ("HTTP/1.0", "\r\nabc", "abc"),
        ("HTTP/1.1", "\r\nabc", "abc"),
        ("HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
    ];
    for (version, rest, body) in odd {
        let report = answered(vec![text(&format!("{version} 200 OK\r\n{rest}"))]).await;
        let found = report.outcome.map(|answer| answer.body);
        assert_eq!(found, Ok(Bytes::from(body)), "{rest:?}");
    }
}

#[tokio::test]
async fn what_has_no_end_is_cut_at_its_bound() {
    let endless = [
        ("head", "HTTP/1.1 200 OK\r\n", format!("X-More: {}\r\n", "a".repeat(500))),
        ("one header", "HTTP/1.1 200 OK\r\nX: ", "a".repeat(1_000)),
        ("status line", "HTTP/1.1 200 ", "a".repeat(1_000)),
        ("early hints", "", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".into()),
        (
            "trailers",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            format!("X: {}\r\n", "a".repeat(500)),
        ),
        ("extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "a".repeat(1_000)),
    ];
    for (name, begin, more) in endless {
        let uri = Script::start(vec![text(begin), Step::Flood(more.into_bytes())]).uri("http");
        let report = caller().call(Call { timeout: Duration::from_secs(3), ..call(&uri) }).await;
        assert!(report.outcome.is_err(), "{name}: {:?}", report.outcome);
    }
    for begin in ["Content-Length: 1000000000\r\n\r\n", "\r\n"] {
        let begin = text(&format!("HTTP/1.1 200 OK\r\n{begin}"));
        let report = answered(vec![begin, Step::Flood(vec![b'a'; 65_536])]).await;
        assert_eq!(report.outcome.unwrap().body.len(), KEPT);
    }
    let zeros = vec![
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
        Step::Flood(vec![b'0'; 65_536]),
    ];
    assert_eq!(answered(zeros).await.outcome.map(|answer| (answer.status, answer.body)), Ok((200, "abc".into())));
    let tiny =
        vec![text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Step::Flood(b"1\r\na\r\n".repeat(1_000))];
    assert_eq!(answered(tiny).await.outcome.unwrap().body.len(), KEPT);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_the_next_call() {
    let one = |status: u16| format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
    let script = Script::start(vec![text(&(one(200) + &one(201)))]);
    let caller = caller();
    for _ in 0..10 {
        let report = caller.call(call(&script.uri("http"))).await;
        assert_eq!(report.outcome.map(|answer| answer.status), Ok(200));
    }
}

#[tokio::test]
async fn answers_before_the_answer_end_after_64_kib() {
    let early = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    let report = answered(vec![Step::Flood(early.clone())]).await;
    let failure = report.outcome.expect_err("an answer came");
    assert_eq!((failure.fault, report.sent), (Fault::Protocol, true), "{failure}");
    let few = [early.repeat(100), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()].concat();
    assert_eq!(answered(vec![Step::Say(few)]).await.outcome.unwrap().status, 200);
}

/// The body of an answer may take minutes, so its head of up to 64 KiB must not stay in memory meanwhile.
#[tokio::test]
async fn an_answer_keeps_only_the_start_of_the_headers_that_are_read() {
    let (long, other) = ("a".repeat(3_000), "X-Other: b\r\n".repeat(50));
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {long}\r\n{other}Content-Length: 0\r\n\r\n");
    let answer = answered(vec![text(&head)]).await.outcome.unwrap();
    let kept: Vec<_> = answer.headers.iter().map(|(name, value)| (name.as_str(), value.len())).collect();
    assert_eq!(kept, [("location", KEPT)]);
}
