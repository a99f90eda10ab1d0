//! Tables, status marks, buttons and other parts of several views. The templates escape each text.

use super::words::{absolute, encoded, grouped, moment, relative};
use chrono::TimeDelta;
use maud::{Markup, html};
use serde_json::Value;

pub struct Column(&'static str, bool);

pub const fn text(name: &'static str) -> Column {
    Column(name, false)
}

pub const fn number(name: &'static str) -> Column {
    Column(name, true)
}

/// On narrow screens, each row becomes a block, so ARIA roles tell screen readers that the blocks are a table.
pub fn table(caption: &str, columns: &[Column], rows: Vec<Vec<Markup>>) -> Markup {
    html! {
        table role="table" {
            caption { h2 { (caption) } }
            thead role="rowgroup" {
                tr role="row" {
                    @for Column(name, is_number) in columns {
                        th scope="col" role="columnheader" class=[is_number.then_some("number")] { (name) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        @for (place, (cell, Column(name, is_number))) in row.into_iter().zip(columns).enumerate() {
                            @let class = is_number.then_some("number");
                            @if place == 0 {
                                th scope="row" role="rowheader" class=[class] { (cell) }
                            } @else {
                                td role="cell" data-label=(name) class=[class] { div { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub fn empty(caption: &str, sentence: &str, statement: Option<&str>) -> Markup {
    html! {
        section.empty {
            h2 { (caption) }
            p { (sentence) }
            @if let Some(statement) = statement { (command(statement)) }
        }
    }
}

/// Returns a statement for the reader to copy. The gateway does not run it.
pub fn select(what: &str) -> String {
    format!("{} {what};", "SELECT")
}

/// Shows control characters as symbols, because a pasted ^C would end the command, and the terminal would run the rest
/// of the text.
pub fn command(text: &str) -> Markup {
    let shown = text.chars().map(|letter| match letter {
        '\n' | '\t' => letter,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or_default(),
        '\u{7f}' => '\u{2421}',
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    html! { pre.command { code { (shown.collect::<String>()) } } }
}

pub fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn whole(value: &Value) -> Markup {
    match value.as_i64() {
        Some(number) => html! { (grouped(number)) },
        None => none(),
    }
}

pub fn none() -> Markup {
    html! { span.soft.none { "–" } }
}

pub fn time(value: &Value) -> Markup {
    let now = crate::clock::now();
    match (moment(value), value.as_str()) {
        (Some(at), _) => html! {
            time datetime=(at.to_rfc3339()) { (absolute(at, now)) } " " span.soft { (relative(at, now)) }
        },
        (None, Some("infinity")) => html! { "for ever" },
        (None, Some(text)) => html! { (text) },
        (None, None) => none(),
    }
}

/// Time after which a due check counts as late, because a check that has just become due is about to run.
pub const PATIENCE: TimeDelta = TimeDelta::seconds(10);

pub fn is_late(slot: &Value) -> bool {
    moment(slot).is_some_and(|slot| slot < crate::clock::now() - PATIENCE)
}

/// Shows since when a row or a check is late. If it is not late, shows when it is due.
pub fn due(at: &Value, is_late: bool) -> Markup {
    html! {
        @if is_late { (mark(Mark::Late, "late")) " since " } @else { (mark(Mark::Wait, "due")) " " }
        (time(at))
    }
}

pub fn linked_time(place: &str, value: &Value) -> Markup {
    let now = crate::clock::now();
    match moment(value) {
        Some(at) => html! {
            a href=(place) { time datetime=(at.to_rfc3339()) { (absolute(at, now)) } } " " span.soft { (relative(at, now)) }
        },
        None => none(),
    }
}

/// Marks differ in shape and word, because some readers cannot tell the colours apart.
pub fn mark(kind: Mark, word: &str) -> Markup {
    let (class, shape) = match kind {
        Mark::Good => ("good", "✓"),
        Mark::Bad => ("bad", "✕"),
        Mark::Late => ("bad", "●"),
        Mark::Wait => ("soft", "○"),
        Mark::Held => ("held", "◆"),
    };
    html! { span.mark.(class) { span aria-hidden="true" { (shape) } " " (word) } }
}

#[derive(Clone, Copy)]
pub enum Mark {
    Good,
    Bad,
    Late,
    Wait,
    Held,
}

pub fn outcome(word: &str) -> Markup {
    let kind = match word {
        "done" | "met" => Mark::Good,
        "cancelled" | "replaced" => Mark::Wait,
        _ => Mark::Bad,
    };
    mark(kind, &word.replace('_', " "))
}

pub fn entity_place(name: &str, key: &str) -> String {
    format!("/entity?name={}&key={}", encoded(name), encoded(key))
}

pub fn entity(row: &Value) -> Markup {
    let (name, key) = (string(&row["name"]), string(&row["key"]));
    html! { a.entity href=(entity_place(name, key)) { span.soft { (name) } " " b { (key) } } }
}

pub fn job(name: &str) -> Markup {
    html! { a href=(format!("/jobs#{}", encoded(name))) { (name) } }
}

pub fn button(action: &str, label: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button { (label) }
        }
    }
}

pub fn field(label: &str, name: &str, value: &str, hint: &str, error: Option<&str>) -> Markup {
    let about = format!("{name}-about");
    html! {
        div.field {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(value) autocomplete="off" aria-describedby=(about)
                aria-invalid=[error.map(|_| "true")];
            p.about id=(about) {
                @if let Some(error) = error { strong.error { (error) } " " }
                (hint)
            }
        }
    }
}

pub fn next_page(place: Option<String>) -> Markup {
    html! { @if let Some(place) = place { p { a rel="next" href=(place) { "Next page" } } } }
}

/// Shows a remedy of the database. A remedy without a semicolon is advice in words, not an SQL command, so the page
/// shows it as prose.
pub fn remedy(fix: &str) -> Markup {
    html! { @if fix.contains(';') { (command(fix)) } @else { p { "What to do: " (fix) "." } } }
}

/// Says why something is stopped. `fix` is what [`remedy`] or [`command`] returns.
pub fn reason(why: &str, fix: Option<Markup>) -> Markup {
    html! {
        section.notice role="status" {
            p { (mark(Mark::Bad, "Something is stopped:")) " " (why) }
            @if let Some(fix) = fix { (fix) }
        }
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
