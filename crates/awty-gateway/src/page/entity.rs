//! `/entity`: past and pending checks of one entity, and the forms that change them.

use super::calls::Last;
use super::fail::{Fail, View};
use super::form::{Form, see};
use super::parts::{
    Mark, button, command, due, empty, entity, entity_place, is_late, job, mark, none, outcome, select, string, table,
    text, time,
};
use super::past;
use super::stop::Stop;
use super::visit::Visit;
use super::words::{moment, times};
use super::{alerts, frame};
use crate::db::views;
use awty_core::uri::Uri;
use axum::extract::Path;
use maud::{Markup, html};
use serde_json::Value;

#[derive(Debug, PartialEq)]
enum Asked<'a> {
    Entity(String, String),
    Name(&'a str),
}

fn asked(text: &str) -> Asked<'_> {
    if let Ok(uri) = Uri::parse(text) {
        return Asked::Entity(uri.entity_name(), uri.entity_key().to_owned());
    }
    match text.split_once(char::is_whitespace) {
        Some((name, key)) => Asked::Entity(name.to_owned(), key.trim().to_owned()),
        None => Asked::Name(text),
    }
}

pub async fn show(visit: Visit) -> View {
    match (visit.query.get("name"), visit.query.get("key"), visit.query.get("q")) {
        (Some(name), Some(key), _) => life(&visit, name, key).await,
        (Some(name), None, _) => list(&visit, name).await,
        (None, _, Some(text)) => match asked(text) {
            Asked::Entity(name, key) => Ok(see(&past::place(&visit, &name, &key).await?)),
            Asked::Name(name) => list(&visit, name).await,
        },
        _ => Ok(see("/")),
    }
}

async fn list(visit: &Visit, name: &str) -> View {
    let reading = visit.read().await?;
    let checks = views::pending(&reading, name, None, 100).await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let row = |row: &Value| vec![entity(row), job(string(&row["job"])), standing(row)];
    let body = html! {
        h1 { "Checks of " (name) }
        (stop.banner())
        @if checks.is_empty() {
            (empty("Pending checks", "No check is pending for this name. Ask for one entity with its name and its key, such as orders 42, or with its URI.", None))
        } @else {
            (table("Pending checks", &[text("Entity"), text("Job"), text("State")], checks.iter().map(row).collect()))
        }
    };
    Ok(frame::live(visit, name, body))
}

async fn life(visit: &Visit, name: &str, key: &str) -> View {
    let reading = visit.read().await?;
    let checks = views::pending(&reading, name, Some(key), 50).await?;
    let open = views::alerts_of(&reading, name, key).await?;
    let schedule = views::schedule_of(&reading, name, key).await?;
    let events = views::explain(&reading, name, key).await?;
    let stop = Stop::read(&reading).await?;
    let schedule = schedule.as_deref();
    let calls = match schedule {
        Some(id) => Some(Last::read(&visit.page, &reading, id, None).await?),
        None => None,
    };
    visit.end(reading).await?;
    let now = crate::clock::now();
    let (waits, events): (Vec<Value>, Vec<Value>) = events.into_iter().partition(|row| row["event"] == "waiting");
    let (past, future): (Vec<&Value>, Vec<&Value>) =
        events.iter().partition(|row| moment(&row["at"]).is_some_and(|at| at <= now));
    let wait = |row: &Value| vec![time(&row["at"]), job(string(&row["job"])), html! { (string(&row["detail"])) }];
    let event = |row: &&Value| {
        vec![
            time(&row["at"]),
            row["job"].as_str().map_or_else(none, job),
            happened(string(&row["event"])),
            html! { (string(&row["detail"])) },
        ]
    };
    let columns = || [text("At"), text("Job"), text("Event"), text("Detail")];
    let body = html! {
        h1 { span.soft { (name) } " " (key) }
        (stop.banner())
        @if let Some(place) = schedule.map(|id| format!("/schedules/{id}")) {
            p { a href=(place) { "The schedule of this URI" } }
            @if !visit.reloads() { section { (past::ask(&place, "")) } }
        }
        @if !waits.is_empty() { (table("Now", &[text("Since"), text("Job"), text("Why it waits")], waits.iter().map(wait).collect())) }
        @if let Some(calls) = &calls { (calls.cause()) }
        @if !open.is_empty() { (alerts::open("Alerts", &open, visit)) }
        @if !checks.is_empty() { (pending(&checks, visit)) }
        @if events.is_empty() && waits.is_empty() {
            (empty("Its life", "awty knows nothing of this entity, or this role may not see it. Name and key are written as in awty.schedule():", Some(&select(&format!("* FROM awty.explain({}, {})", quoted(name), quoted(key))))))
        } @else {
            @if !future.is_empty() { (table("What comes", &columns(), future.iter().map(event).collect())) }
            @if let Some((calls, id)) = calls.as_ref().zip(schedule) { (calls.draw(id)) }
            @if !past.is_empty() { (table("What was", &columns(), past.iter().rev().map(event).collect())) }
        }
        @for check in &checks { (trial(check, visit.writes())) }
    };
    Ok(frame::live(visit, &format!("{name} {key}"), body))
}

/// Offers a trial run of the check's function. An external job has no function and therefore no such offer.
fn trial(check: &Value, writes: bool) -> Markup {
    let Some(is_own) = check["tries"].as_bool() else { return html! {} };
    let [name, key, of] = ["name", "key", "job"].map(|name| string(&check[name]));
    html! {
        details {
            summary { "What would " (of) " do now?" }
            @if is_own && writes {
                p { "This runs the function and undoes everything. Only sequences advance, and effects outside of the database stay." }
                (button(&entity_place(name, key), "Try it", &[("job", of)]))
                p { "The same in a session of the job’s role:" }
            } @else {
                p { "In a session of the job’s role, this runs the function and undoes everything:" }
            }
            (command(&select(&format!("* FROM awty.dry_run({}, {}, {})", quoted(name), quoted(key), quoted(of)))))
        }
    }
}

/// Runs a check's function and undoes all changes, so only this answer shows the result.
pub async fn try_job(visit: Visit, form: Form) -> View {
    visit.asker.may("write")?;
    let need = |name| visit.query.need(name);
    let (name, key, of) = (need("name")?, need("key")?, form.need("job")?);
    visit.count().await?;
    let tried = visit.dry_run((name, key, of)).await?;
    let body = html! {
        h1 { span.soft { (name) } " " (key) }
        section.notice role="status" {
            p { "What " (job(of)) " would do now:" }
            @if let Some(message) = tried["message"].as_str() {
                p { (mark(Mark::Bad, "It would fail:")) " " (message) " (" (string(&tried["sqlstate"])) ")" }
            }
            p {
                @if let Some(end) = tried["outcome"].as_str() { "The check would end: " (outcome(end)) }
                @else { "The check would be due again at " (time(&tried["next_check_at"])) }
            }
        }
        p { "All changes were undone. " a href=(entity_place(name, key)) { "Back to its life" } }
    };
    Ok(frame::still(&visit, &format!("{name} {key}"), body))
}

fn quoted(text: &str) -> String {
    let quoted = format!("'{}'", text.replace('\'', "''"));
    if text.contains('\\') { format!("E{}", quoted.replace('\\', "\\\\")) } else { quoted }
}

fn happened(event: &str) -> Markup {
    match event {
        "done" | "met" | "cleared" => mark(Mark::Good, event),
        "held" | "paused" => mark(Mark::Held, event),
        "late" | "alert" => mark(Mark::Late, event),
        "failed" | "timed_out" | "missed" | "expired" | "exhausted" | "past" | "beyond_horizon" => {
            mark(Mark::Bad, event)
        }
        _ => mark(Mark::Wait, event),
    }
}

/// Says whether a pending check is held, has failed, is late or is due.
fn standing(row: &Value) -> Markup {
    let failed = row["attempt"].as_i64().filter(|failed| *failed > 0);
    html! {
        @if row["held"] == true {
            (mark(Mark::Held, "held")) ", for " (time(&row["at"]))
        } @else {
            @if let Some(failed) = failed { (mark(Mark::Bad, &format!("failed {}", times(failed)))) ", " }
            (due(&row["at"], is_late(&row["at"])))
        }
    }
}

fn pending(checks: &[Value], visit: &Visit) -> Markup {
    let row = |row: &Value| {
        let [name, key, of] = ["name", "key", "job"].map(|name| string(&row[name]));
        let fields = [("name", name), ("key", key), ("job", of), ("back", &visit.place)];
        let held = row["held"] == true;
        let buttons = html! {
            @if !visit.writes() {} @else if held { (button("/entity/release", "Release", &fields)) } @else {
                (button("/entity/check", "Check now", &fields)) " " (button("/entity/hold", "Hold", &fields))
            }
        };
        vec![job(of), standing(row), buttons]
    };
    table("Pending checks", &[text("Job"), text("State"), text("")], checks.iter().map(row).collect())
}

pub async fn act(visit: Visit, Path(action): Path<String>, form: Form) -> View {
    visit.asker.may("write")?;
    let (name, key) = (form.need("name")?, form.need("key")?);
    let of = (name, key, form.get("job"));
    let length = form.interval("until")?;
    let change = visit.change().await?;
    match action.as_str() {
        "hold" => views::hold(&change, of, form.get("note"), length.as_deref()).await?,
        "release" => views::release(&change, of).await?,
        "check" => views::check_now(&change, of).await?,
        _ => return Err(Fail::not_found()),
    }
    visit.end(change).await?;
    Ok(form.back(&entity_place(name, key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_finds_entities_and_endpoints() {
        let entity = |name: &str, key: &str| Asked::Entity(name.into(), key.into());
        assert_eq!(asked("orders 42"), entity("orders", "42"));
        assert_eq!(asked("orders  [\"a\", \"b\"]"), entity("orders", "[\"a\", \"b\"]"));
        assert_eq!(asked("https://api.example.com/tick?a=b"), entity("https://api.example.com", "/tick?a=b"));
        assert_eq!(asked("orders"), Asked::Name("orders"));
    }

    #[test]
    fn a_command_can_be_pasted_whatever_the_key_is() {
        assert_eq!(quoted("it's"), "'it''s'");
        assert_eq!(quoted("a\\'b"), "E'a\\\\''b'");
    }
}
