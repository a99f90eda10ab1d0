use super::phrase::quote;
use awty_core::repeat::RepeatError;

pub fn hint(error: &RepeatError, job: &str, zone: Option<&str>) -> String {
    let job = quote(if job.is_empty() { "digest" } else { job });
    match error {
        RepeatError::EveryOrCron { .. } => {
            format!("SELECT awty.repeat({job}, cron => '0 9 * * *', zone => 'Europe/Berlin');")
        }
        RepeatError::Unreadable(_) | RepeatError::NeverComes(_) => {
            "The fields are minute, hour, day of month, month and day of week. The first of six fields is the second."
                .into()
        }
        RepeatError::NeedsZone(_) => match zone {
            Some(zone) if zone.contains('/') && !zone.starts_with("Etc/") => {
                format!("Use zone => {} or zone => 'UTC'.", quote(zone))
            }
            _ => "Use zone => 'Europe/Berlin' or zone => 'UTC'.".into(),
        },
        RepeatError::Every(_) => "Use '1 day' for the same time of each day, or '24 hours' for real time.".into(),
        RepeatError::EveryTooLong => "Use a shorter interval.".into(),
        RepeatError::NeverOpen(_) => "Use times at which the calendar is open, or another calendar.".into(),
        RepeatError::TooClose { closest, slot } => {
            let seconds = closest.num_seconds().max(1);
            let day = 86_400;
            if slot.seconds() > 1 && day % seconds == 0 && closest.subsec_nanos() == 0 {
                format!(
                    "Use ALTER SYSTEM SET awty.slot = '{seconds}s'; SELECT pg_reload_conf(); or cron => '* * * * *'."
                )
            } else {
                "Use cron => '* * * * *' or a longer distance.".into()
            }
        }
        RepeatError::NoneBeforeEnd(_) | RepeatError::EndsTooEarly => "Use a later \"ends\", or none.".into(),
        RepeatError::OutOfRange { argument } => format!("Use {argument} => '10 minutes', for example."),
        RepeatError::Max => "Use max => 10, for example.".into(),
    }
}
