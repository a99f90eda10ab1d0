use super::super::role::BODIES_OF_ROLE;
use super::super::state::{ROOM, offline as api};
use super::*;
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use axum::{Extension, Router};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn handled<F, R>(api: &Arc<Api>, handler: F) -> Router
where
    F: Fn() -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    Router::new().route("/x/{id}", any(handler)).layer(from_fn_with_state(api.clone(), around))
}

async fn posted(router: Router, head: &str, body: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server =
        tokio::spawn(crate::listen::listen(listener, None, router, crate::listen::MOST, crate::listen::OF_PEER));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("POST /x/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

async fn asked<F, R>(handler: F) -> (String, String)
where
    F: Fn() -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response> + Send + 'static,
{
    let api = api();
    let answer = posted(handled(&api, handler), "Content-Length: 2", "ab").await;
    (answer, api.metrics.text(0))
}

#[tokio::test]
async fn what_lost_to_another_request_is_tried_three_times() {
    for (losses, status, expected) in [(0, "200", 1), (2, "200", 3), (3, "503", 3)] {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = tries.clone();
        let (answer, metrics) = asked(move || {
            let lost = count.fetch_add(1, Ordering::Relaxed) < losses;
            let trouble =
                crate::db::Trouble::Refused { sqlstate: "40P01".into(), message: "deadlock".into(), hint: None };
            async move { if lost { Problem::from(trouble).into_response() } else { "done".into_response() } }
        })
        .await;
        assert_eq!((answer.split(' ').nth(1), tries.load(Ordering::Relaxed)), (Some(status), expected), "{answer}");
        let series =
            format!("awty_gateway_http_requests_total{{route=\"/x/{{id}}\",method=\"POST\",status=\"{status}\"}} 1");
        assert!(metrics.contains(&series), "{metrics}");
    }
}

#[tokio::test]
async fn a_refusal_without_a_name_gets_one() {
    for (status, name) in [(StatusCode::BAD_REQUEST, "not-found"), (StatusCode::IM_A_TEAPOT, "internal")] {
        let (answer, _) = asked(move || async move { status.into_response() }).await;
        assert!(answer.contains(&format!("/problems/{name}")), "{answer}");
    }
}

fn done(api: &Arc<Api>) -> Router {
    handled(api, || async { "done".into_response() }).layer(Extension(Asker::of("a")))
}

#[tokio::test]
async fn bodies_have_a_bound_together_and_small_ones_do_not_wait() {
    let api = api();
    let all = api.bodies.try_acquire_many(u32::try_from(ROOM).unwrap()).unwrap();
    assert!(posted(done(&api), "Content-Length: 2", "ab").await.ends_with("done"));
    let (large, chunk) = ("x".repeat(SMALL + 1), "2\r\nab\r\n0\r\n\r\n");
    let head = format!("Content-Length: {}", large.len());
    let waiting = [(head.as_str(), large.as_str()), ("Transfer-Encoding: chunked", chunk)].map(|(head, body)| {
        let (api, head, body) = (api.clone(), head.to_owned(), body.to_owned());
        tokio::spawn(async move { posted(done(&api), &head, &body).await })
    });
    assert!(posted(done(&api), "Content-Length: 2", "ab").await.ends_with("done"));
    assert!(waiting.iter().all(|one| !one.is_finished()));
    drop(all);
    for one in waiting {
        assert!(one.await.unwrap().ends_with("done"));
    }
    assert_eq!(api.bodies.available_permits(), ROOM);
}

#[tokio::test]
async fn a_form_counts_as_the_page_that_shows_it_again() {
    let api = api();
    let form = || api.form(Some("a"), Some(840_000), 1_000_000);
    let two = [form().await.unwrap(), form().await.unwrap()];
    assert!(tokio::time::timeout(Duration::from_millis(10), form()).await.is_err(), "a third form waits");
    drop(two);
    form().await.unwrap();
}

#[tokio::test]
async fn bodies_of_one_role_have_a_bound() {
    let api = api();
    let all = api.permits.body("a", u32::try_from(BODIES_OF_ROLE).unwrap()).await.unwrap();
    let (large, head) = ("x".repeat(SMALL + 1), format!("Content-Length: {}", SMALL + 1));
    let waiting = {
        let (api, head, large) = (api.clone(), head.clone(), large.clone());
        tokio::spawn(async move { posted(done(&api), &head, &large).await })
    };
    let other = handled(&api, || async { "done".into_response() }).layer(Extension(Asker::of("b")));
    assert!(posted(other, &head, &large).await.ends_with("done"), "another role");
    assert!(posted(done(&api), "Content-Length: 2", "ab").await.ends_with("done"), "a small body");
    assert!(!waiting.is_finished());
    drop(all);
    assert!(waiting.await.unwrap().ends_with("done"));
}

#[tokio::test]
async fn bodies_whose_requests_wait_for_their_role_leave_room_for_other_roles() {
    let api = api();
    let waits = handled(&api, std::future::pending);
    let waiting = (0..4 * 32).map(|number| {
        let router = waits.clone().layer(Extension(Asker::of(&format!("waits {}", number % 4))));
        tokio::spawn(async move { posted(router, "Transfer-Encoding: chunked", "2\r\nab\r\n0\r\n\r\n").await })
    });
    let waiting: Vec<_> = waiting.collect();
    let is_full = async |role: u32| {
        let (role, kib) = (format!("waits {role}"), LARGEST_BODY as u32 / 1024);
        tokio::time::timeout(Duration::ZERO, api.permits.body(&role, kib)).await.is_err()
    };
    for role in 0..4 {
        while !is_full(role).await {
            tokio::task::yield_now().await;
        }
    }
    assert!(api.bodies.available_permits() >= LARGEST_BODY / 1024, "other roles wait until these requests end");
    let head = format!("Content-Length: {}", SMALL + 1);
    assert!(posted(done(&api), &head, &"x".repeat(SMALL + 1)).await.ends_with("done"));
    waiting.iter().for_each(|one| one.abort());
}

#[tokio::test]
async fn a_body_that_does_not_arrive_keeps_no_memory_that_others_wait_for() {
    let api = api();
    let head = format!("Content-Length: {}", SMALL + 1);
    let mut stalled = Box::pin(posted(done(&api), &head, ""));
    assert!(tokio::time::timeout(ARRIVES * 2, &mut stalled).await.is_err(), "memory is free");
    let rest = u32::try_from(api.bodies.available_permits()).unwrap();
    let _all = api.bodies.try_acquire_many(rest).unwrap();
    let answer = stalled.await;
    assert!(answer.contains("The body did not arrive within 2 s"), "{answer}");
}

#[tokio::test]
async fn a_large_body_without_a_token_is_refused_before_it_comes() {
    let api = api();
    let length = format!("Content-Length: {}", SMALL + 1);
    for head in [length.as_str(), "Transfer-Encoding: chunked"] {
        let answer = posted(handled(&api, || async { "done".into_response() }), head, "").await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    let refusals = "awty_gateway_http_requests_total{route=\"/x/{id}\",method=\"POST\",status=\"401\"} 2";
    assert!(api.metrics.text(0).contains(refusals), "the refusals are not counted");
}
