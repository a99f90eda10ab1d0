//! Draws charts as SVG. Each chart has a title, a description, and a table with the same numbers.

use super::chart::{Range, line, stack, top};
use super::parts::{Column, number, table, text};
use super::words::{absolute, grouped, millis};
use chrono::{DateTime, Utc};
use maud::{Markup, html};

pub struct Series {
    pub name: &'static str,
    /// Class in the stylesheet: `first`, `second`, `third` or `fourth`.
    pub class: &'static str,
    pub values: Vec<Option<f64>>,
}

impl Series {
    fn has_numbers(self: &&Self) -> bool {
        self.values.iter().any(Option::is_some)
    }
}

#[derive(Clone, Copy)]
pub enum Unit {
    Count,
    Millis,
}

impl Unit {
    #[allow(clippy::cast_possible_truncation)] // a cast of a float saturates
    fn text(self, value: f64) -> String {
        match self {
            Unit::Count => grouped(value.round() as i64),
            Unit::Millis => millis(value.round() as i64),
        }
    }
}

pub struct Chart<'a> {
    pub title: &'static str,
    pub sentence: &'a str,
    pub range: Range,
    pub unit: Unit,
    /// Series that the chart stacks and draws behind `lines`.
    pub stacked: Vec<Series>,
    pub lines: Vec<Series>,
    pub bands: Vec<Band>,
    pub marks: Option<Marks>,
}

/// A series that the chart draws as bars of full height, because its numbers do not fit the chart's scale. The table
/// below the chart shows the numbers as `texts`.
pub struct Marks {
    pub name: &'static str,
    pub texts: Vec<Option<String>>,
}

/// The open hours of a calendar, drawn behind the lines and blocks of the chart.
pub struct Band {
    pub name: String,
    /// Left edge of each bar that shows open hours. The unit is one bucket of the chart, and each bar is a quarter of a
    /// bucket wide.
    pub parts: Vec<f64>,
}

impl Band {
    fn is_open(&self, bucket: usize) -> bool {
        self.parts.iter().any(|x| *x >= bucket as f64 && *x < bucket as f64 + 1.0)
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

impl Chart<'_> {
    fn top(&self) -> f64 {
        let sum = |bucket: usize| self.stacked.iter().filter_map(|series| *series.values.get(bucket)?).sum::<f64>();
        let stacked = (0..self.range.count).map(sum).fold(0.0, f64::max);
        let lines = self.lines.iter().flat_map(|series| series.values.iter().flatten()).copied();
        top(lines.fold(stacked, f64::max))
    }

    pub fn draw(&self) -> Markup {
        let (high, now) = (self.top(), crate::clock::now());
        let stacked: Vec<_> = self.stacked.iter().map(|series| series.values.clone()).collect();
        let range = self.range;
        html! {
            section.chart {
                h2 { (self.title) }
                p { (self.sentence) }
                p.legend {
                    @for series in self.stacked.iter().filter(Series::has_numbers) { span.key.block.(series.class) { (series.name) } " " }
                    @for series in self.lines.iter().filter(Series::has_numbers) { span.key.(series.class) { (series.name) } " " }
                    @for band in &self.bands { span.key.band { "open: " (band.name) } " " }
                    @if let Some(marks) = &self.marks { span.key.marks { (marks.name) } " " }
                    span.top { "up to " (self.unit.text(high)) }
                }
                svg viewBox=(format!("0 0 {} 100", range.count)) preserveAspectRatio="none" role="img"
                    aria-label=(format!("{}. {}", self.title, self.sentence)) {
                    @for (place, band) in self.bands.iter().enumerate() {
                        @let high = 100.0 / self.bands.len() as f64;
                        g.band {
                            @for x in &band.parts { rect x=(x) y=(format!("{:.1}", high * place as f64)) width="0.26" height=(format!("{high:.1}")) {} }
                        }
                    }
                    @for (series, blocks) in self.stacked.iter().zip(stack(&stacked, high)) {
                        g class=(series.class) {
                            @for block in blocks {
                                rect x=(format!("{:.1}", block.x as f64 + 0.1)) y=(format!("{:.1}", block.y)) width="0.8" height=(format!("{:.1}", block.high)) {}
                            }
                        }
                    }
                    @if let Some(marks) = &self.marks {
                        g.marks {
                            @for (x, _) in marks.texts.iter().enumerate().filter(|(_, text)| text.is_some()) { rect x=(x) y="0" width="1" height="100" {} }
                        }
                    }
                    @for series in &self.lines { path class=(series.class) d=(line(&series.values, high)) {} }
                }
                p.axis { span { (absolute(at(range.from), now)) } span { (absolute(at(range.end()), now)) } }
                details {
                    summary { "The numbers" }
                    (self.table(now))
                }
            }
        }
    }

    fn table(&self, now: DateTime<Utc>) -> Markup {
        let all: Vec<&Series> = self.stacked.iter().chain(&self.lines).filter(Series::has_numbers).collect();
        let mut columns: Vec<Column> =
            std::iter::once(text("From")).chain(all.iter().map(|series| number(series.name))).collect();
        columns.extend(self.marks.as_ref().map(|marks| text(marks.name)));
        columns.extend((!self.bands.is_empty()).then_some(text("Open")));
        let mark = |bucket: usize| self.marks.as_ref().map(|marks| marks.texts.get(bucket).cloned().flatten());
        let value = |series: &&Series, bucket: usize| series.values.get(bucket).copied().flatten();
        let has_numbers = |bucket: &usize| {
            all.iter().any(|series| value(series, *bucket).is_some()) || mark(*bucket).flatten().is_some()
        };
        let open = |bucket: usize| {
            let open = self.bands.iter().filter(|band| band.is_open(bucket)).map(|band| band.name.as_str());
            (!self.bands.is_empty()).then(|| html! { (open.collect::<Vec<_>>().join(", ")) })
        };
        let row = |bucket: usize| {
            let number =
                |series: &&Series| html! { @if let Some(value) = value(series, bucket) { (self.unit.text(value)) } };
            std::iter::once(html! { (absolute(at(self.range.at(bucket)), now)) })
                .chain(all.iter().map(number))
                .chain(mark(bucket).map(|text| html! { (text.unwrap_or_default()) }))
                .chain(open(bucket))
                .collect()
        };
        table(self.title, &columns, (0..self.range.count).filter(has_numbers).map(row).collect())
    }
}
