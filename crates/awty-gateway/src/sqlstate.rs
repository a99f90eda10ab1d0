//! Invariant: only this table maps SQLSTATEs to HTTP statuses.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NotPermitted,
    NotFound,
    Conflict,
    TooLarge,
    Invalid,
    Away,
    Standby,
    /// After this error, the gateway attempts the request up to three times.
    Again,
    TimedOut,
    Internal,
}

/// Kinds of errors by the beginning of the SQLSTATE. The first matching row determines the kind.
const TABLE: &[(&str, Kind)] = &[
    ("42501", Kind::NotPermitted),
    ("42704", Kind::NotFound),
    ("42710", Kind::Conflict),
    ("23505", Kind::Conflict),
    ("55006", Kind::Conflict),
    ("54000", Kind::TooLarge),
    ("21000", Kind::Invalid),
    ("22", Kind::Invalid),
    ("42", Kind::Invalid),
    ("25006", Kind::Standby),
    ("55000", Kind::Away),
    ("57P0", Kind::Away),
    ("53", Kind::Away),
    ("08", Kind::Away),
    ("57014", Kind::TimedOut),
    ("55P03", Kind::TimedOut),
    ("40001", Kind::Again),
    ("40P01", Kind::Again),
];

pub fn kind(sqlstate: &str) -> Kind {
    TABLE.iter().find(|(start, _)| sqlstate.starts_with(start)).map_or(Kind::Internal, |(_, kind)| *kind)
}

impl Kind {
    pub const fn status(self) -> u16 {
        match self {
            Kind::NotPermitted => 403,
            Kind::NotFound => 404,
            Kind::Conflict => 409,
            Kind::TooLarge => 413,
            Kind::Invalid => 422,
            Kind::Away | Kind::Standby | Kind::Again => 503,
            Kind::TimedOut => 504,
            Kind::Internal => 500,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sqlstate_has_its_status() {
        let expected = [
            ("42501", 403),
            ("42704", 404),
            ("42710", 409),
            ("23505", 409),
            ("55006", 409),
            ("54000", 413),
            ("21000", 422),
            ("22023", 422),
            ("42809", 422),
            ("25006", 503),
            ("55000", 503),
            ("57P01", 503),
            ("53300", 503),
            ("08006", 503),
            ("57014", 504),
            ("55P03", 504),
            ("40001", 503),
            ("40P01", 503),
            ("XX000", 500),
            ("", 500),
        ];
        for (sqlstate, status) in expected {
            assert_eq!(kind(sqlstate).status(), status, "{sqlstate}");
        }
    }

    #[test]
    fn a_standby_is_told_from_a_database_that_is_away() {
        assert_eq!(kind("25006"), Kind::Standby);
        assert_eq!(kind("57P03"), Kind::Away);
        assert_eq!(kind("42P01"), Kind::Invalid);
    }
}
