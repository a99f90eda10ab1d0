use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};

fn reads(text: &str) -> String {
    parse(text).map_or_else(|refusal| format!("refused: {refusal}"), |length| length.to_string())
}

#[test]
fn each_way_to_write_ten_seconds_is_ten_seconds() {
    for text in ["10 s", "10s", "10 seconds", "10 sec", "10secs", "PT10S", "10000 ms", " 10 s "] {
        assert_eq!(reads(text), "10s", "{text}");
    }
}

#[test]
fn units_come_largest_first_with_or_without_space_and_comma() {
    assert_eq!(reads("1h 30m"), "1h 30m");
    assert_eq!(reads("1h30m"), "1h 30m");
    assert_eq!(reads("1 hour, 30 minutes"), "1h 30m");
    assert_eq!(reads("90 min"), "1h 30m");
    assert_eq!(reads("1.5h"), "1h 30m");
    assert_eq!(reads("0.5s"), "500ms");
    assert_eq!(reads("8 days"), "1w 1d");
    assert_eq!(reads("P1DT1M"), "1d 1m");
    assert!(reads("30m 1h").starts_with("refused"));
    assert!(reads("1.5d").starts_with("refused"));
}

#[test]
fn a_refusal_says_what_to_write() {
    assert_eq!(reads("10000"), "refused: 10000 has no unit; write 10 s or 10000 ms");
    assert_eq!(reads("10"), "refused: 10 has no unit; write 10 s or 10 min");
    assert_eq!(reads("90000"), "refused: 90000 has no unit; write 1m 30s or 90000 ms");
    assert_eq!(reads("2 months"), "refused: months and years have no fixed length; write 60 d");
    assert_eq!(reads("1y 1mo"), "refused: months and years have no fixed length; write 395 d");
    assert_eq!(reads("10 s ago"), "refused: is negative; write 10s");
    assert_eq!(reads("-10 s"), "refused: is negative; write 10s");
    assert_eq!(reads("0 s"), "refused: is zero; write for example 10 s");
    assert_eq!([parse_or_zero("0 s"), parse_or_zero("PT0S")], [Ok(Length(0)), Ok(Length(0))]);
    assert_eq!(parse_or_zero("0"), Err("0 has no unit; write for example 10 s".into()));
    for text in ["", "soon", "1 0 s", "10 fortnights", "1:30:00", "5 us", "1.0001 ms", "-5", "inf", "NaN", "1e999"] {
        assert!(reads(text).starts_with("refused"), "{text}");
        assert!(reads(text).contains("write"), "{text}: {}", reads(text));
    }
    assert!(reads(&"1".repeat(1_000_000)).starts_with("refused"));
}

#[test]
fn no_text_upsets_it() {
    let pieces = [
        "1",
        "0",
        "90",
        "9223372036854775807",
        ".",
        ",",
        " ",
        "-",
        "+",
        ":",
        "P",
        "T",
        "y",
        "mo",
        "w",
        "d",
        "h",
        "m",
        "min",
        "s",
        "ms",
        "us",
        "ns",
        "ago",
        "hours",
        "H",
        "S",
        "M",
        "∞",
        "\0",
    ];
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    for _ in 0..100_000 {
        let text: String =
            (0..random.random_range(0..8)).map(|_| pieces[random.random_range(0..pieces.len())]).collect();
        if let Ok(length) = parse(&text) {
            assert!(length.0 > 0, "{text}");
            assert_eq!(parse(&length.to_string()), Ok(length), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn the_canonical_form_reads_as_the_same(millis in 1_i64..100 * 366 * DAY) {
        prop_assert_eq!(parse(&Length(millis).to_string()), Ok(Length(millis)));
    }
}
