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

#[cfg(test)]
mod tests {
    use super::STYLE;
    use std::collections::HashMap;

    /// The relative luminance as WCAG 2 defines it.
    fn luminance(color: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        [(0, 0.2126), (2, 0.7152), (4, 0.0722)].iter().map(|(at, weight)| weight * linear(part(*at))).sum()
    }

    #[test]
    fn each_text_has_a_contrast_of_at_least_4_5() {
        let schemes: Vec<HashMap<&str, f64>> = STYLE
            .split(":root {")
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap())
            .map(|rest| rest.split(';').filter_map(|one| one.trim().strip_prefix("--")?.split_once(": #")))
            .map(|colors| colors.map(|(name, color)| (name, luminance(color))).collect())
            .collect();
        assert_eq!(schemes.len(), 2);
        for scheme in schemes {
            for (text, below) in ["ink", "soft", "accent", "bad", "good", "held"]
                .iter()
                .flat_map(|text| [(*text, "paper"), (*text, "sheet")])
                .chain([("on-accent", "accent")])
            {
                let (a, b) = (scheme[text], scheme[below]);
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{text} on {below}: {contrast}");
            }
        }
    }
}
