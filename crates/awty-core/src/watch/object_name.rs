//! Builds the names of a rule's functions and triggers.

const MAX_NAME: usize = 63;

pub fn object_name(rule: &str, suffix: &str) -> String {
    let whole = format!("awty_{rule}{suffix}");
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let hash = format!("_{:08x}", crate::repeat::jitter::hash(rule, "", "") >> 32);
    let mut end = MAX_NAME - "awty_".len() - hash.len() - suffix.len();
    while !rule.is_char_boundary(end) {
        end -= 1;
    }
    format!("awty_{}{hash}{suffix}", &rule[..end])
}
