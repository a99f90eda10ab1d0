//! SQL statements about calendars.

pub mod calendar;
