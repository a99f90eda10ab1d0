//! Decides whether the library supports the version of the installed SQL. Compares versions as numbers: `0.10` comes
//! after `0.9`.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unserved {
    /// The installed SQL is older than the library: ALTER EXTENSION awty UPDATE is needed.
    Older,
    /// The server still has the old library in memory, and must be restarted.
    Newer,
}

/// `served` lists the SQL versions that the library supports. The last version is the library's own version.
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
