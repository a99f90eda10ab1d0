//! The report: a table of all rows with results, between two markers of a page, so that the surrounding text stays. The
//! large sizes have their own markers.
//!
//! Does not: measure, or judge beyond "met" and "short".

use crate::results::{Figure, Outcome, Run, Wanted, load, readable};
use crate::{ROWS, chart};
use awty_testkit::markdown::wrap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Markers of the results on the page, and the suffix of their charts' names.
pub struct Place {
    begin: &'static str,
    end: &'static str,
    suffix: &'static str,
}

pub const TEN_MINUTES: Place =
    Place { begin: "<!-- results: begin; written by make bench -->", end: "<!-- results: end -->", suffix: "" };
/// The same sizes on PostgreSQL 17, in addition to Debian's version.
pub const ON_17: Place = Place {
    begin: "<!-- PostgreSQL 17: begin; written by scripts/in-folder 17 make bench -->",
    end: "<!-- PostgreSQL 17: end -->",
    suffix: "-17",
};
pub const LARGE: Place = Place {
    begin: "<!-- large sizes: begin; written by make bench-full -->",
    end: "<!-- large sizes: end -->",
    suffix: "-full",
};

/// Writes the page and its charts from the stored results.
pub fn write(results: &Path, page: &Path, place: &Place) -> Result<(), String> {
    let mut outcomes: Vec<Outcome> = ROWS.iter().filter_map(|row| load(results, row.name)).collect();
    outcomes.iter_mut().flat_map(|outcome| &mut outcome.charts).for_each(|chart| chart.name.push_str(place.suffix));
    let directory = page.parent().unwrap_or(Path::new("."));
    for chart in outcomes.iter().flat_map(|outcome| &outcome.charts) {
        chart::draw(directory, chart).map_err(|error| format!("{}: {error}", chart.name))?;
    }
    let before =
        fs::read_to_string(page).unwrap_or_else(|_| format!("# Performance\n\n{}\n{}\n", place.begin, place.end));
    let after = between_markers(&before, &table(&outcomes), place)?;
    fs::write(page, after).map_err(|error| format!("{}: {error}", page.display()))
}

/// Replaces the text between a page's markers.
fn between_markers(page: &str, text: &str, Place { begin, end, .. }: &Place) -> Result<String, String> {
    let parts = page.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?.1)));
    let (head, tail) = parts.ok_or_else(|| format!("the page lacks its markers: {begin} and {end}"))?;
    Ok(format!("{head}{begin}\n{text}{end}{tail}"))
}

pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let mut runs: Vec<&Run> = Vec::new();
    for run in outcomes.iter().filter_map(|outcome| outcome.run.as_ref()) {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let names = |run: &Run| {
        let of_it = outcomes.iter().filter(|outcome| outcome.run.as_ref() == Some(run));
        of_it.map(|outcome| outcome.row.as_str()).collect::<Vec<_>>().join(", ")
    };
    for run in &runs {
        let of = if runs.len() > 1 { format!("{}: ", names(run)) } else { String::new() };
        let Run { began, commit, sizes, machine, load_before, server, .. } = run;
        let line =
            format!("{of}{began}, commit {commit}, sizes: {sizes}. {server}; {machine}; load before it {load_before}.");
        text += &wrap(&line);
        text.push('\n');
    }
    let minutes = outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>() / 60.0;
    let _ = writeln!(text, "To measure it took {} minutes in all.\n", readable(minutes));
    text.push_str("| row | measured | against | figure | least to most | wanted | | absolute |\n|---|---|---|--:|---|---|---|---|\n");
    for outcome in outcomes {
        outcome.figures.iter().for_each(|figure| text.push_str(&line(&outcome.row, figure)));
    }
    for outcome in outcomes {
        outcome.notes.iter().for_each(|note| {
            let _ = write!(text, "\n{}", wrap(&format!("- {}: {note}", outcome.row)).trim_end().replace('\n', "\n  "));
        });
    }
    text.push('\n');
    for chart in outcomes.iter().flat_map(|outcome| &outcome.charts) {
        let _ = write!(text, "\n![{}]({}.svg)\n", chart.title, chart.name);
    }
    if let Some(run) = runs.last() {
        text.push('\n');
        text += &wrap(&format!("Settings: `{}`.", run.settings.join("`, `")));
    }
    text
}

fn line(row: &str, figure: &Figure) -> String {
    let Figure { what, against, value, unit, spread, wanted, detail } = figure;
    let spread = spread.map_or(String::new(), |[low, high]| format!("{} to {}", readable(low), readable(high)));
    let limit = match wanted {
        Wanted::AtLeast(least) => format!("≥ {least} {unit}"),
        Wanted::AtMost(most) => format!("≤ {most} {unit}"),
        Wanted::Nothing => String::new(),
    };
    let verdict = wanted.is_met_by(*value).map_or("", |met| if met { "met" } else { "**short**" });
    format!(
        "| {row} | {what} | {against} | {} {unit} | {spread} | {limit} | {verdict} | {detail} |\n",
        readable(*value)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Pairs;

    #[test]
    fn prose_around_the_markers_stays() {
        let page = |ten_minutes: &str, large: &str| {
            let [block, full] = [(TEN_MINUTES, ten_minutes), (LARGE, large)]
                .map(|(place, text)| format!("{}\n{text}\n{}", place.begin, place.end));
            format!("# P\nby hand\n{block}\nalso by hand\n{full}\n")
        };
        assert_eq!(between_markers(&page("old", "old"), "new\n", &TEN_MINUTES).unwrap(), page("new", "old"));
        assert_eq!(between_markers(&page("old", "old"), "new\n", &LARGE).unwrap(), page("old", "new"));
        assert!(between_markers("without", "new", &LARGE).is_err());
    }

    #[test]
    fn a_figure_that_falls_short_is_called_so() {
        let mut outcome = Outcome::new("ceiling");
        let pairs = Pairs { ours: vec![1.0], theirs: vec![2.0] };
        outcome.ratio(["speed", "the ceiling"], &pairs, Wanted::AtLeast(0.7), "1/s".into());
        outcome.ratio(["time", "the ceiling"], &pairs, Wanted::AtMost(0.7), "1/s".into());
        let table = table(&[outcome]);
        assert!(table.contains("| 0.50 × | 0.50 to 0.50 | ≥ 0.7 × | **short** |"), "{table}");
        assert!(table.contains("| ≤ 0.7 × | met |"), "{table}");
    }
}
