/// Returns the name that is most similar to `wanted`, for an error's HINT. At most a third of the characters may
/// differ, or one character of a short name.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.chars().collect();
    let most = (wanted.len() / 3).max(1);
    names
        .into_iter()
        .map(|name| (distance(&wanted, name), name))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// The optimal string alignment distance counts a swap of neighbouring characters as one edit.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut edits = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                edits = edits.min(before_last[j - 1] + 1);
            }
            row.push(edits);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_recognised() {
        let names = ["unshipped", "unpaid", "stale"];
        for wanted in ["unshiped", "unhsipped", "unshippedd", "Unshipped", "umshippd"] {
            assert_eq!(nearest(wanted, names), Some("unshipped"), "{wanted}");
        }
        assert_eq!(nearest("stael", names), Some("stale"));
    }

    #[test]
    fn what_is_too_far_is_not_offered() {
        assert_eq!(nearest("refund", ["unshipped", "unpaid"]), None);
        assert_eq!(nearest("ab", ["cd"]), None);
        assert_eq!(nearest("", ["ab"]), None);
        assert_eq!(nearest("job", []), None);
    }

    #[test]
    fn the_first_by_name_wins_a_tie() {
        assert_eq!(nearest("jab", ["job", "jib"]), Some("jib"));
        assert_eq!(nearest("jab", ["jib", "job"]), Some("jib"));
    }

    #[test]
    fn characters_count_not_bytes() {
        assert_eq!(nearest("überfällig", ["uberfallig"]), Some("uberfallig"));
    }
}
