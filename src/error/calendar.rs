use super::phrase::{Words, quote, say};
use awty_core::calendar::{HoursError, LengthError};
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

#[derive(Debug)]
pub enum CalendarError {
    Unknown { calendar: String, nearest: Option<String> },
    Exists { calendar: String, own: bool },
    NotOwner { calendar: String },
    NotUsable { calendar: String, role: String },
    InUse { calendar: String, users: Vec<String>, others: usize },
    Hours(HoursError),
    NoOpenTime { calendar: String },
    TooManyCalendars { role: String, max: i64 },
    Busy { calendar: String },
    NullElement { argument: &'static str },
    Dimensions { argument: &'static str },
    TooMany { argument: &'static str, max: usize },
    InfiniteDay,
    DayOutOfReach { day: String },
    Length(LengthError),
    NoResult { calendar: String },
}

impl CalendarError {
    pub(super) fn words(&self) -> Words {
        match self {
            CalendarError::Unknown { calendar, nearest } => say(
                Code::ERRCODE_UNDEFINED_OBJECT,
                format!("calendar \"{calendar}\" does not exist"),
                match nearest {
                    Some(nearest) => format!("Did you mean \"{nearest}\"?"),
                    None => format!(
                        "SELECT awty.create_calendar({}, hours => '{{mon-fri 09:00-17:00}}', zone => 'Europe/Berlin');",
                        quote(calendar)
                    ),
                },
            ),
            CalendarError::Exists { calendar, own: false } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("calendar \"{calendar}\" already exists"),
                "Use another name: this calendar belongs to another role.",
            ),
            CalendarError::Exists { calendar, own: true } => say(
                Code::ERRCODE_DUPLICATE_OBJECT,
                format!("calendar \"{calendar}\" already exists with another definition"),
                "Add replace => true to give it this one.",
            ),
            CalendarError::NotOwner { calendar } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for calendar \"{calendar}\""),
                "Ask a member of the calendar's role, or the owner of the database.",
            )
            .detail("Only members of the calendar's role and the owner of the database may drop it."),
            CalendarError::NotUsable { calendar, role } => say(
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("role \"{role}\" may not use calendar \"{calendar}\""),
                "Use a calendar of that role, or of the owner of the database.",
            ),
            CalendarError::InUse { calendar, users, others } => say(
                Code::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
                format!("calendar \"{calendar}\" is in use"),
                "End what uses the calendar, or give it another one.",
            )
            .detail(match (users.as_slice(), others) {
                ([], others) => format!("Rules and repetitions of other roles use it: {others}."),
                (users, 0) => format!("It is used by {}.", users.join(", ")),
                (users, others) => format!("It is used by {} and {others} others.", users.join(", ")),
            }),
            CalendarError::Hours(error) => say(Code::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string(), error.hint()),
            CalendarError::NoOpenTime { calendar } => say(
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("calendar \"{calendar}\" has no open time within ten years"),
                "Write hours as in hours => '{mon-fri 09:00-17:00}', and fewer closed days.",
            ),
            CalendarError::TooManyCalendars { role, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("role \"{role}\" cannot have more than {max} calendars"),
                "Use one calendar for all that is open at the same hours.",
            ),
            CalendarError::Busy { calendar } => say(
                Code::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("calendar \"{calendar}\" is locked by another transaction"),
                "Try again. SELECT * FROM pg_prepared_xacts; shows transactions that wait to be committed.",
            )
            .detail(
                "A transaction that uses the calendar, or has locked a check of such a repetition, locks the calendar.",
            ),
            CalendarError::NullElement { argument } => say(
                Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                format!("argument \"{argument}\" must not contain null"),
                "Use array_remove(…, NULL).",
            ),
            CalendarError::Dimensions { argument } => say(
                Code::ERRCODE_ARRAY_ELEMENT_ERROR,
                format!("argument \"{argument}\" must have one dimension"),
                "Use array_agg(), which makes an array of rows.",
            ),
            CalendarError::TooMany { argument, max } => say(
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("argument \"{argument}\" must not have more than {max} elements"),
                format!("Give \"{argument}\" fewer elements."),
            ),
            CalendarError::InfiniteDay => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                "argument \"closed\" must have finite dates",
                "Leave the infinite date out.",
            ),
            CalendarError::DayOutOfReach { day } => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("closed day {day} is too far ahead"),
                "Use closed days before the year 262143.",
            ),
            CalendarError::Length(error) => say(Code::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string(), error.hint()),
            CalendarError::NoResult { calendar } => say(
                Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("calendar \"{calendar}\" does not reach that length within ten years"),
                "Use a shorter interval, or a calendar with more open time.",
            ),
        }
    }
}
