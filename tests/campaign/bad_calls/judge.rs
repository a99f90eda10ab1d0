//! Decides whether a call with these arguments may fail with this SQLSTATE.
//!
//! No call may fail with XX000 (internal error), because awty itself must recognize and refuse each bad call.

pub struct Refusal {
    pub sqlstate: String,
    pub message: String,
}

impl Refusal {
    pub fn read(answer: &str) -> Option<Self> {
        let (sqlstate, message) = answer.split_once(' ').unwrap_or((answer, ""));
        (!answer.is_empty()).then(|| Self { sqlstate: sqlstate.into(), message: message.into() })
    }
}

const OF_AWTY: &[&str] = &[
    "22004", "22008", "22023", "23505", "25006", "28000", "39P01", "40001", "42501", "42602", "42622", "42704",
    "42710", "42725", "42809", "42883", "42P13", "54000", "55000",
];
const OF_POSTGRESQL: &[&str] = &[
    "0A000", "3F000", "40P01", "42P01", "21000", "22003", "22007", "22009", "22012", "22015", "22021", "2202E",
    "22025", "22032", "22P02", "22P05", "25P02", "42601", "42702", "42703", "42804", "42846", "42P18", "54001",
    "54023",
];

pub fn wrong(refusal: &Refusal) -> Option<String> {
    let Refusal { sqlstate, message } = refusal;
    if message.trim().is_empty() {
        return Some(format!("{sqlstate} without a message"));
    }
    let expected = OF_AWTY.contains(&sqlstate.as_str()) || OF_POSTGRESQL.contains(&sqlstate.as_str());
    (!expected).then(|| format!("{sqlstate}: {}", message.chars().take(300).collect::<String>()))
}

pub fn is_alarming(line: &str) -> bool {
    let leak = line.contains("WARNING:")
        && ["leak", "snapshot", "not closed", "reference", "you don't own a lock"]
            .iter()
            .any(|word| line.contains(word));
    leak || ["PANIC:", "TRAP:", "terminated by signal", "XX000", "AbortTransaction while in"]
        .iter()
        .any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_internal_error_is_wrong_and_so_is_silence() {
        let wrong = |answer: &str| Refusal::read(answer).and_then(|refusal| wrong(&refusal));
        assert_eq!(wrong(""), None);
        assert_eq!(wrong("42704 job \"x\" does not exist"), None);
        for answer in
            ["XX000 cache lookup failed", "XX001 x", "57P01 terminating", "42704", "42704  ", "99999 x", "P0001 x"]
        {
            assert!(wrong(answer).is_some(), "{answer}");
        }
    }

    #[test]
    fn the_log_shows_what_no_client_sees() {
        for line in [
            "[1] WARNING:  resource was not closed: relation \"x\"",
            "LOG:  server process (PID 1) was terminated by signal 11",
            "WARNING:  buffer refcount leak: [1] ...",
            "PANIC:  x",
        ] {
            assert!(is_alarming(line), "{line}");
        }
        assert!(
            !is_alarming("ERROR:  job \"x\" does not exist")
                && !is_alarming("WARNING:  nonstandard use of \\' in a string literal")
        );
    }
}
