//! Views in HTML show what is late, what fails and why nothing runs.
//!
//! Invariant: the page works without JavaScript. Each view reads with the visitor's role, so the database decides what
//! the view shows.

mod alerts;
mod answer;
mod attempt;
mod calls;
mod cause;
pub mod chart;
mod cookies;
mod document;
mod draw;
mod entity;
mod fail;
mod form;
mod frame;
mod guard;
mod history;
mod home;
mod jobs;
mod links;
mod numbers;
mod parts;
mod past;
mod past_answer;
mod prefix;
mod rights;
mod rules;
mod schedule;
mod schedule_form;
mod schedules;
mod session;
mod slots;
mod state;
mod stop;
mod targets;
mod tokens;
mod visit;
mod why;
mod words;
mod zone;

pub use guard::unknown;
pub use state::Page;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use form::{LARGEST_FORM, LARGEST_SCHEDULE};
use std::sync::Arc;

pub fn router(page: Page) -> Router {
    let page = Arc::new(page);
    let of_schedule = DefaultBodyLimit::max(LARGEST_SCHEDULE);
    Router::new()
        .route("/", get(home::show))
        .route("/login", get(session::show).post(session::enter))
        .route("/logout", post(session::leave))
        .route("/zone", post(session::choose_zone))
        .route("/awty.css", get(document::style))
        .route("/awty.svg", get(document::icon))
        .route("/why", get(why::show))
        .route("/alerts", get(alerts::show))
        .route("/rules", get(rules::show))
        .route("/jobs", get(jobs::show))
        .route("/jobs/{action}", post(jobs::act))
        .route("/slots", get(slots::show))
        .route("/slots/{slot}", get(slots::one))
        .route("/history", get(history::show))
        .route("/history/{id}/retry", post(history::retry))
        .route("/entity", get(entity::show).post(entity::try_job))
        .route("/entity/{action}", post(entity::act))
        .route("/schedules", get(schedules::show))
        .route("/schedules/new", get(schedule_form::new).post(schedule_form::create).layer(of_schedule))
        .route("/schedules/{id}", get(schedule::show))
        .route("/schedules/{id}/edit", get(schedule_form::edit).post(schedule_form::replace).layer(of_schedule))
        .route("/schedules/{id}/delete", get(schedules::confirm).post(schedules::delete))
        .route("/schedules/{id}/{action}", post(schedules::act))
        .route("/attempts/{lease}", get(attempt::show))
        .route("/targets", get(targets::show))
        .route("/targets/{action}", post(targets::act))
        .route("/tokens", get(tokens::show).post(tokens::create))
        .route("/tokens/{id}/delete", post(tokens::delete))
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(from_fn_with_state(page.clone(), guard::around))
        .with_state(page)
}
