//! Serves the stylesheet and the icon, and builds the HTML document around each page.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../assets/awty.css");

/// The path contains a hash of the content, so that browsers may cache the stylesheet.
static STYLE_PLACE: LazyLock<String> = LazyLock::new(|| {
    use sha2::{Digest, Sha256};
    let hash: String = Sha256::digest(STYLE).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("/awty.css?v={hash}")
});

pub async fn style() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, STYLE).into_response()
}

pub async fn icon() -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "public, max-age=86400")];
    (headers, include_str!("../../assets/awty.svg")).into_response()
}

pub fn document(title: &str, head: Markup, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(*STYLE_PLACE);
                link rel="icon" href="/awty.svg";
                (head)
            }
            body { (body) }
        }
    }
}

pub fn bare(title: &str, head: Markup, body: Markup) -> Markup {
    document(title, head, html! { main.bare { p.brand { a href="/" { "awty" } } (body) } })
}
