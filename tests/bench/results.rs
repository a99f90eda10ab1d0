//! If only some rows of the results table are measured, all other rows keep their earlier results.

use crate::stats::{Pairs, median, spread};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub row: String,
    /// How the result was measured. `None` if the page in docs/ already describes the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    pub figures: Vec<Figure>,
    pub charts: Vec<Chart>,
    pub notes: Vec<String>,
    pub seconds: f64,
    pub run: Option<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    pub what: String,
    pub against: String,
    pub value: f64,
    pub unit: String,
    pub spread: Option<[f64; 2]>,
    /// The same ratio by CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    pub wanted: Wanted,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    Nothing,
}

impl Wanted {
    pub fn is_met_by(self, value: f64) -> Option<bool> {
        match self {
            Wanted::AtLeast(least) => Some(value >= least),
            Wanted::AtMost(most) => Some(value <= most),
            Wanted::Nothing => None,
        }
    }
}

/// A chart over time has axes that begin at 0. All other charts have logarithmic axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chart {
    pub name: String,
    pub title: String,
    pub x: String,
    pub y: String,
    #[serde(default)]
    pub is_over_time: bool,
    /// Name and points of each line. A chart without points is not drawn, so the page shows the image of an earlier
    /// measurement.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub began: String,
    pub commit: String,
    pub sizes: String,
    pub machine: String,
    pub load_before: String,
    pub server: String,
    pub settings: Vec<String>,
}

impl Chart {
    pub fn over_time(name: &str, title: &str, y: &str, lines: Vec<(&str, Vec<(f64, f64)>)>) -> Self {
        let lines = lines.into_iter().map(|(name, points)| (name.to_owned(), points)).collect();
        Chart { name: name.into(), title: title.into(), x: "minutes".into(), y: y.into(), is_over_time: true, lines }
    }
}

impl Outcome {
    pub fn new(row: &str) -> Self {
        let (figures, charts, notes) = (Vec::new(), Vec::new(), Vec::new());
        Outcome { row: row.into(), what: None, figures, charts, notes, seconds: 0.0, run: None, failure: None }
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub fn ratio(&mut self, [what, against]: [&str; 2], pairs: &Pairs, wanted: Wanted, detail: String) {
        let ratios = pairs.ratios();
        self.figures.push(Figure {
            what: what.into(),
            against: against.into(),
            value: median(&ratios),
            unit: "×".into(),
            spread: Some(spread(&ratios)),
            cpu: None,
            wanted,
            detail,
        });
    }

    /// Adds a ratio by the clock, beside that of the same pairs by CPU time.
    pub fn ratios(&mut self, what: [&str; 2], [clock, cpu]: &[Pairs; 2], wanted: Wanted, detail: String) {
        self.ratio(what, clock, wanted, detail);
        if let Some(figure) = self.figures.last_mut() {
            figure.cpu = Some(median(&cpu.ratios()));
        }
    }

    pub fn value(&mut self, [what, against]: [&str; 2], value: f64, unit: &str, wanted: Wanted, detail: String) {
        let (what, against, unit) = (what.into(), against.into(), unit.into());
        self.figures.push(Figure { what, against, value, unit, spread: None, cpu: None, wanted, detail });
    }
}

pub fn readable(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        small if small < 0.1 => 4,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut spaced = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && digit.is_ascii_digit() && (whole.len() - place) % 3 == 0 && spaced != "-" {
            spaced.push(',');
        }
        spaced.push(digit);
    }
    fraction.map_or(spaced.clone(), |fraction| format!("{spaced}.{fraction}"))
}

pub fn save(file: &Path, outcome: &Outcome) -> Result<(), String> {
    let mut all = load(file)?;
    match all.iter_mut().find(|known| known.row == outcome.row) {
        Some(known) => *known = outcome.clone(),
        None => all.push(outcome.clone()),
    }
    let json = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
    fs::write(file, json + "\n").map_err(|error| format!("{}: {error}", file.display()))
}

pub fn load(file: &Path) -> Result<Vec<Outcome>, String> {
    let Ok(json) = fs::read_to_string(file) else { return Ok(Vec::new()) };
    serde_json::from_str(&json).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(readable(1_234_567.8), "1,234,568");
        assert_eq!(readable(0.9712), "0.97");
        assert_eq!(readable(0.0123), "0.0123");
        assert_eq!(readable(42.19), "42.2");
        assert_eq!(readable(0.0), "0");
        assert_eq!(readable(-1234.0), "-1,234");
    }

    #[test]
    fn what_is_kept_can_be_read_again() {
        let mut outcome = Outcome::new("try");
        let pairs = Pairs { ours: vec![1.0, 2.0, 3.0], theirs: vec![2.0, 2.0, 2.0] };
        outcome.ratio(["a", "b"], &pairs, Wanted::AtLeast(0.7), String::new());
        let json = serde_json::to_string(&outcome).unwrap();
        let again: Outcome = serde_json::from_str(&json).unwrap();
        assert_eq!(again.figures[0].value, 1.0);
        assert_eq!(again.figures[0].spread, Some([0.5, 1.5]));
        assert_eq!(again.figures[0].wanted.is_met_by(1.0), Some(true));
        assert_eq!(Wanted::AtMost(0.5).is_met_by(1.0), Some(false));
    }
}
