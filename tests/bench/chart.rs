//! Charts, as SVG.
//!
//! Does not: choose what is shown.

use crate::results::{Chart, readable};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (800, 480);
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
];

pub fn draw(directory: &Path, chart: &Chart) -> Result<(), Box<dyn Error>> {
    let points = || chart.lines.iter().flat_map(|(_, points)| points.iter().copied());
    let range = |values: Vec<f64>, above: f64| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        low / 1.5..high * above
    };
    if points().count() == 0 {
        return Ok(());
    }
    let file = directory.join(format!("{}.svg", chart.name));
    let area = SVGBackend::new(&file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut plane = ChartBuilder::on(&area)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(
            range(points().map(|(x, _)| x).collect(), 1.5).log_scale(),
            // With room for the legend.
            range(points().map(|(_, y)| y).collect(), 20.0).log_scale(),
        )?;
    let number = |value: &f64| if *value < 100.0 { value.to_string() } else { readable(*value) };
    plane
        .configure_mesh()
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for ((name, points), colour) in chart.lines.iter().zip(COLOURS.iter().cycle()) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(4);
        plane
            .draw_series(line)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    plane
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
