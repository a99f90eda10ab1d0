//! Property tests: parsing a cron expression and searching for its times must take a bounded number of steps.

use super::Cron;
use crate::repeat::civil::SECOND;
use crate::repeat::local_time::{Span, Zone};
use crate::repeat::steps::counted;
use proptest::prelude::*;

/// Maximum number of steps to parse one byte of a cron expression. Expressions such as `*,*,*` take the most steps.
const STEPS_PER_BYTE: u64 = 60;
/// Maximum number of steps of a search: five steps for each month of 41 years.
const SEARCH_STEPS: u64 = 41 * 12 * 5;

struct Busy;

impl Zone for Busy {
    fn span_at(&self, t: i64) -> Span {
        let month = t.div_euclid(30 * 86_400 * SECOND);
        let offset = [3600, 7200, -12_600, 45_296][month.rem_euclid(4) as usize];
        Span { offset, until: (month + 1).saturating_mul(30 * 86_400 * SECOND) }
    }
}

fn hold(text: &str, after: i64) -> Result<(), TestCaseError> {
    let (read, steps) = counted(|| Cron::new(text));
    prop_assert!(steps <= STEPS_PER_BYTE * (text.len().min(1024) as u64 + 1), "{steps} steps to read {text:?}");
    match read {
        Ok(cron) => {
            let (next, steps) = counted(|| cron.next(&Busy, after));
            prop_assert!(steps <= SEARCH_STEPS, "{steps} steps to search for {text:?}");
            prop_assert!(next.is_none_or(|next| next > after), "{next:?} is not after {after}");
            let (_, steps) = counted(|| cron.closest());
            prop_assert!(steps <= SEARCH_STEPS);
        }
        Err(error) => {
            let most = text.len().min(1024) * 3 + 256;
            prop_assert!(error.to_string().len() <= most, "a message of {} bytes", error.to_string().len());
        }
    }
    Ok(())
}

fn item() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[*]",
        4 => "[0-9]{1,2}",
        2 => "[0-9]{1,2}-[0-9]{1,2}",
        2 => "[*]/[0-9]{1,2}",
        1 => "[0-9]-[0-9]{1,2}/[0-9]",
        1 => "(sun|MON|tue|jan|Dec|L|[$])(-(fri|nov|7))?",
        1 => "[0-9]{1,30}([/#-][0-9]{1,30})?[LWH?]?",
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let field = prop::collection::vec(item(), 1..4).prop_map(|items| items.join(","));
    prop::collection::vec(field, 4..8).prop_map(|fields| fields.join(" "))
}

fn any_moment() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..4_102_444_800 * SECOND, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_within_its_bounds(text in "\\PC{0,40}", after in any_moment()) {
        hold(&text, after)?;
    }

    #[test]
    fn text_of_the_right_letters_is_read_or_refused_within_its_bounds(text in "[-0-9*/,# LW?@$a-z]{0,60}", after in any_moment()) {
        hold(&text, after)?;
    }

    #[test]
    fn what_looks_like_an_expression_is_read_or_refused_within_its_bounds(text in expression(), after in any_moment()) {
        hold(&text, after)?;
    }

    #[test]
    fn a_spoilt_expression_is_read_or_refused_within_its_bounds(
        text in expression(), place in any::<prop::sample::Index>(), letter in any::<char>(), after in any_moment(),
    ) {
        let mut letters: Vec<char> = text.chars().collect();
        let place = place.index(letters.len());
        letters[place] = letter;
        hold(&letters.into_iter().collect::<String>(), after)?;
    }
}

#[test]
fn the_longest_texts_are_read_within_the_bounds() {
    for text in ["*,".repeat(507) + "* * * * *", "*/1,".repeat(253) + "* * * * *", " *".repeat(512), ",".repeat(1024)] {
        assert!(text.len() <= 1024);
        hold(&text, 0).unwrap();
    }
}

#[test]
fn a_search_at_the_end_of_time_ends_within_the_bounds() {
    for text in ["* * * * *", "0 0 30 2 *"] {
        hold(text, i64::MAX).unwrap();
    }
}

#[test]
fn a_search_in_vain_ends_within_the_bounds() {
    for text in ["0 0 30 2 *", "* * 30 2 *", "* * 31 2,4,6,9,11 *", "* * * 30 2 *"] {
        let cron = Cron::new(text).unwrap();
        let (next, steps) = counted(|| cron.next(&Busy, 0));
        assert_eq!(next, None);
        assert!((41 * 12..=SEARCH_STEPS).contains(&steps), "{steps} steps for {text}");
    }
}
