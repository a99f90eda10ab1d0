use super::*;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[test]
fn the_file_in_the_sources_is_the_document() {
    let written = serde_json::to_string_pretty(&whole()).unwrap() + "\n";
    if std::env::var_os("AWTY_WRITE").is_some() {
        std::fs::write(FILE, &written).unwrap();
    }
    let there = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(there == written, "AWTY_WRITE=1 cargo test -p awty-gateway --lib document writes openapi.json");
}

/// `mod.rs` must not call `.route`, `.nest` or `.merge`, because they add routes that the OpenAPI document lacks.
#[test]
fn every_route_is_in_the_document() {
    let sources = include_str!("mod.rs");
    assert!(!sources.contains(".route(") && !sources.contains(".nest") && !sources.contains(".merge("));
    let paths = whole().paths.paths.len();
    assert_eq!(paths, sources.matches("routes!(").count(), "each path has one line");
}

/// Each request with a body gets the answer that the database is away, although its body is not JSON.
#[tokio::test]
async fn bodies_are_parsed_only_once_their_request_has_a_place() {
    let router = router(state::offline()).layer(axum::Extension(Asker::of("a")));
    let mut count = 0;
    for (path, item) in whole().paths.paths {
        let path = path.replace("{id}", "s_1").replace("{origin}", "https%3A%2F%2Fa.example");
        for (method, operation) in [("POST", item.post), ("PUT", item.put)] {
            if operation.is_none_or(|operation| operation.request_body.is_none()) {
                continue;
            }
            let request =
                axum::http::Request::builder().method(method).uri(format!("{path}?uri=http%3A%2F%2Fa.example%2F"));
            let request = request.body(axum::body::Body::from("{")).unwrap();
            let Ok(answer) = TowerToHyperService::new(router.clone()).call(request).await;
            assert_eq!(answer.status(), 503, "{method} {path}");
            count += 1;
        }
    }
    assert!(count >= 8, "{count} requests with a body");
}
