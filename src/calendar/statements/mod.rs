pub mod calendar;
