//! `/jobs`: each job with its outcomes and run times, and the form that pauses the job.

use super::fail::Fail;
use super::fail::View;
use super::form::Form;
use super::frame;
use super::parts::{
    Mark, button, empty, is_late, mark, none, number, outcome, select, string, table, text, time, whole,
};
use super::stop::Stop;
use super::visit::Visit;
use super::words::{count, grouped, millis};
use crate::db::views;
use axum::extract::Path;
use maud::{Markup, html};
use serde_json::Value;

pub async fn show(visit: Visit) -> View {
    let reading = visit.read().await?;
    let jobs = views::jobs(&reading, 500).await?;
    let stop = Stop::read(&reading).await?;
    visit.end(reading).await?;
    let mine: Vec<&Value> = jobs.iter().filter(|row| row["mine"] == true).collect();
    let columns = [
        text("Job"),
        text("State"),
        number("Pending"),
        number("Done"),
        number("Problems"),
        number("Run time"),
        text("Last run"),
        text(""),
    ];
    let row = |row: &&Value| {
        let name = string(&row["job"]);
        vec![
            html! { b id=(name) { (name) } br; span.soft { (string(&row["role"])) } },
            state(row),
            whole(&row["pending"]),
            whole(&row["done"]),
            whole(&row["problems"]),
            times(row),
            html! { (time(&row["last"])) @if let Some(word) = row["outcome"].as_str() { br; (outcome(word)) } },
            html! { @if visit.writes() { (pausing(row)) } },
        ]
    };
    let body = html! {
        h1 { (count(i64::try_from(mine.len()).unwrap_or(i64::MAX), "job.", "jobs.")) }
        (stop.banner())
        @if mine.is_empty() {
            (empty("Jobs", "A job is a function that awty runs, or that external workers claim:", Some(&select("awty.register('unshipped', 'unshipped')"))))
        } @else {
            (table("Jobs", &columns, mine.iter().map(row).collect()))
            p.about { "Done and problems are counted since the first run. The run time is the average, and then the longest." }
        }
    };
    Ok(frame::still(&visit, "Jobs", body))
}

fn state(row: &Value) -> Markup {
    let number = |name: &str| row[name].as_i64().unwrap_or(0);
    // Shows the job as late only if its oldest overdue check is several seconds late. The number `overdue` alone proves
    // no delay, because it also counts checks that are running.
    let oldest = &row["oldest"];
    html! {
        @if row["paused"] == true {
            (mark(Mark::Held, "paused")) @if let Some(note) = row["note"].as_str() { " “" (note) "”" }
        } @else if is_late(oldest) {
            (mark(Mark::Late, &format!("{} late", grouped(number("overdue"))))) " since " (time(oldest))
        } @else if number("failing") > 0 {
            (mark(Mark::Bad, &format!("{} failing", number("failing"))))
        } @else {
            (mark(Mark::Good, "well"))
        }
        @if number("held") > 0 { br; (mark(Mark::Held, &format!("{} held", number("held")))) }
    }
}

fn times(row: &Value) -> Markup {
    match (row["average"].as_i64(), row["longest"].as_i64()) {
        (Some(average), Some(longest)) => html! { (millis(average)) br; span.soft { (millis(longest)) } },
        _ => none(),
    }
}

fn pausing(row: &Value) -> Markup {
    let job = string(&row["job"]);
    html! {
        @if row["paused"] == true {
            (button("/jobs/resume", "Resume", &[("job", job)]))
        } @else {
            details.take {
                summary { "Pause" }
                form.stack method="post" action="/jobs/pause" {
                    input type="hidden" name="job" value=(job);
                    label { "Note " input name="note" maxlength="200" placeholder="why"; }
                    button { "Pause" }
                }
            }
        }
    }
}

pub async fn act(visit: Visit, Path(action): Path<String>, form: Form) -> View {
    visit.asker.may("write")?;
    let job = form.need("job")?;
    let change = visit.change().await?;
    match action.as_str() {
        "pause" => views::pause_job(&change, job, form.get("note")).await?,
        "resume" => views::resume_job(&change, job).await?,
        _ => return Err(Fail::not_found()),
    }
    visit.end(change).await?;
    Ok(form.back("/jobs"))
}
