//! Statements of calendars.

pub mod calendar;
