use super::Cron;
use crate::repeat::civil::{micros, moment};
use crate::repeat::local_time::Fixed;
use crate::testing::at;
use chrono::TimeDelta;

fn moments(text: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::new(text).unwrap();
    let next = |t: &i64| cron.next(&Fixed::UTC, *t);
    let all = std::iter::successors(next(&micros(at(after))), next);
    all.take(count).map(|t| moment(t).unwrap().format("%Y-%m-%d %H:%M:%S").to_string()).collect()
}

fn days(text: &str, month: &str) -> Vec<u32> {
    let after = format!("2026-{month}-01T00:00:00Z");
    let before = at(&after) - TimeDelta::microseconds(1);
    let all = moments(text, &before.to_rfc3339(), 40);
    all.iter()
        .filter(|day| day[5..7] == *month && day.starts_with("2026"))
        .map(|day| day[8..10].parse().unwrap())
        .collect()
}

fn refusal(text: &str) -> String {
    let message = Cron::new(text).unwrap_err().to_string();
    let start = format!("cron expression \"{text}\" cannot be read: ");
    message.strip_prefix(&start).unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn five_fields_six_or_a_word() {
    assert_eq!(moments("30 9 * * *", "2026-03-01T09:30:00Z", 1), ["2026-03-02 09:30:00"]);
    assert_eq!(moments("15 30 9 * * *", "2026-03-01T09:30:00Z", 1), ["2026-03-01 09:30:15"]);
    assert_eq!(
        moments(" \t*/20  9\n* * * ", "2026-03-01T09:30:00Z", 2),
        ["2026-03-01 09:40:00", "2026-03-02 09:00:00"]
    );
    assert_eq!(moments("@yearly", "2026-03-01T09:30:00Z", 1), ["2027-01-01 00:00:00"]);
    assert_eq!(moments("@monthly", "2026-03-01T09:30:00Z", 1), ["2026-04-01 00:00:00"]);
    assert_eq!(moments("@weekly", "2026-03-01T09:30:00Z", 1), ["2026-03-08 00:00:00"]);
    assert_eq!(moments("@Daily", "2026-03-01T09:30:00Z", 1), ["2026-03-02 00:00:00"]);
    assert_eq!(moments("@hourly", "2026-03-01T09:30:00Z", 1), ["2026-03-01 10:00:00"]);
}

#[test]
fn lists_ranges_steps_and_names() {
    let hours =
        |text| moments(text, "2026-02-28T23:59:59Z", 4).iter().map(|t| t[11..13].to_owned()).collect::<Vec<_>>();
    assert_eq!(hours("0 1,5-6,20-23/3 * * *"), ["01", "05", "06", "20"]);
    assert_eq!(hours("0 */9 * * *"), ["00", "09", "18", "00"]);
    assert_eq!(hours("0 0,007 * * *"), ["00", "07", "00", "07"]);
    assert_eq!(days("0 0 * MAR mon-Wed,sun", "03"), days("0 0 * 3 0-3", "03"));
    assert_eq!(days("0 0 * * fri-7", "03"), days("0 0 * * 5,6,0", "03"));
    assert_eq!(days("0 0 * * 0-7/7", "03"), [1, 8, 15, 22, 29]);
    assert_eq!(days("0 0 * * 7", "03"), days("0 0 * * sun", "03"));
}

#[test]
fn the_last_day_of_the_month_is_l_or_a_dollar() {
    assert_eq!(days("0 0 L * *", "02"), [28]);
    assert_eq!(days("0 0 $ * *", "03"), [31]);
    assert_eq!(days("0 0 1,l,15 * *", "04"), [1, 15, 30]);
    assert_eq!(moments("0 0 $ 2 *", "2027-03-01T00:00:00Z", 1), ["2028-02-29 00:00:00"]);
}

#[test]
fn one_day_field_is_enough_unless_either_begins_with_a_star() {
    assert_eq!(days("0 0 2-3 * sun", "03"), [1, 2, 3, 8, 15, 22, 29]);
    assert_eq!(days("0 0 * * sun", "03"), [1, 8, 15, 22, 29]);
    assert_eq!(days("0 0 */2 * sun", "03"), [1, 15, 29]);
    assert_eq!(days("0 0 1-14 * */7", "03"), [1, 8]);
    assert_eq!(days("0 0 */20,8 * sun", "03"), [1, 8]);
    assert_eq!(days("0 0 8,*/20 * sun", "03"), [1, 8, 15, 21, 22, 29]);
}

#[test]
fn leap_days_come_in_leap_years_only() {
    let leap_days = moments("0 0 29 2 *", "2095-01-01T00:00:00Z", 2);
    assert_eq!(leap_days, ["2096-02-29 00:00:00", "2104-02-29 00:00:00"]);
    // The next matching day comes after 40 years instead of 28, because 2100 is not a leap year.
    let sundays = moments("0 0 29 2 */7", "2088-02-29T00:00:00Z", 2);
    assert_eq!(sundays, ["2128-02-29 00:00:00", "2156-02-29 00:00:00"]);
    assert_eq!(moments("0 0 30 2 *", "2026-01-01T00:00:00Z", 1), [""; 0]);
}

#[test]
fn a_number_outside_its_field_is_named_with_the_field() {
    assert_eq!(refusal("0 25 * * *"), "hour 25 is not between 0 and 23");
    assert_eq!(refusal("60 * * * *"), "minute 60 is not between 0 and 59");
    assert_eq!(refusal("60 * * * * *"), "second 60 is not between 0 and 59");
    assert_eq!(refusal("* * 0 * *"), "day of month 0 is not between 1 and 31");
    assert_eq!(refusal("* * * 1-13 *"), "month 13 is not between 1 and 12");
    assert_eq!(refusal("* * * * 8"), "day of week 8 is not between 0 and 7");
    assert_eq!(refusal("99999999999999999999 * * * *"), "minute 99999999999999999999 is not between 0 and 59");
    assert_eq!(refusal("*/0 * * * *"), "minute step 0 is not between 1 and 60");
    assert_eq!(refusal("*/90 * * * *"), "minute step 90 is not between 1 and 60");
    assert_eq!(refusal("* * * * */8"), "day of week step 8 is not between 1 and 7");
    assert_eq!(refusal("* 1-9/x * * *"), "hour step x is not between 1 and 24");
}

#[test]
fn what_is_no_number_is_named_with_what_could_be_there() {
    assert_eq!(refusal("x * * * *"), "minute \"x\" is not a number from 0 to 59");
    assert_eq!(refusal("* +5 * * *"), "hour \"+5\" is not a number from 0 to 23");
    let weekday = "day of week \"monday\" is not a number from 0 to 7 or one of sun, mon, tue, wed, thu, fri, sat";
    assert_eq!(refusal("* * * * monday"), weekday);
    assert!(refusal("* * * mon *").starts_with("month \"mon\" is not a number from 1 to 12 or one of jan, feb"));
    assert_eq!(refusal("1,,2 * * * *"), "minute \"1,,2\" has a value missing");
    assert_eq!(refusal("-5 * * * *"), "minute \"-5\" has a value missing");
    assert_eq!(refusal("/5 * * * *"), "minute \"/5\" has a value missing");
    assert_eq!(refusal("* 1-9/ * * *"), "hour \"1-9/\" has a value missing");
    assert_eq!(refusal("5/15 * * * *"), "minute 5/15 has a step without a range: write 5-59/15");
    assert_eq!(refusal("* * * * mon/2"), "day of week mon/2 has a step without a range: write mon-6/2");
}

#[test]
fn a_range_that_wraps_is_written_as_two() {
    assert_eq!(refusal("0 22-2 * * *"), "range 22-2 wraps around: write 22-23,0-2");
    assert_eq!(refusal("0 23-0 * * *"), "range 23-0 wraps around: write 23,0");
    assert_eq!(refusal("0 0 * nov-feb *"), "range nov-feb wraps around: write 11-12,1-2");
    assert_eq!(refusal("0 0 * * fri-sun"), "range fri-sun wraps around: write 5-7");
    assert_eq!(refusal("0 0 * * fri-mon"), "range fri-mon wraps around: write 5-7,1");
    assert_eq!(refusal("0 0 * * 7-2"), "range 7-2 wraps around: write 7,1-2");
    assert_eq!(refusal("0 22-2/2 * * *"), "range 22-2/2 wraps around: write its values one by one");
    for instead in ["0 22-23,0-2 * * *", "0 0 * 11-12,1-2 *", "0 0 * * 5-7", "0 0 * * 5-7,1", "0 0 * * 7,1-2"] {
        assert!(Cron::new(instead).is_ok(), "{instead}");
    }
}

#[test]
fn the_syntax_of_other_programs_is_refused_with_what_to_write_instead() {
    for (text, message) in [
        ("* * ? * *", "? is not supported: write *"),
        ("* * 15W * *", "15W is not supported: write a range of days, and let the job choose among them"),
        ("* * LW * *", "LW is not supported: write a range of days, and let the job choose among them"),
        ("H * * * *", "H is not supported: write a number, and spread by jitter"),
        ("H/15 * * * *", "H is not supported: write a number, and spread by jitter"),
        ("H(0-29)/10 * * * *", "H(0 is not supported: write a number, and spread by jitter"),
        ("* * * * 5L", "5L is not supported: write the weekday, and let the job look whether it is the last one"),
        ("* * * * L", "L is not supported: write sat"),
        ("* L * * *", "L is not supported: only the day of month has a last one"),
        ("* * L-3 * *", "L-3 is not supported: write the days by number"),
        ("* * 20-L * *", "20-L is not supported: write the days by number"),
        ("* * L/2 * *", "L/2 is not supported: write the days by number"),
        ("* * * * 1#2", "1#2 is not supported: write the weekday, and let the job look at the day of the month"),
        ("0 9 * * * 2026", "year 2026 is not supported: use starts and ends"),
        ("0 0 9 * * * 2026", "it has 7 fields, and years cannot be given: use starts and ends"),
        ("@reboot", "@reboot is not supported: schedule a check where the application starts"),
        ("@annually", "@annually is not supported: write @yearly"),
        ("@midnight", "@midnight is not supported: write @daily"),
        ("@every 5m", "@every 5m is not supported: use every in place of cron"),
        ("@noon", "@noon is not supported: write @yearly, @monthly, @weekly, @daily or @hourly"),
        ("", "it is empty"),
        ("*", "it has 1 field instead of 5 or 6"),
        ("* * * *", "it has 4 fields instead of 5 or 6"),
        ("* * * * * * * *", "it has 8 fields instead of 5 or 6"),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn a_text_over_a_kibibyte_is_refused_and_not_repeated_in_the_message() {
    let pad = |length: usize| format!("{:length$}", "* * * * *");
    assert!(Cron::new(&pad(1024)).is_ok());
    let message = Cron::new(&pad(1025)).unwrap_err().to_string();
    assert!(message.ends_with("…\" cannot be read: it is longer than 1024 bytes") && message.len() < 150, "{message}");
    let message = Cron::new(&"ä".repeat(1_000_000)).unwrap_err().to_string();
    assert!(message.len() < 150, "{message}");
}

#[test]
fn two_ways_to_write_one_plan_are_equal() {
    let equal = |a, b| Cron::new(a).unwrap() == Cron::new(b).unwrap();
    assert!(equal("0 9 * * mon-fri", "0 0 9 * * 1,2,3,4,5"));
    assert!(equal("@daily", "0 0 * * *"));
    assert!(!equal("0 9 * * mon", "0 9 1-31 * mon"));
    assert!(!equal("0 * * * *", "0 0-23 * * *"));
}

#[test]
fn the_least_distance_is_that_of_neighbours() {
    let closest = |text| Cron::new(text).unwrap().closest();
    for (text, seconds) in [
        ("* * * * *", 60),
        ("* * * * * *", 1),
        ("5,50 * * * * *", 15),
        ("0,30 0,30 * * * *", 30),
        ("59 59 * * * *", 3600),
        ("0,59 0,59 * * * *", 1),
        ("0,59 9 * * *", 3540),
        ("0,59 9-10 * * *", 60),
        ("0,59 9,11 * * *", 3540),
        ("0 9 * * *", 86_400),
        ("0 0,23 * * *", 3600),
        ("0 0,23 */3 2 *", 23 * 3600),
        ("0 0,23 1 * *", 23 * 3600),
        ("0 0,23 1,L * *", 3600),
        ("0 0,23 29 2,3 *", 23 * 3600),
        ("0 0,23 1,29 2,3 *", 3600),
        ("0 9 1 1 *", 86_400),
    ] {
        assert_eq!(closest(text), TimeDelta::seconds(seconds), "{text}");
    }
}
