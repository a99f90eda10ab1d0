//! At the foot of a view, a person chooses the time zone in which the page shows times. A cookie stores the time zone.

use super::cookies;
use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

tokio::task_local! {
    static ZONE: TimeZone;
}

pub const COOKIE: &str = "zone";
const LONGEST: usize = 64;

pub async fn within<F: Future>(headers: &HeaderMap, request: F) -> F::Output {
    let zone = cookies::value(headers, COOKIE).and_then(|name| find(&name)).unwrap_or(TimeZone::UTC);
    ZONE.scope(zone, request).await
}

pub fn find(name: &str) -> Option<TimeZone> {
    Some(name).filter(|name| name.len() <= LONGEST).and_then(|name| TimeZone::get(name).ok())
}

fn zone() -> TimeZone {
    ZONE.try_with(TimeZone::clone).unwrap_or(TimeZone::UTC)
}

pub fn name() -> String {
    zone().iana_name().unwrap_or("UTC").to_owned()
}

/// `form` is a format of strftime.
pub fn written(at: DateTime<Utc>, form: &str) -> String {
    // Writes the time in UTC if its year is outside of the range that the library `jiff` supports.
    let written = Timestamp::from_microsecond(at.timestamp_micros()).ok();
    let written = written.and_then(|at| jiff::fmt::strtime::format(form, &at.to_zoned(zone())).ok());
    written.unwrap_or_else(|| at.to_rfc3339())
}

/// Reads a time in the person's zone, as browsers send it: `2026-11-26T10:05`.
pub fn read(text: &str) -> Option<DateTime<Utc>> {
    let at = text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(zone()).ok()?;
    DateTime::from_timestamp_micros(at.timestamp().as_microsecond())
}

pub fn day(at: DateTime<Utc>) -> Option<Date> {
    Some(Timestamp::from_microsecond(at.timestamp_micros()).ok()?.to_zoned(zone()).date())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header;

    #[tokio::test]
    async fn times_are_written_in_the_zone_of_the_cookie() {
        let at = DateTime::parse_from_rfc3339("2026-07-01T22:30:00Z").unwrap().to_utc();
        for (cookie, text, name_of_zone) in [
            ("zone=Europe/Berlin", "00:30 CEST", "Europe/Berlin"),
            ("a=b; zone=asia/kolkata", "04:00 IST", "Asia/Kolkata"),
            ("zone=Nowhere/There", "22:30 UTC", "UTC"),
            ("zone=../../etc/passwd", "22:30 UTC", "UTC"),
            ("", "22:30 UTC", "UTC"),
        ] {
            let headers = HeaderMap::from_iter([(header::COOKIE, header::HeaderValue::from_str(cookie).unwrap())]);
            let local = |at| written(at, "%Y-%m-%dT%H:%M");
            let found = within(&headers, async { (written(at, "%H:%M %Z"), name(), read(&local(at))) }).await;
            assert_eq!(found, (text.to_owned(), name_of_zone.to_owned(), Some(at)), "{cookie}");
        }
        assert!(written(DateTime::<Utc>::MAX_UTC, "%H:%M").starts_with('+'));
    }
}
