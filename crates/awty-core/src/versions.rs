//! Which versions of the extension's SQL a library serves.
//!
//! Invariant: versions are compared as numbers, so that `0.10` comes after `0.9`.
//! Does not: know which version is installed.

/// Why a library does not serve the SQL that is installed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unserved {
    /// The SQL is of a version before, or of one that is not MAJOR.MINOR: ALTER EXTENSION awty UPDATE ends it.
    Older,
    /// The SQL is of a version to come: the server still has the library of before in memory, and a restart ends it.
    Newer,
}

/// `None` if `installed` is one of the versions in `served`, of which the last is the library's own.
pub fn unserved(installed: &str, served: &[&str]) -> Option<Unserved> {
    if served.contains(&installed) {
        return None;
    }
    let own = served.last().and_then(|own| parse(own));
    Some(match (parse(installed), own) {
        (Some(installed), Some(own)) if installed > own => Unserved::Newer,
        _ => Unserved::Older,
    })
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart_by_number() {
        let served = ["0.9", "0.10"];
        for (installed, expected) in [
            ("0.9", None),
            ("0.10", None),
            ("0.8", Some(Unserved::Older)),
            ("0.11", Some(Unserved::Newer)),
            ("1.0", Some(Unserved::Newer)),
            ("0.1", Some(Unserved::Older)),
            ("0.1.0", Some(Unserved::Older)),
            ("", Some(Unserved::Older)),
            ("x", Some(Unserved::Older)),
        ] {
            assert_eq!(unserved(installed, &served), expected, "{installed}");
        }
    }
}
