//! Turns numbers into the points of a chart.
//!
//! Invariant: a chart has at most [`MOST`] points.

use std::fmt::Write;

pub const MOST: usize = 360;

pub const HIGH: f64 = 100.0;

/// Buckets of equal width, with the same bounds as in PostgreSQL's `date_bin()`. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: i64,
    pub step: i64,
    pub count: usize,
}

impl Range {
    /// The last bucket contains `now`.
    pub fn until(now: i64, step: i64, count: usize) -> Self {
        let (step, count) = (step.max(1), count.clamp(1, MOST));
        let last = now.div_euclid(step).saturating_mul(step);
        Range { from: last.saturating_sub(step.saturating_mul(Self::buckets(count - 1))), step, count }
    }

    /// The first bucket contains `now`.
    pub fn after(now: i64, step: i64, count: usize) -> Self {
        let (step, count) = (step.max(1), count.clamp(1, MOST));
        Range { from: now.div_euclid(step).saturating_mul(step), step, count }
    }

    fn buckets(count: usize) -> i64 {
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    pub fn at(&self, bucket: usize) -> i64 {
        self.from.saturating_add(self.step.saturating_mul(Self::buckets(bucket)))
    }

    pub fn end(&self) -> i64 {
        self.at(self.count)
    }

    fn bucket(&self, at: i64) -> Option<usize> {
        let distance = usize::try_from(at.checked_sub(self.from)?.div_euclid(self.step)).ok()?;
        (distance < self.count).then_some(distance)
    }

    /// Puts values into the buckets of their times, and combines values of one bucket with `add`. Leaves out values
    /// outside of the chart's range.
    pub fn place<T: Clone>(
        &self,
        values: impl IntoIterator<Item = (i64, T)>,
        add: impl Fn(&T, T) -> T,
    ) -> Vec<Option<T>> {
        let mut placed = vec![None; self.count];
        for (at, value) in values {
            if let Some(place) = self.bucket(at).and_then(|bucket| placed.get_mut(bucket)) {
                *place = Some(match place {
                    Some(before) => add(before, value),
                    None => value,
                });
            }
        }
        placed
    }
}

/// Returns the smallest round number, 1, 2 or 5 times a power of ten, that is at least `highest`.
pub fn top(highest: f64) -> f64 {
    if !highest.is_finite() || highest <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(highest.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|top| *top >= highest).unwrap_or(highest)
}

fn y(value: f64, top: f64) -> f64 {
    let share = if top > 0.0 && value.is_finite() { (value / top).clamp(0.0, 1.0) } else { 0.0 };
    HIGH - share * HIGH
}

pub fn line(values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (x, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let y = y(*value, top);
            let _ = if drawing { write!(path, "V{y:.1}H{}", x + 1) } else { write!(path, "M{x} {y:.1}H{}", x + 1) };
        }
        drawing = value.is_some();
    }
    path
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    pub x: usize,
    pub y: f64,
    pub high: f64,
}

/// Returns the blocks (rectangles) of each series, beginning with the lowest series.
pub fn stack(series: &[Vec<Option<f64>>], top: f64) -> Vec<Vec<Block>> {
    let count = series.iter().map(Vec::len).max().unwrap_or(0);
    let mut below = vec![0.0; count];
    let blocks = |values: &Vec<Option<f64>>| {
        let mut found = Vec::new();
        for (x, (value, below)) in values.iter().zip(below.iter_mut()).enumerate() {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let (from, to) = (y(*below, top), y(*below + value, top));
            found.push(Block { x, y: to, high: from - to });
            *below += value;
        }
        found
    };
    series.iter().map(blocks).collect()
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
