use crate::calls::MEASUREMENTS;
use crate::results::{Figure, Outcome, Run, Wanted, load, readable};
use crate::{ROWS, chart};
use awty_testkit::checkout;
use awty_testkit::markdown::{between_markers, wrap};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

pub struct Page {
    page: &'static str,
    results: &'static str,
    begin: &'static str,
    end: &'static str,
    suffix: &'static str,
}

pub static TEN_MINUTES: Page =
    Page { begin: "<!-- results: begin; written by make bench -->", ..Page::of("performance") };
pub static ON_17: Page = Page {
    page: "performance",
    results: "performance-17",
    begin: "<!-- PostgreSQL 17: begin; written by scripts/in-folder 17 make bench -->",
    end: "<!-- PostgreSQL 17: end -->",
    suffix: "-17",
};
pub static LARGE: Page = Page {
    page: "performance",
    results: "performance-full",
    begin: "<!-- large sizes: begin; written by make bench-full -->",
    end: "<!-- large sizes: end -->",
    suffix: "-full",
};

impl Page {
    pub const fn of(name: &'static str) -> Self {
        let (begin, end) = ("<!-- results: begin; written from docs/results -->", "<!-- results: end -->");
        Page { page: name, results: name, begin, end, suffix: "" }
    }

    fn directory(is_try: bool) -> Result<PathBuf, String> {
        let root = checkout().canonicalize().map_err(|error| error.to_string())?;
        let directory = root.join(if is_try { "target/bench/try" } else { "docs" });
        fs::create_dir_all(directory.join("results")).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    }

    pub fn results(&self, is_try: bool) -> Result<PathBuf, String> {
        Ok(Self::directory(is_try)?.join("results").join(self.results).with_extension("json"))
    }

    pub fn write(&self, is_try: bool) -> Result<PathBuf, String> {
        let (directory, outcomes) = (Self::directory(is_try)?, self.outcomes(is_try)?);
        for chart in outcomes.iter().flat_map(|outcome| &outcome.charts) {
            chart::draw(&directory, chart).map_err(|error| format!("{}: {error}", chart.name))?;
        }
        let page = directory.join(self.page).with_extension("md");
        let before =
            fs::read_to_string(&page).unwrap_or_else(|_| format!("# {}\n\n{}\n{}\n", self.page, self.begin, self.end));
        fs::write(&page, self.between(&before, &table(&outcomes))?)
            .map_err(|error| format!("{}: {error}", page.display()))?;
        Ok(page)
    }

    fn outcomes(&self, is_try: bool) -> Result<Vec<Outcome>, String> {
        let mut outcomes = load(&self.results(is_try)?)?;
        outcomes.sort_by_key(|outcome| ROWS.iter().position(|row| row.name == outcome.row));
        outcomes.iter_mut().flat_map(|outcome| &mut outcome.charts).for_each(|chart| chart.name.push_str(self.suffix));
        Ok(outcomes)
    }

    fn between(&self, page: &str, text: &str) -> Result<String, String> {
        between_markers(page, [self.begin, self.end], text)
    }
}

fn pages() -> impl Iterator<Item = &'static Page> {
    [&TEN_MINUTES, &ON_17, &LARGE].into_iter().chain(MEASUREMENTS.iter().map(|(.., page)| page))
}

pub fn write_all() -> Result<(), String> {
    let is_measured = |page: &&Page| page.results(false).is_ok_and(|file| file.exists());
    pages().filter(is_measured).try_for_each(|page| page.write(false).map(drop))
}

pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for line in outcomes.iter().filter_map(|outcome| outcome.what.as_ref()).flat_map(|what| what.lines()) {
        text += &item(line);
        text.push('\n');
    }
    text.push_str(if text.is_empty() { "" } else { "\n" });
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
        let of = if runs.len() > 1 { format!("{}: ", names(run)) } else { "Measured ".to_owned() };
        let Run { began, commit, sizes, machine, load_before, server, .. } = run;
        let commit = if commit.is_empty() { String::new() } else { format!(", commit {commit}") };
        let line = format!("{of}{began}{commit}, sizes: {sizes}. {server}; {machine}; load before it {load_before}.");
        text += &wrap(&line);
        text.push('\n');
    }
    let minutes = outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>() / 60.0;
    if minutes > 0.0 {
        let _ = writeln!(text, "To measure it took {} minutes in all.\n", readable(minutes));
    }
    let has_cpu = outcomes.iter().flat_map(|outcome| &outcome.figures).any(|figure| figure.cpu.is_some());
    let [cpu, line_below] = if has_cpu { [" by CPU time |", "--:|"] } else { [""; 2] };
    let _ = writeln!(text, "| row | measured | against | figure | least to most |{cpu} wanted | | absolute |");
    let _ = writeln!(text, "|---|---|---|--:|---|{line_below}---|---|---|");
    for outcome in outcomes {
        outcome.figures.iter().for_each(|figure| text.push_str(&line(&outcome.row, figure, has_cpu)));
    }
    for outcome in outcomes {
        outcome.notes.iter().for_each(|note| {
            let _ = write!(text, "\n{}", item(&format!("- {}: {note}", outcome.row)));
        });
    }
    text.push('\n');
    for chart in outcomes.iter().flat_map(|outcome| &outcome.charts) {
        let _ = write!(text, "\n![{}]({}.svg)\n", chart.title, chart.name);
    }
    if let Some(run) = runs.last().filter(|run| !run.settings.is_empty()) {
        text.push('\n');
        text += &wrap(&format!("Settings: `{}`.", run.settings.join("`, `")));
    }
    text
}

fn item(text: &str) -> String {
    let indent = if text.starts_with("- ") { "\n  " } else { "\n" };
    wrap(text).trim_end().replace('\n', indent)
}

fn line(row: &str, figure: &Figure, has_cpu: bool) -> String {
    let Figure { what, against, value, unit, spread, cpu, wanted, detail } = figure;
    let spread = spread.map_or(String::new(), |[low, high]| format!("{} to {}", readable(low), readable(high)));
    let cpu = cpu.map_or(String::new(), |cpu| format!("{} {unit}", readable(cpu)));
    let cpu = if has_cpu { format!(" {cpu} |") } else { String::new() };
    let limit = match wanted {
        Wanted::AtLeast(least) => format!("≥ {least} {unit}"),
        Wanted::AtMost(most) => format!("≤ {most} {unit}"),
        Wanted::Nothing => String::new(),
    };
    let verdict = wanted.is_met_by(*value).map_or("", |met| if met { "met" } else { "**short**" });
    format!(
        "| {row} | {what} | {against} | {} {unit} | {spread} |{cpu} {limit} | {verdict} | {detail} |\n",
        readable(*value)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Pairs;

    #[test]
    fn pages_are_written_from_the_results() {
        for results in pages() {
            let outcomes = results.outcomes(false).unwrap();
            let page = Page::directory(false).unwrap().join(results.page).with_extension("md");
            assert_eq!(!outcomes.is_empty(), page.is_file(), "{}", results.results);
            let Ok(page) = fs::read_to_string(page) else { continue };
            assert_eq!(
                page,
                results.between(&page, &table(&outcomes)).unwrap(),
                "docs/{}.md differs from its results: make pages",
                results.page
            );
        }
    }

    #[test]
    fn a_figure_that_falls_short_is_called_so() {
        let mut outcome = Outcome::new("ceiling");
        let pairs = Pairs { ours: vec![1.0], theirs: vec![2.0] };
        outcome.ratio(["speed", "the ceiling"], &pairs, Wanted::AtLeast(0.7), "1/s".into());
        outcome.ratio(["time", "the ceiling"], &pairs, Wanted::AtMost(0.7), "1/s".into());
        let quarters = || Pairs { ours: vec![1.0], theirs: vec![4.0] };
        outcome.ratios(["time", "the loop"], &[quarters(), quarters()], Wanted::Nothing, String::new());
        let table = table(&[outcome]);
        assert!(table.contains("| 0.50 × | 0.50 to 0.50 |  | ≥ 0.7 × | **short** |"), "{table}");
        assert!(table.contains("| ≤ 0.7 × | met |"), "{table}");
        assert!(table.contains("| 0.25 × | 0.25 to 0.25 | 0.25 × |"), "{table}");
    }
}
