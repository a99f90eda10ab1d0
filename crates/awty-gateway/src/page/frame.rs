use super::document::document;
use super::visit::Visit;
use super::words::encoded;
use super::zone;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

const VIEWS: [(&str, &str); 9] = [
    ("/alerts", "Alerts"),
    ("/rules", "Rules"),
    ("/jobs", "Jobs"),
    ("/schedules", "Schedules"),
    ("/slots", "Slots"),
    ("/history", "History"),
    ("/targets", "Targets"),
    ("/tokens", "Tokens"),
    ("/why", "Why"),
];

const RELOAD: &str = "10";

fn head_title(title: &str, late: i64) -> String {
    let late = match late {
        0 => None,
        late if late > crate::db::views::MANY => Some(format!("more than {} late", crate::db::views::MANY)),
        late => Some(format!("{late} late")),
    };
    let parts = [late.as_deref(), Some(title).filter(|title| !title.is_empty()), Some("awty")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn search(asked: &str) -> Markup {
    html! {
        form.search role="search" method="get" action="/entity" {
            label.hidden for="q" { "Find an entity or a URI" }
            input #q name="q" type="search" placeholder="orders 42, or a URI" value=(asked) autocapitalize="none" autocomplete="off";
            button { "Find" }
        }
    }
}

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Sydney",
];

fn zones(visit: &Visit) -> Markup {
    html! {
        form.zone method="post" action="/zone" {
            input type="hidden" name="back" value=(visit.place);
            label for="times-in" { "Times are in" } " "
            input #times-in name="zone" value=(zone::name()) list="zones" size="16" maxlength="64" autocomplete="off" spellcheck="false";
            datalist #zones { @for zone in ZONES { option value=(zone) {} } }
            " " button.link { "Change" }
        }
    }
}

fn switched(place: &str, on: bool) -> String {
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    let rest = url::form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "reload");
    let mut all: Vec<String> = rest.map(|(name, value)| format!("{}={}", encoded(&name), encoded(&value))).collect();
    if on {
        all.push(format!("reload={RELOAD}"));
    }
    if all.is_empty() { path.to_owned() } else { format!("{path}?{}", all.join("&")) }
}

/// Returns a view that reloads itself every few seconds if the person has chosen so. A view with a form uses [`still`]
/// instead, because a reload loses the typed text.
pub fn live(visit: &Visit, title: &str, body: Markup) -> Response {
    framed(visit, title, body, true)
}

pub fn still(visit: &Visit, title: &str, body: Markup) -> Response {
    framed(visit, title, body, false)
}

fn framed(visit: &Visit, title: &str, body: Markup, reloads: bool) -> Response {
    let path = visit.place.split('?').next().unwrap_or_default();
    let on = reloads && visit.reloads();
    let head = html! { @if on { meta http-equiv="refresh" content=(RELOAD); } };
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        header.top {
            p.brand { a href="/" aria-current=[(path == "/").then_some("page")] { "awty" } }
            nav aria-label="Views" {
                ul {
                    @for (place, name) in VIEWS {
                        @let here = path == place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
                        li { a href=(place) aria-current=[here.then_some("page")] { (name) } }
                    }
                }
            }
            (search(visit.query.get("q").unwrap_or_default()))
        }
        main #main { (body) }
        footer.foot {
            p {
                "Signed in as " b { (visit.asker.role()) } " (" (visit.asker.scope()) ") on " (visit.page.name)
                ". The database took " (visit.millis()) " ms."
            }
            @if on { p { "Times are in " (zone::name()) "." } } @else { (zones(visit)) }
            ul {
                @if reloads {
                    li {
                        a href=(switched(&visit.place, !on)) {
                            @if on { "Stop reloading" } @else { "Reload every " (RELOAD) " s" }
                        }
                    }
                }
                li { form method="post" action="/logout" { button.link { "Sign out" } } }
            }
        }
    };
    document(&head_title(title, visit.late()), head, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_begins_with_the_late_rows() {
        assert_eq!(head_title("", 3), "3 late · awty");
        assert_eq!(head_title("Rules", 0), "Rules · awty");
        assert_eq!(head_title("", 5_000), "more than 1000 late · awty");
    }

    #[test]
    fn reloading_is_switched_in_the_address() {
        assert_eq!(switched("/", true), "/?reload=10");
        assert_eq!(switched("/x?q=a%20b&reload=10", false), "/x?q=a%20b");
        assert_eq!(switched("/x?q=%22%26", true), "/x?q=%22%26&reload=10");
    }
}
