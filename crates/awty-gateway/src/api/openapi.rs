use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder, SecurityRequirement};

pub(super) fn frame() -> OpenApi {
    let mut license = License::new("PostgreSQL");
    license.identifier = Some("PostgreSQL".into());
    let info = InfoBuilder::new()
        .title("awty-gateway")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Calls HTTP endpoints on time. Lengths of time are texts such as 10s, times are RFC 3339 in UTC, and refusals are problems as in RFC 9457."))
        .license(Some(license));
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    OpenApiBuilder::new()
        .info(info.build())
        .components(Some(ComponentsBuilder::new().security_scheme("token", bearer).build()))
        .security(Some([SecurityRequirement::new("token", Vec::<String>::new())]))
        .build()
}
