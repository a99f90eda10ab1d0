use super::*;

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
