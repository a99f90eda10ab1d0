//! `/v1/openapi.json`: the API's description for programs.
//!
//! Invariant: the router and this document are built from the same list, and src/openapi.json equals this document.

use axum::Json;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder, SecurityRequirement};

/// The document's parts besides the paths.
pub(super) fn around() -> OpenApi {
    let mut license = License::new("PostgreSQL");
    license.identifier = Some("PostgreSQL".into());
    let info = InfoBuilder::new()
        .title("awty-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Has HTTP endpoints called on time. Lengths of time are texts such as 10s, times are RFC 3339 in UTC, and refusals are problems as in RFC 9457."))
        .license(Some(license));
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(ComponentsBuilder::new().security_scheme("token", bearer).build()))
        .security(Some([SecurityRequirement::new("token", Vec::<String>::new())]))
        .build()
}

/// The whole document.
pub fn whole() -> OpenApi {
    super::resources().into_openapi()
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "status", security(()), responses((status = 200, body = Object)))]
pub async fn document() -> Json<OpenApi> {
    Json(whole())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/openapi.json");

    /// With AWTY_WRITE=1, the test writes the file.
    #[test]
    fn the_file_in_the_sources_is_the_document() {
        let written = serde_json::to_string_pretty(&whole()).unwrap() + "\n";
        if std::env::var_os("AWTY_WRITE").is_some() {
            std::fs::write(FILE, &written).unwrap();
        }
        let there = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(there == written, "AWTY_WRITE=1 cargo test -p awty-gateway --lib openapi writes src/openapi.json");
    }

    /// A route that is added by `.route`, `.nest` or `.merge` would be missing in the document.
    #[test]
    fn every_route_is_in_the_document() {
        let sources = include_str!("mod.rs");
        assert!(!sources.contains(".route(") && !sources.contains(".nest") && !sources.contains(".merge("));
        let paths = whole().paths.paths.len();
        assert_eq!(paths, sources.matches("routes!(").count(), "each path has one line");
    }
}
