use super::problem::Problem;
use chrono::{DateTime, Utc};

pub fn of(name: &str, text: Option<String>) -> Result<Option<DateTime<Utc>>, Problem> {
    // In the query of a URL, a plus sign means a space.
    let read = |text: String| DateTime::parse_from_rfc3339(&text.replace(' ', "+"));
    let read = text.map(read).transpose();
    let refused = |_| Problem::parameter(name, "is not a time; write for example 2027-01-15T08:00:00Z");
    Ok(read.map_err(refused)?.map(|time| time.to_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_with_its_zone() {
        let noon = Some("2027-01-15T12:00:00Z".parse().unwrap());
        assert_eq!(of("to", Some("2027-01-15T13:00:00 01:00".into())).unwrap(), noon);
        assert_eq!(of("to", None).unwrap(), None);
        assert!(of("to", Some("yesterday".into())).is_err());
    }
}
